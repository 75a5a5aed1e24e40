package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

const optimizeHelp = `Tune anything from a program in any language: requests on standard input,
answers on standard output, one JSON object a line. No cluster is needed.

  {"ask":2}    {"trials":[{"number":0,"params":{"lr":0.01}}, ...],"exhausted":false}
  {"tell":[{"number":0,"state":"succeeded","values":[0.3]}]}    {"ok":true}
  {"report":{"number":1,"step":3,"value":0.4}}    {"stop":false}

docs/optimize.md describes the requests and the space file.`

type optimizeOptions struct {
	space           string
	algorithm       string
	settings        []string
	seed            uint64
	stopper         string
	stopperSettings []string
	deadline        time.Duration
	list            bool
	describe        string
}

func newOptimizeCommand() *cobra.Command {
	var o optimizeOptions
	cmd := &cobra.Command{
		Use:   "optimize --space FILE --algorithm NAME",
		Short: "Tune from any language: JSON Lines on standard input and output",
		Long:  optimizeHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.space, "space", "", "file with the parameters and objectives, in JSON")
	flags.StringVar(&o.algorithm, "algorithm", "auto", "algorithm that proposes the trials")
	flags.StringArrayVar(&o.settings, "setting", nil, "setting of the algorithm, as name=value; may be repeated")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of all randomness")
	flags.StringVar(&o.stopper, "stopper", "", "rule that stops trials early (default: none is stopped)")
	flags.StringArrayVar(&o.stopperSettings, "stopper-setting", nil, "setting of the stopping rule, as name=value; may be repeated")
	flags.DurationVar(&o.deadline, "deadline", 0, "most time that one ask may take, such as 500ms (default: no limit)")
	flags.BoolVar(&o.list, "list", false, "list the algorithms and stopping rules, and leave")
	flags.StringVar(&o.describe, "describe", "", "describe an algorithm or stopping rule, and leave")
	return cmd
}

func (o *optimizeOptions) run(ctx context.Context, s streams) error {
	switch {
	case o.list:
		return listMethods(s.out)
	case o.describe != "":
		return describeMethod(s.out, o.describe)
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	config.Diagnostics = s.err
	return lines.New(config).Serve(ctx, s.in, s.out)
}

// config builds the session, so that mistakes are found before the first request.
func (o *optimizeOptions) config() (lines.Config, error) {
	if o.space == "" {
		return lines.Config{}, usageErrorf("--space is missing: name the file with the parameters")
	}
	if o.deadline < 0 {
		return lines.Config{}, usageErrorf("--deadline %s is below zero", o.deadline)
	}
	study, err := readSpaceFile(o.space)
	if err != nil {
		return lines.Config{}, err
	}
	study.Seed = o.seed
	config := lines.Config{Study: study, Deadline: o.deadline}
	known, ok := algorithm.Get(o.algorithm)
	if !ok {
		return lines.Config{}, unknownMethod("algorithm", o.algorithm, algorithm.Names())
	}
	settings, err := readSettings("--setting", o.settings)
	if err != nil {
		return lines.Config{}, err
	}
	config.Algorithm, err = known.New(study.Space, settings)
	var space suggest.SpaceError
	switch {
	case errors.As(err, &space):
		return lines.Config{}, &exitError{exitInvalid, faulty(fmt.Sprintf("%s: the algorithm %s cannot search it", o.space, o.algorithm), space.Unwrap())}
	case err != nil:
		return lines.Config{}, usageErrorf("algorithm %s: %w (see --describe %s)", o.algorithm, err, o.algorithm)
	}
	if o.stopper != "" && len(study.Objectives) > 1 {
		return lines.Config{}, usageErrorf("stopping rule %s: a rule looks at one objective, and would stop trials that are good in the others: leave it out, or keep one objective and bound the other metrics in constraints", o.stopper)
	}
	config.Stopper, err = o.newStopper()
	return config, err
}

func readSpaceFile(path string) (suggest.Study, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return suggest.Study{}, notFoundErrorf("there is no file %s: correct --space", path)
	}
	if err != nil {
		return suggest.Study{}, fmt.Errorf("read the space: %w", err)
	}
	defer file.Close()
	study, err := lines.ReadStudy(file)
	var faults lines.SpaceFileError
	switch {
	case errors.As(err, &faults):
		return suggest.Study{}, &exitError{exitInvalid, faulty(path, faults)}
	case err != nil:
		return suggest.Study{}, invalidErrorf("%s: %w", path, err)
	}
	return study, nil
}

