package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// oneArgument is cobra.ExactArgs(1) with an error that shows the command's usage.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageErrorf("%s takes one argument, not %d: write %s", cmd.CommandPath(), len(args), cmd.UseLine())
	}
	return nil
}

// oneExperiment is oneArgument for a command that is about an experiment and not about
// one of its trials.
func oneExperiment(cmd *cobra.Command, args []string) error {
	if err := oneArgument(cmd, args); err != nil {
		return err
	}
	return noTrial(cmd, args[0])
}

// noTrial refuses the name of a trial where that of an experiment is asked for.
func noTrial(cmd *cobra.Command, name string) error {
	experiment, _, found := strings.Cut(name, "/")
	if !found || experiment == "" || experiment == "experiment" || experiment == "experiments" { // kubectl's form
		return nil
	}
	return usageErrorf("%s is a trial of the experiment %s, and %s takes an experiment: write %s, or see the trial with %s describe %s",
		name, experiment, cmd.CommandPath(), experiment, cmd.Root().CommandPath(), name)
}

// choice is the value of a flag that is one of a few words, which is checked when
// the flags are parsed.
type choice struct {
	value *string
	words []string
}

// choiceFlag adds a flag whose default is the first of the words.
func choiceFlag(cmd *cobra.Command, value *string, name, shorthand, usage string, words ...string) {
	*value = words[0]
	cmd.Flags().VarP(choice{value, words}, name, shorthand, usage)
}

func outputFlag(cmd *cobra.Command, value *string, usage string, words ...string) {
	choiceFlag(cmd, value, "output", "o", usage, words...)
}

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		last := len(c.words) - 1
		return fmt.Errorf("write %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = text
	return nil
}
