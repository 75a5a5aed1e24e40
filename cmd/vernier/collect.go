package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/collector/probe"
)

const collectHelp = `Show what the collector would read, before an experiment is run. It uses the
collector's own readers.

  vernier collect --probe train.log --metric loss --metric val_loss
  vernier collect --probe train.log --metric loss --filter '(\w+): ([-+.\deE]+)'
  vernier collect --probe runs/                     event files, W&B files or tables
  vernier collect --probe http://localhost:8080/metrics --metric val_loss
  vernier collect --probe --metric loss -- python3 train.py --lr 0.1
  ssh gpu1 cat train.log | vernier collect --probe -

Without --metric, all that have a number are shown. A program's own output goes to
standard error, and is read when it has ended. Ctrl-C (or SIGTERM) ends the
program and shows what it printed until then; a second one ends both at once.

Exit codes: 4 when a --metric is not found, or the file, the directory or the
command does not exist; 7 when nothing answers at the address; 130 after Ctrl-C
and 143 after SIGTERM. That of the command is shown and not passed on.`

type collectOptions struct {
	probe   bool
	metrics []string
	filters []string
	format  string
	output  string
}

func newCollectCommand() *cobra.Command {
	var o collectOptions
	cmd := &cobra.Command{
		Use:   "collect --probe FILE|DIR|URL|- | collect --probe -- COMMAND [ARGUMENT...]",
		Short: "Show what the collector would read in a file, a directory, or a program's output",
		Long:  collectHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			return o.run(cmd.Context(), s, args, cmd.ArgsLenAtDash())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.probe, "probe", false, "read once, show what was found, and leave")
	flags.StringArrayVarP(&o.metrics, "metric", "m", nil, "metric to look for; may be repeated (default: all)")
	flags.StringArrayVar(&o.filters, "filter", nil, "regular expression with two groups, name and value, as in metricsFormat; may be repeated")
	flags.StringVar(&o.format, "format", "", "TEXT, JSON, LOGFMT, CSV or WANDB (default: by the file's name and beginning)")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json or yaml")
	return cmd
}

func (o *collectOptions) run(ctx context.Context, s streams, args []string, dash int) error {
	switch {
	case !o.probe:
		return usageErrorf("say what to do: vernier collect --probe FILE, DIR, URL or -- COMMAND")
	case len(args) == 0:
		return usageErrorf("name what to read: a file, a directory, an address, - for standard input, or a command after --")
	case dash > 0, dash < 0 && len(args) > 1:
		return usageErrorf("name one file, directory or address, or a command after --")
	}
	if err := o.check(); err != nil {
		return err
	}
	var report *probe.Report
	var err error
	switch {
	case dash == 0:
		report, err = o.readLive(ctx, s, "the program", func(signals <-chan os.Signal) probe.Target {
			return &probe.Command{Argv: args, Format: o.format, Filters: o.filters, Stdout: s.err, Stderr: s.err, Interrupts: signals}
		})
	case args[0] == "-":
		report, err = o.readLive(ctx, s, "standard input", func(signals <-chan os.Signal) probe.Target {
			return &probe.Input{From: s.in, Path: "standard input", Format: o.format, Filters: o.filters, Interrupts: signals}
		})
	default:
		report, err = o.read(ctx, args[0])
	}
	if report == nil {
		return probeError(err)
	}
	write := func() error { return writeValue(s.out, o.output, report) }
	if o.output == "table" {
		write = func() error { return writeReport(s.out, report) }
	}
	if failed := write(); err == nil {
		err = failed
	}
	if err == nil && len(report.Missing) > 0 {
		err = notFoundErrorf("%s", missingMessage(report.Missing, o.output))
	}
	return err
}

// check says what is wrong with the flags before anything is read or run.
func (o *collectOptions) check() error {
	o.format = strings.ToUpper(o.format)
	switch {
	case o.format != "" && !slices.Contains(probe.Formats(), o.format):
		return usageErrorf("--format %s: use one of %s", o.format, strings.Join(probe.Formats(), ", "))
	case !slices.Contains([]string{"table", "json", "yaml"}, o.output):
		return usageErrorf("-o %s: use one of table, json, yaml", o.output)
	}
	return nil
}

func probeError(err error) error {
	switch {
	case isUnreachable(err):
		return err // its code is known
	case errors.Is(err, probe.ErrNothing):
		return notFoundErrorf("%w", err)
	}
	return err
}

// read probes a file, a directory or an address.
func (o *collectOptions) read(ctx context.Context, path string) (*probe.Report, error) {
	target, err := probe.Open(probe.Config{Path: path, Format: o.format, Filters: o.filters})
	if err != nil {
		return nil, err
	}
	return probe.Run(ctx, target, o.metrics)
}

// readLive probes what may take long. The first signal ends what is read, the
// second one everything. What was read until a signal comes with an error.
func (o *collectOptions) readLive(ctx context.Context, s streams, what string, open func(<-chan os.Signal) probe.Target) (*probe.Report, error) {
	first, told := make(chan os.Signal, 1), make(chan os.Signal, 1)
	left := func(sig os.Signal) error {
		return &exitError{code: signalCode(sig), err: fmt.Errorf("left on %s", sig)}
	}
	ctx, cancel := onSignals(ctx, left, func(_ context.Context, sig os.Signal) (leave bool) {
		told <- sig
		first <- sig
		fmt.Fprintln(s.err, "vernier: waiting for the end of "+what+"; Ctrl-C again to leave at once")
		return false
	})
	defer cancel(nil)
	report, err := probe.Run(ctx, open(first), o.metrics)
	switch cause := context.Cause(ctx); {
	case err != nil && cause != nil:
		return nil, cause
	case err != nil:
		return nil, err
	}
	code := 0
	select {
	case sig := <-told:
		code = signalCode(sig)
	default:
		if report.Interrupted && report.ExitCode != nil { // a signal to the group ended the program first
			code = *report.ExitCode
		}
	}
	if code != 0 {
		err = &exitError{code: code, err: errors.New("interrupted")}
	}
	return report, err
}
