package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/probe"
	"github.com/vernier-ml/vernier/controllers/study"
)

// runProbe shows the flags of a program, what is read of one run of it, and a search
// that both suggest.
func (o *scriptOptions) runProbe(ctx context.Context, argv []string, s streams) error {
	if err := o.fill(argv, os.Getenv); err != nil {
		return err
	}
	if err := o.space(ctx); err != nil {
		return err
	}
	if err := o.writeFlags(s.out); err != nil {
		return err
	}
	said := &lastWords{to: s.err}
	s.err = said
	report, err := o.probeMetrics(ctx, s)
	if err != nil {
		return probeError(err)
	}
	if err := writeReport(s.out, report); err != nil {
		return err
	}
	if crashed(report) {
		return &exitError{exitExperimentFailed, fmt.Errorf("the program ended with code %d, and so would each trial: correct it, or give it what it needs after --%s", *report.ExitCode, said)}
	}
	if next := o.suggested(report, nil); next != "" {
		fmt.Fprintf(s.out, "\nA search of it:\n  %s\n", next)
		if doubt := o.doubt(report); doubt != "" {
			fmt.Fprintln(s.out, doubt)
		}
		if length := o.length(report); length != nil {
			sameTime := ""
			if o.shortTrials(length) == 3*int(o.spec.Trials) {
				sameTime = ", in about the same time"
			}
			fmt.Fprintf(s.out, "\nWith most trials short, of which the best go on%s:\n  %s\n", sameTime, o.suggested(report, length))
		}
	}
	if len(report.Missing) > 0 {
		return notFoundErrorf("%s", missingMessage(report.Missing, "table"))
	}
	return nil
}

// writeFlags shows the flags of the program, and what is proposed for each.
func (o *scriptOptions) writeFlags(out io.Writer) error {
	flags := o.spec.Flags
	if flags.Source == "" {
		_, err := fmt.Fprint(out, "No flags were found: name the parameters yourself.\n\n")
		return err
	}
	t := &table{header: []string{"FLAG", "TYPE", "DEFAULT", "PROPOSED"}}
	for _, f := range flags.Flags {
		kind, proposed := f.Kind, ""
		if len(f.Choices) > 0 {
			kind = strings.Join(f.Choices, "|")
		}
		if p, ok := script.Propose(f); ok {
			_, proposed, _ = strings.Cut(script.Form(p), "=")
		}
		if f.Required {
			proposed = strings.TrimSpace(proposed + " (needed)")
		}
		t.add(f.Option, kind, clip(f.Default, 24), proposed)
	}
	fmt.Fprintf(out, "Flags (%s):\n", flags.Source)
	if err := t.write(out, false); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// probeMetrics runs the program once, its own defaults in place of the parameters that
// have one, and reads its metrics where a trial's are read.
func (o *scriptOptions) probeMetrics(ctx context.Context, s streams) (*probe.Report, error) {
	collect := collectOptions{filters: o.spec.Filters}
	for _, m := range o.objectives {
		collect.metrics = append(collect.metrics, m.ObjectiveMetricName)
	}
	if len(o.objectives) > 0 { // else all metrics are shown
		for _, b := range o.spec.Bounds {
			collect.metrics = append(collect.metrics, b.MetricName)
		}
		collect.metrics = append(collect.metrics, o.spec.Additional...)
	}
	inOutput := true
	switch o.spec.Metrics {
	case "", "text":
	case "json", "logfmt":
		collect.format = strings.ToUpper(o.spec.Metrics)
	default:
		inOutput = false
	}
	argv, params := o.spec.Plain(), ""
	env, err := o.spec.PlainEnvironment(func(text string) (path string, err error) {
		params, err = writeParams(text)
		return params, err
	})
	defer os.Remove(params) // "" where there is none
	if err != nil {
		return nil, err
	}
	report, err := collect.readLive(ctx, s, "the program", func(signals <-chan os.Signal) probe.Target {
		return &probe.Command{Argv: argv, Env: env, Format: collect.format, Filters: collect.filters, Stdout: s.err, Stderr: s.err, Interrupts: signals}
	})
	if report == nil {
		return nil, err
	}
	if inOutput || crashed(report) { // interrupted: what it printed may be enough
		return report, nil
	}
	return collect.read(ctx, strings.TrimPrefix(o.spec.Metrics, "tensorboard:"))
}

// writeParams writes the parameters of a probe to a file of their own.
func writeParams(text string) (path string, err error) {
	file, err := os.CreateTemp("", "vernier-params-*.json")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	return file.Name(), errors.Join(err, file.Close())
}

func crashed(r *probe.Report) bool {
	return r.ExitCode != nil && *r.ExitCode != 0 && !r.Interrupted
}

// lastWords passes on what a program prints, and keeps the end of it.
type lastWords struct {
	to io.Writer

	mu  sync.Mutex // the program's two outputs are copied concurrently
	end []byte
}

func (w *lastWords) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = append(w.end, text...)
	w.end = w.end[max(0, len(w.end)-lastBytes):]
	return w.to.Write(text)
}

// lastBytes and shownLines bound what is repeated of a program's output.
const (
	lastBytes  = 4096
	shownLines = 8
)

// String is ". Its last lines:" and these, or "" where nothing was printed.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(w.end), ""))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ". Its last lines:\n  " + strings.Join(lines[max(0, len(lines)-shownLines):], "\n  ")
}

// suggestion is a whole command line where the program's flags suggest one.
func (o *scriptOptions) suggestion() string {
	next := o.suggested(nil, nil)
	if next == "" {
		return "; vernier run PROGRAM --probe shows which flags the program has"
	}
	return ".\nThe flags of the program suggest\n  " + next
}