// faulty joins faults into one error, several of them on lines of their own.
func faulty(what string, faults []error) error {
	separator := ": "
	if len(faults) > 1 {
		what, separator = fmt.Sprintf("%s: %d faults", what, len(faults)), "\n  "
	}
	for _, fault := range faults {
		what += separator + fault.Error()
	}
	return errors.New(what)
}

func unknownMethod(what, name string, known []string) error {
	hint := ""
	if near := parse.Nearest(name, known, 1); len(near) > 0 {
		hint = " (did you mean " + near[0] + "?)"
	}
	return usageErrorf("there is no %s %q%s: use one of %s", what, name, hint, strings.Join(known, ", "))
}

func readSettings(flag string, texts []string) (suggest.Settings, error) {
	var settings suggest.Settings
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usageErrorf("%s %q is not of the form name=value", flag, text)
		}
		settings = append(settings, suggest.Setting{Name: name, Value: value})
	}
	return settings, nil
}

// newStopper builds the stopping rule; nil when none is named.
func (o *optimizeOptions) newStopper() (suggest.Stopper, error) {
	if o.stopper == "" {
		if len(o.stopperSettings) > 0 {
			return nil, usageErrorf("--stopper-setting is given without --stopper: name the rule")
		}
		return nil, nil
	}
	known, ok := stop.Get(o.stopper)
	if !ok {
		return nil, unknownMethod("stopping rule", o.stopper, stop.Names())
	}
	settings, err := readSettings("--stopper-setting", o.stopperSettings)
	if err != nil {
		return nil, err
	}
	rule, err := known.New(settings)
	if err != nil {
		return nil, usageErrorf("stopping rule %s: %w (see --describe %s)", o.stopper, err, o.stopper)
	}
	return rule, nil
}

func listMethods(out io.Writer) error {
	t := &table{header: []string{"ALGORITHM", "SUMMARY"}}
	for _, r := range algorithm.All() {
		t.add(r.Name, r.Summary)
	}
	t.add()
	t.add("STOPPING RULE", "SUMMARY")
	for _, r := range stop.All() {
		t.add(r.Name, r.Summary)
	}
	if err := t.write(out, false); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nvernier optimize --describe NAME shows the settings of one, with their defaults.")
	return nil
}

// describeMethod describes the algorithm, the stopping rule, or both, of a name.
func describeMethod(out io.Writer, name string) error {
	a, isAlgorithm := algorithm.Get(name)
	if isAlgorithm {
		describeOne(out, "algorithm", a.Name, a.Summary, a.Settings)
	}
	r, isRule := stop.Get(name)
	if isAlgorithm && isRule {
		fmt.Fprintln(out)
	}
	if isRule {
		describeOne(out, "stopping rule", r.Name, r.Summary, r.Settings)
	}
	if !isAlgorithm && !isRule {
		return usageErrorf("there is no algorithm or stopping rule %q: see --list", name)
	}
	return nil
}

func describeOne(out io.Writer, kind, name, summary string, settings []suggest.SettingHelp) {
	fmt.Fprintf(out, "%s (%s)\n%s\n", name, kind, summary)
	if len(settings) == 0 {
		fmt.Fprintln(out, "\nIt has no settings.")
	}
	for _, s := range settings {
		fmt.Fprintf(out, "\n  %s (default: %s)\n      %s\n", s.Name, s.Default, s.Help)
	}
}
