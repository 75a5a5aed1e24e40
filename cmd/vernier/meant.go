package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vernier-ml/vernier/collector/parse"
)

// knownCommand refuses what is no command, and names the one that was likely meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	hint := ""
	if near := parse.Nearest(args[0], names, 1); len(near) > 0 {
		hint = ": did you mean " + cmd.CommandPath() + " " + near[0] + "?"
	}
	return usageErrorf("%s has no command %q%s", cmd.CommandPath(), args[0], hint)
}

// meantFlag adds to the error about an unknown flag the one that was likely meant. Where
// the command itself is unknown, that is the error: the root does not know its flags.
func meantFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if before := cmd.Flags().Args(); !cmd.HasParent() && len(before) > 0 {
		return knownCommand(cmd, before)
	}
	name := unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); len(letters) > 2 {
		name = letters // -max-trials, with one dash too few
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	if near := parse.Nearest(name, names, 1); len(name) > 1 && len(near) > 0 {
		err = fmt.Errorf("%w: did you mean --%s?", err, near[0])
	}
	return &exitError{code: exitUsage, err: err}
}
