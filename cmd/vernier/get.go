package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newGetCommand(open opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get experiments|trials",
		Aliases: []string{"list", "ls"},
		Short:   "List experiments, or the trials of one",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("say what to list: vernier get experiments, or vernier get trials EXPERIMENT")
			}
			return usageErrorf("there are no %q to list: write experiments, or trials EXPERIMENT", args[0])
		},
	}
	cmd.AddCommand(newGetExperimentsCommand(open), newGetTrialsCommand(open))
	return cmd
}

func newGetExperimentsCommand(open opener) *cobra.Command {
	var everywhere bool
	var output *objectOutput
	cmd := &cobra.Command{
		Use:     "experiments [NAME...]",
		Aliases: []string{"experiment", "exp", "exps"},
		Short:   "List experiments",
		RunE: func(cmd *cobra.Command, names []string) error {
			return getExperiments(cmd.Context(), output, everywhere, names, cmd.OutOrStdout(), open)
		},
	}
	output = newObjectOutput(cmd)
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

func getExperiments(ctx context.Context, o *objectOutput, everywhere bool, names []string, out io.Writer, open opener) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	namespace := session.namespace
	if everywhere {
		namespace = ""
	}
	var list v1beta1.ExperimentList
	if err := session.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list experiments: %w", err)
	}
	if len(names) > 0 {
		list.Items, err = named(list.Items, names)
		if err != nil {
			return err
		}
	}
	if printer != nil {
		return o.list(printer, &list, out)
	}
	return experimentTable(list.Items, everywhere, time.Now()).write(out, o.noHeaders)
}

func named(items []v1beta1.Experiment, names []string) ([]v1beta1.Experiment, error) {
	var found []v1beta1.Experiment
	for _, name := range names {
		i := slices.IndexFunc(items, func(e v1beta1.Experiment) bool { return e.Name == name })
		if i < 0 {
			hint := ""
			if near := nearestOf(items, name); near != "" {
				hint = "did you mean " + near + "? "
			}
			return nil, notFoundErrorf("no experiment %q: %sleave the name out to see what there is", name, hint)
		}
		found = append(found, items[i])
	}
	return found, nil
}

func experimentTable(items []v1beta1.Experiment, namespaces bool, now time.Time) *table {
	t := &table{header: []string{"NAME", "STATE", "DONE", "RUNNING", "FAILED", "BEST", "BEST TRIAL", "ALGORITHM", "AGE"}}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for _, e := range items {
		view := newExperimentView(&e, nil)
		c := statusCounts(&e.Status)
		best, bestTrial := "", ""
		if b, ok := view.best(); ok {
			best, bestTrial = shortNumber(b.objective()), b.Name
		}
		algorithm := ""
		if e.Spec.Algorithm != nil {
			algorithm = e.Spec.Algorithm.AlgorithmName
		}
		row := []string{
			e.Name, view.State, c.progress(&e), strconv.Itoa(c.Running), strconv.Itoa(c.Failed),
			best, bestTrial, algorithm, age(now.Sub(e.CreationTimestamp.Time)),
		}
		if namespaces {
			row = append([]string{e.Namespace}, row...)
		}
		t.add(row...)
	}
	return t
}

func newGetTrialsCommand(open opener) *cobra.Command {
	var sort string
	var output *objectOutput
	cmd := &cobra.Command{
		Use:     "trials EXPERIMENT",
		Aliases: []string{"trial"},
		Short:   "List the trials of an experiment",
		Args:    oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			return getTrials(cmd.Context(), output, sort, args[0], cmd.OutOrStdout(), open)
		},
	}
	output = newObjectOutput(cmd)
	cmd.Flags().StringVar(&sort, "sort", "number", "number, objective (the best first), or a metric or a parameter; -NAME begins with the greatest")
	return cmd
}

