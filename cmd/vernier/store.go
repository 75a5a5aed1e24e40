package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

const storeHelp = `Look after stores of points.

A store is sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT/DATABASE.
A URL with a password is not taken from the command line, where everybody on the
machine sees it: put it into an environment variable and write env:NAME, or into
a file and write file:PATH.

Without a store, stat and prune take that of the embedded instance: the file
store/observations.db in its home.`

type ownStore func() (address string, err error)

// storeOf is the store that the arguments name, or the instance's own.
func (own ownStore) storeOf(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	return own()
}

// with calls act with the named store, or the instance's own where name is empty.
func (own ownStore) with(ctx context.Context, name string, act func(collector.Store) error) error {
	var named []string
	if name != "" {
		named = []string{name}
	}
	address, err := own.storeOf(named)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return withStore(ctx, address, act)
}

func (g *global) instanceStore() (string, error) {
	home, err := g.instanceHome()
	if err != nil {
		return "", err
	}
	path := home.StorePath()
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", notFoundErrorf("there is no store of an instance at %s: name a store, or the instance with --home", path)
		}
		return "", err
	}
	return "sqlite:" + path, nil
}

// noInstanceStore is for kubectl's plugin, which has no instance.
func noInstanceStore() (string, error) {
	return "", usageErrorf("name a store: sqlite:PATH, postgres://..., mysql://..., env:NAME or file:PATH")
}

func newStoreCommand(own ownStore) *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Look after stores of points", Long: storeHelp,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStoreMigrateCommand(), newStorePruneCommand(own), newStoreStatCommand(own))
	return cmd
}

// withStore opens a store that is there, calls act, and closes it.
func withStore(ctx context.Context, address string, act func(collector.Store) error) error {
	return with(ctx, address, store.OpenExisting, act)
}

func with(ctx context.Context, address string, open func(context.Context, string) (collector.Store, error),
	act func(collector.Store) error) error {
	if err := store.CheckArgument(address); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	s, err := open(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(act(s), s.Close())
}

func newStoreStatCommand(own ownStore) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "stat [STORE]", Short: "Show how large a store is",
		Long:    "Show how large a store is, and what a point takes up. All points are counted, which may take a while.",
		Example: "  vernier store stat                       the store of the embedded instance\n  vernier store stat sqlite:/var/lib/vernier/points.db\n  vernier store stat env:VERNIER_STORE -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := own.storeOf(args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), address, func(s collector.Store) error {
				stat, err := s.Stat(cmd.Context())
				if err != nil {
					return err
				}
				return writeStat(cmd.OutOrStdout(), output, stat)
			})
		},
	}
	outputFlag(cmd, &output, "table, json or yaml", "table", "json", "yaml")
	return cmd
}

func writeStat(out io.Writer, output string, stat collector.Stat) error {
	perPoint := 0.0
	if stat.Points > 0 {
		perPoint = float64(stat.Bytes) / float64(stat.Points)
	}
	if output != "table" {
		return writeValue(out, output, map[string]any{
			"engine": stat.Engine, "schema": stat.Schema, "bytes": stat.Bytes, "points": stat.Points,
			"trials": stat.Trials, "experiments": stat.Experiments, "bytesPerPoint": perPoint,
		})
	}
	t := &table{header: []string{"ENGINE", "SCHEMA", "SIZE", "POINTS", "BYTES/POINT", "TRIALS", "EXPERIMENTS"}}
	t.add(stat.Engine, fmt.Sprint(stat.Schema), fmt.Sprintf("%.1f MB", float64(stat.Bytes)/1e6), fmt.Sprint(stat.Points),
		fmt.Sprintf("%.1f", perPoint), fmt.Sprint(stat.Trials), fmt.Sprint(stat.Experiments))
	return t.write(out, false)
}

func newStorePruneCommand(own ownStore) *cobra.Command {
	var r store.Retention
	var keep []string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune [STORE]", Short: "Delete the curves of old experiments",
		Long: `Delete the curves of experiments that have not reported for a while, or of all but
those that reported last. An experiment's curves go together. The results of trials,
which stand in their status, stay.

The manager does so by itself, with --store-max-age and --store-max-experiments,
and keeps the curves of trials that run and of best trials. This command does not
know them: name with --keep what must stay.`,
		Example: "  vernier store prune sqlite:points.db --max-age 720h --keep default/random-0007",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRetention(&r, keep); err != nil {
				return err
			}
			address, err := own.storeOf(args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), address, func(s collector.Store) error {
				return prune(cmd, s, r, dryRun)
			})
		},
	}
	cmd.Flags().DurationVar(&r.MaxAge, "max-age", 0, "delete experiments that have not reported for this long, at least 2h")
	cmd.Flags().IntVar(&r.MaxExperiments, "max-experiments", 0, "keep this many experiments, those that reported last")
	cmd.Flags().StringSliceVar(&keep, "keep", nil, "NAMESPACE/TRIAL that stays; may be given many times")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be deleted")
	return cmd
}

func checkRetention(r *store.Retention, keep []string) error {
	if r.Zero() || r.MaxExperiments < 0 || r.MaxAge < 0 || r.MaxAge > 0 && r.MaxAge < store.MinAge {
		return usageErrorf("give --max-age of at least %s, or --max-experiments above 0, or both", store.MinAge)
	}
	names := map[string]bool{}
	for _, name := range keep {
		if namespace, trial, ok := strings.Cut(name, "/"); !ok || namespace == "" || trial == "" {
			return usageErrorf("--keep %q: write NAMESPACE/TRIAL", name)
		}
		names[name] = true
	}
	r.Keep = func(id collector.TrialID) bool { return names[id.Namespace+"/"+id.Name] }
	return nil
}

func prune(cmd *cobra.Command, s collector.Store, r store.Retention, dryRun bool) error {
	verb := "deleted"
	if dryRun {
		verb, s = "would delete", undeleted{s}
	}
	for n := 0; ; {
		done, err := store.Prune(cmd.Context(), s, r, time.Now())
		for _, id := range done.Trials {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s (%s)\n", verb, id.Namespace, id.Name, id.UID)
		}
		n += len(done.Trials)
		if err != nil {
			return err
		}
		if !done.More || dryRun {
			more := ""
			if done.More {
				more = ", and more"
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s the curves of %d trials%s\n", verb, n, more)
			return nil
		}
	}
}

type undeleted struct{ collector.Store }

func (undeleted) Delete(context.Context, string) error { return nil }