// length is the parameter that says how long the program trains, where it reports a curve;
// nil: none does, or trials may not be short for another reason.
func (o *scriptOptions) length(report *probe.Report) *v1beta1.ParameterSpec {
	curve := slices.ContainsFunc(report.Metrics, func(m probe.Metric) bool { return m.Count > 1 })
	if !curve || o.spec.Algorithm != "auto" || len(o.spec.Settings) > 0 || len(o.objectives) > 1 {
		return nil
	}
	for _, f := range o.spec.Flags.Flags {
		p, ok := script.Length(f)
		given := slices.ContainsFunc(o.spec.Parameters, func(q v1beta1.ParameterSpec) bool { return q.Name == p.Name }) ||
			f.GivenIn(o.spec.Argv)
		if ok && !given {
			return &p
		}
	}
	return nil
}

// shortTrials is how many trials take as long as those that were asked for when most are
// short, or more where so few would all be whole.
func (o *scriptOptions) shortTrials(length *v1beta1.ParameterSpec) int {
	return max(3*int(o.spec.Trials), study.ShortFrom(&v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{*length}, ParallelTrialCount: &o.parallel,
		Algorithm: &v1beta1.AlgorithmSpec{AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: length.Name}}},
	}))
}

// suggested is a command line with the proposed parameters, as far as none were
// given, and with short trials where a parameter says how long they are.
func (o *scriptOptions) suggested(report *probe.Report, length *v1beta1.ParameterSpec) string {
	words := []string{"vernier run"}
	python := strings.HasPrefix(filepath.Base(o.spec.Argv[0]), "python")
	rest := o.spec.Argv
	if python && len(rest) > 1 && strings.HasSuffix(rest[1], ".py") {
		rest = rest[1:]
	}
	words = append(words, shellQuote(rest[0]))
	parameters := o.spec.Parameters
	if len(parameters) == 0 {
		for _, f := range o.spec.Flags.Flags {
			if p, ok := script.Propose(f); ok {
				parameters = append(parameters, p)
			}
		}
	}
	if len(parameters) == 0 {
		return ""
	}
	if length != nil {
		parameters = append(slices.Clip(parameters), *length)
	}
	for _, p := range parameters {
		words = append(words, "-p "+shellQuote(script.Form(p)))
	}
	own := []string{"probe", "param", "minimize", "maximize"}
	if length != nil {
		words = append(words, "--setting resource_name="+length.Name, fmt.Sprintf("-n %d", o.shortTrials(length)), "--name "+o.spec.Name+"-short")
		own = append(own, "max-trials", "name")
	}
	words = append(append(words, givenFlags(o.flags, own)...), o.suggestedObjectives(report)...)
	if len(rest) > 1 {
		words = append(words, "--")
		for _, w := range rest[1:] {
			words = append(words, shellQuote(w))
		}
	}
	return strings.Join(words, " ")
}

// givenFlags are those that were given, beside those that a suggestion has of its own.
func givenFlags(flags *pflag.FlagSet, own []string) (words []string) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch {
			case slices.Contains(own, f.Name):
			case f.NoOptDefVal != "": // true or false
				words = append(words, "--"+f.Name+"="+v)
			case f.Shorthand != "":
				words = append(words, "-"+f.Shorthand+" "+shellQuote(v))
			default:
				words = append(words, "--"+f.Name+" "+shellQuote(v))
			}
		}
	})
	return words
}

// suggestedObjectives are those that were given, or the metric that seems to count.
func (o *scriptOptions) suggestedObjectives(report *probe.Report) (words []string) {
	for _, m := range o.objectives {
		words = append(words, "--"+string(m.Type)+" "+shellQuote(m.ObjectiveMetricName))
	}
	if len(words) > 0 {
		return words
	}
	found, filter := probed(report)
	if len(found) == 0 {
		return []string{"--minimize METRIC"}
	}
	if filter != "" {
		words = append(words, "--filter "+shellQuote(filter))
	}
	g := guessObjective(found)
	return append(words, "--"+string(g.kind)+" "+shellQuote(g.name))
}

// doubt says that the suggested objective is a guess, where the metrics' names do not tell.
func (o *scriptOptions) doubt(report *probe.Report) string {
	found, _ := probed(report)
	g := guessObjective(found)
	if g.sure || g.name == "" || len(o.objectives) > 0 {
		return ""
	}
	names := make([]string, len(found))
	for i, m := range found {
		names[i] = m.Name
	}
	return fmt.Sprintf("That %s counts, and that less of it is better, is a guess. The program reports %s: --minimize NAME or --maximize NAME says which counts.",
		g.name, strings.Join(names, ", "))
}

// probed are the metrics that were found, or those that a filter would find.
func probed(report *probe.Report) (metrics []probe.Metric, filter string) {
	switch {
	case report == nil:
		return nil, ""
	case len(report.Metrics) > 0:
		return report.Metrics, liveFilter(report.Metrics)
	}
	for _, filter := range []string{parse.ColonFilter, parse.DictFilter} {
		for _, u := range report.Unread {
			if strings.Contains(u.Hint, filter) {
				metrics = append(metrics, probe.Metric{Name: u.Name})
			}
		}
		if len(metrics) > 0 {
			return metrics, filter
		}
	}
	return nil, ""
}

// liveFilter is the filter with which all the metrics are read while a trial runs; "" if
// some are without one.
func liveFilter(metrics []probe.Metric) string {
	for _, filter := range []string{parse.ColonFilter, parse.DictFilter} {
		if !slices.ContainsFunc(metrics, func(m probe.Metric) bool { return !m.Late || !strings.Contains(m.Hint, filter) }) {
			return filter
		}
	}
	return ""
}
