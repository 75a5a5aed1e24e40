package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// oneArgument is the check of a command that takes one: the error shows how the
// command is written.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageErrorf("%s takes one argument, not %d: write %s", cmd.CommandPath(), len(args), cmd.UseLine())
	}
	return nil
}

// choice is the value of a flag that is one of a few words. It is checked before
// the command does anything.
type choice struct {
	value *string
	words []string
}

// outputFlag adds -o, whose default is the first of the words.
func outputFlag(cmd *cobra.Command, value *string, usage string, words ...string) {
	*value = words[0]
	cmd.Flags().VarP(choice{value, words}, "output", "o", usage)
}

// String is part of pflag.Value.
func (c choice) String() string { return *c.value }

// Type is part of pflag.Value.
func (c choice) Type() string { return "string" }

// Set is part of pflag.Value.
func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		last := len(c.words) - 1
		return fmt.Errorf("write %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.value = text
	return nil
}
