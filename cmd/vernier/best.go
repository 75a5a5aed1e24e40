package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func newBestCommand(open opener) *cobra.Command {
	var output string
	var recommended bool
	cmd := &cobra.Command{
		Use:   "best EXPERIMENT",
		Short: "Print the best trial of an experiment",
		Long: `Print the trial with the best value. Where trials are repeated with other seeds, a
value may be luck: --recommended prints the parameters that a model of all results
expects to be best on average. The table rounds parameters; the other formats have
them as the program got them: args has these alone, and command all that the trial ran.
vernier describe has the same formats for any trial.`,
		Example: `  vernier best charlm
  python train.py $(vernier best charlm -o args)
  sh -c "$(vernier best charlm -o command)"`,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			return best(cmd.Context(), args[0], output, recommended, cmd.OutOrStdout(), open)
		},
	}
	cmd.Flags().BoolVar(&recommended, "recommended", false, "the parameters that are expected to be best on average, where trials are repeated")
	outputFlag(cmd, &output, "table, args (--lr=0.1 --width=64), command (a whole command line), env (LR=0.1), json or yaml", "table", "args", "command", "env", "json", "yaml")
	return cmd
}

func best(ctx context.Context, name, output string, recommended bool, out io.Writer, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	view, err := loadExperiment(ctx, session.client, session.key(name))
	if err != nil {
		return err
	}
	which := "best"
	if r := view.Experiment.Status.RecommendedTrial; recommended && r == nil {
		return fmt.Errorf("nothing is recommended for experiment %s: its trials are not repeated, or too few have results (docs/objectives.md#noise)", name)
	} else if recommended {
		which = r.TrialName
	}
	trial, err := target{Experiment: name, Trial: which}.find(view)
	if err != nil {
		return err
	}
	return writeBest(out, output, view.Experiment, trial)
}

// expectation is "0.0431 ± 0.0007, by 5 trials".
func expectation(r *v1beta1.RecommendedTrial) string {
	number := func(text string) string {
		if x, ok := finite(text); ok {
			return strconv.FormatFloat(x, 'g', 4, 64)
		}
		return text
	}
	return fmt.Sprintf("%s ± %s, by %s", number(r.Value), number(r.Deviation), countOfTrials(int(r.Trials)))
}

func writeBest(out io.Writer, output string, e *v1beta1.Experiment, trial trialView) error {
	r := e.Status.RecommendedTrial
	switch output {
	case "table", "":
		t := &table{header: []string{"TRIAL", trial.Name}}
		for _, m := range trial.Metrics {
			t.add(m.Name, m.Value, m.origin(nil))
		}
		for _, p := range trial.Params {
			t.add(p.Name, shownParam(p.Value))
		}
		switch {
		case r != nil && r.TrialName == trial.Name:
			t.add("expected on average", expectation(r))
		case r != nil:
			t.add("recommended", r.TrialName, expectation(r))
		}
		if front := e.Status.ParetoTrialList; len(e.Spec.Objectives) > 1 && len(front) > 1 && slices.Contains(front, trial.Name) {
			t.add("front", fmt.Sprintf("one of %s that none beats in all objectives: vernier describe %s", countOfTrials(len(front)), e.Name))
		}
		return t.write(out, false)
	case "args":
		_, err := fmt.Fprintln(out, arguments(e, trial))
		return err
	case "command":
		text, err := commandLine(e, trial)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, text)
		return err
	case "env":
		for _, p := range trial.Params {
			if _, err := fmt.Fprintf(out, "%s=%s\n", envName(p.Name), shellQuote(p.Value)); err != nil {
				return err
			}
		}
		return nil
	}
	metrics := map[string]any{}
	for _, m := range trial.Metrics {
		metrics[m.Name] = numberOrText(m.Value)
	}
	value := map[string]any{"trial": trial.Name, "parameters": paramValues(e, trial.Params), "metrics": metrics}
	if r != nil {
		value["recommended"] = r
	}
	return writeValue(out, output, value)
}

// commandLine is what the trial ran, for a shell: its command, with the variables that the
// template of the experiment does not have as they are, since parameters are in them.
func commandLine(e *v1beta1.Experiment, trial trialView) (string, error) {
	var c *corev1.Container
	if trial.Object != nil {
		_, c = primaryOf(trial.Object)
	}
	template := templateOf(e, trial)
	if c == nil || len(c.Command) == 0 {
		return "", fmt.Errorf("the command of trial %s is not known: the trial has no job, or its image says what to run", trial.Name)
	}
	var words []string
	if c.WorkingDir != "" {
		words = append(words, "cd", shellQuote(c.WorkingDir), "&&")
	}
	values := map[string]string{}
	for _, v := range c.Env {
		if v.Name == "VERNIER_PARAMS_FILE" {
			return "", fmt.Errorf("trial %s got its parameters in a file: -o json has them", trial.Name)
		}
		if v.ValueFrom != nil {
			continue
		}
		values[v.Name] = expanded(v.Value, values)
		if template == nil || !slices.Contains(template.Env, v) {
			words = append(words, v.Name+"="+shellQuote(values[v.Name]))
		}
	}
	for _, word := range slices.Concat(c.Command, c.Args) {
		words = append(words, shellQuote(expanded(word, values)))
	}
	return strings.Join(words, " "), nil
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// expanded is text with the variables in place of $(NAME), and $ of $$, as a pod has it.
func expanded(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, known := values[found[2:len(found)-1]]; known {
			return value
		}
		return found
	})
}

var plainInShell = regexp.MustCompile(`^[A-Za-z0-9_./:=+,%@-]+$`)

// shellQuote quotes text for a POSIX shell where that is needed.
func shellQuote(text string) string {
	if plainInShell.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

var notInName = regexp.MustCompile("[^A-Z0-9]")

// envName is the parameter's name as an environment variable: upper case, with
// "_" in place of what a variable's name may not hold.
func envName(name string) string {
	upper := notInName.ReplaceAllString(strings.ToUpper(name), "_")
	if upper != "" && upper[0] <= '9' {
		return "_" + upper
	}
	return upper
}
