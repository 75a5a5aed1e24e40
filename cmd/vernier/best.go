package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

func newBestCommand(open opener) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "best EXPERIMENT",
		Short: "Print the best trial of an experiment",
		Example: `  vernier best charlm
  python train.py $(vernier best charlm -o args)`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return best(cmd.Context(), args[0], output, cmd.OutOrStdout(), open)
		},
	}
	outputFlag(cmd, &output, "table, args (--lr=0.1 --width=64), env (LR=0.1), json or yaml", "table", "args", "env", "json", "yaml")
	return cmd
}

func best(ctx context.Context, name, output string, out io.Writer, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	view, err := loadExperiment(ctx, session.client, session.key(name))
	if err != nil {
		return err
	}
	trial, err := target{Experiment: name, Trial: "best"}.find(view)
	if err != nil {
		return err
	}
	return writeBest(out, output, trial)
}

func writeBest(out io.Writer, output string, trial trialView) error {
	switch output {
	case "table", "":
		t := &table{header: []string{"TRIAL", trial.Name}}
		for _, m := range trial.Metrics {
			t.add(m.Name, m.Value, m.origin(nil))
		}
		for _, p := range trial.Params {
			t.add(p.Name, p.Value)
		}
		return t.write(out, false)
	case "args":
		words := make([]string, len(trial.Params))
		for i, p := range trial.Params {
			words[i] = "--" + p.Name + "=" + shellQuote(p.Value)
		}
		_, err := fmt.Fprintln(out, strings.Join(words, " "))
		return err
	case "env":
		for _, p := range trial.Params {
			if _, err := fmt.Fprintf(out, "%s=%s\n", envName(p.Name), shellQuote(p.Value)); err != nil {
				return err
			}
		}
		return nil
	}
	params, metrics := map[string]string{}, map[string]string{}
	for _, p := range trial.Params {
		params[p.Name] = p.Value
	}
	for _, m := range trial.Metrics {
		metrics[m.Name] = m.Value
	}
	return writeValue(out, output, map[string]any{"trial": trial.Name, "parameters": params, "metrics": metrics})
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