func getTrials(ctx context.Context, o *objectOutput, sort, name string, out io.Writer, open opener) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	view, err := loadExperiment(ctx, session.client, session.key(name))
	if err != nil {
		return err
	}
	if err := sortTrials(&view, sort); err != nil {
		return err
	}
	if printer != nil {
		list := v1beta1.TrialList{Items: make([]v1beta1.Trial, len(view.Trials))}
		for i, t := range view.Trials {
			list.Items[i] = *t.Object
		}
		return o.list(printer, &list, out)
	}
	file := onTerminal(out)
	if file == nil || o.wide() {
		return trialList(view, o.wide(), time.Now()).write(out, o.noHeaders)
	}
	for _, line := range trialScreen(view, terminalSize(file).width, o.noHeaders, asciiOnly(), time.Now()) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// trialList is the table of all trials. When some cannot start, the last column
// says why.
func trialList(v experimentView, wide bool, now time.Time) *table {
	rows := trialTable(v, v.Trials, now)
	switch {
	case wide:
		rows.header = append(rows.header, "METRICS", "MESSAGE")
	case v.waiting() != "":
		rows.header = append(rows.header, "WAITS FOR")
	}
	for i, t := range v.Trials {
		if wide {
			rows.rows[i] = append(rows.rows[i], metricText(t), t.Message)
		} else if t.Waits != "" {
			rows.rows[i] = append(rows.rows[i], t.Waits)
		}
	}
	return rows
}

// trialScreen is the table of all trials for a terminal, with a row for each line. What
// a trial waits for stands below.
func trialScreen(v experimentView, width int, noHeader, ascii bool, now time.Time) []string {
	rows := trialTable(v, v.Trials, now)
	rows.draw(width, ascii)
	lines := rows.lines(noHeader)
	if waits := v.waiting(); waits != "" {
		lines = append(append(lines, ""), strings.Split(wordwrap.WrapString(waits, uint(width)), "\n")...)
	}
	return lines
}

// sortTrials orders the trials by a word of --sort: numbers, then texts, and what has no
// value last. The table shows a metric that they are sorted by.
func sortTrials(v *experimentView, by string) error {
	if by == "objective" {
		sortByObjective(*v)
		return nil
	}
	name, falling := strings.CutPrefix(by, "-")
	metrics, params := exportColumns(*v)
	value := func(t trialView) string { return strconv.Itoa(t.Number) }
	switch {
	case name == "number":
	case slices.Contains(metrics, name):
		v.Also = name
		value = func(t trialView) string { return strings.TrimPrefix(t.metric(name), collector.Unavailable) }
	case slices.Contains(params, name):
		value = func(t trialView) string { return paramValue(t.Params, name) }
	default:
		return usageErrorf("--sort %s: write number, objective, or one of %s", by, strings.Join(slices.Concat(metrics, params), ", "))
	}
	slices.SortStableFunc(v.Trials, func(a, b trialView) int {
		s, t := value(a), value(b)
		x, okX := finite(s)
		y, okY := finite(t)
		order := cmp.Compare(x, y)
		if !okX && !okY {
			order = strings.Compare(s, t)
		}
		if falling {
			order = -order
		}
		return cmp.Or(rank(s != "")-rank(t != ""), rank(okX)-rank(okY), order)
	})
	return nil
}

// sortByObjective puts the best trial first, then those that break a bound on a
// metric, and those without a value last.
func sortByObjective(v experimentView) {
	sign := 1.0
	if o := v.Experiment.Spec.Objective; o != nil && o.Type == v1beta1.ObjectiveTypeMaximize {
		sign = -1
	}
	slices.SortStableFunc(v.Trials, func(a, b trialView) int {
		x, okX := a.score()
		y, okY := b.score()
		return cmp.Or(rank(okX)-rank(okY), rank(v.feasible(a))-rank(v.feasible(b)), cmp.Compare(sign*x, sign*y))
	})
}

// metricText is "loss=0.25 (min) acc=0.9": of a value that is not the last of its curve
// it says which one it is.
func metricText(t trialView) string {
	parts := make([]string, len(t.Metrics))
	for i, m := range t.Metrics {
		parts[i] = m.Name + "=" + shortNumber(m.Value)
		if m.origin(nil) != "" {
			parts[i] += " (" + m.strategy + ")"
		}
	}
	return strings.Join(parts, " ")
}
