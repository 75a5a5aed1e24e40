package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/collector"
)

const tensorboardHelp = `Show an experiment in TensorBoard: one run for each trial, with its parameters for the
HPARAMS tab. New trials and points are added while it runs.

The runs of trials are their event files where these are on a volume that is a folder
of this machine, as hostPath and claims of the embedded control plane are; otherwise
their curves, from the store. TensorBoard is the one of your virtual environment, or
of PATH. What follows -- is passed on to it.`

// refresh is how often the folder is brought up to date.
const refresh = 5 * time.Second

type tensorboardOptions struct {
	folder, store string
	folderOnly    bool
}

func newTensorboardCommand(open opener, own ownStore) *cobra.Command {
	var o tensorboardOptions
	cmd := &cobra.Command{
		Use:   "tensorboard EXPERIMENT [flags] [-- TENSORBOARD_FLAGS...]",
		Short: "Show the curves and parameters of an experiment in TensorBoard",
		Long:  tensorboardHelp,
		Example: `  vernier tensorboard charlm
  vernier tensorboard charlm -- --port 6007
  tensorboard --logdir $(vernier tensorboard charlm --logdir-only)`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() > 1 || cmd.ArgsLenAtDash() < 0 && len(args) > 1 {
				return usageErrorf("%s needs an experiment: write %s", cmd.CommandPath(), cmd.UseLine())
			}
			if err := noTrial(cmd, args[0]); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], args[1:], streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}, open, own)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.folder, "logdir", "", "folder for the runs, a new or empty one at first, and one for each experiment; runs of trials that are not there any more are removed (default: one in your cache directory)")
	f.BoolVar(&o.folderOnly, "logdir-only", false, "write the runs once and print their folder; do not start TensorBoard")
	f.StringVar(&o.store, "store", "", "store of the points: sqlite:PATH, postgres://..., mysql://..., env:NAME or file:PATH (default: that of the embedded instance)")
	return cmd
}

func (o tensorboardOptions) run(ctx context.Context, name string, more []string, s streams, open opener, own ownStore) error {
	var named []string
	if o.store != "" {
		named = []string{o.store}
	}
	address, err := own.storeOf(named)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	program := ""
	if !o.folderOnly {
		if program, err = findTensorboard(); err != nil {
			return err
		}
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	runs := newRunFolder(session, o.folder)
	sync := func(ctx context.Context) (view experimentView, err error) {
		if view, err = loadExperiment(ctx, session.client, session.key(name)); err != nil {
			return view, err
		}
		if runs.root == "" {
			if runs.root, err = defaultFolder(view); err != nil {
				return view, err
			}
		}
		return view, withStore(ctx, address, func(points collector.Store) error {
			return runs.write(ctx, view, points)
		})
	}
	view, err := sync(ctx)
	if err != nil {
		return err
	}
	if o.folderOnly {
		fmt.Fprintln(s.out, runs.root)
		return nil
	}
	fmt.Fprintf(s.err, "%d trials of %s are in %s\n", len(view.Trials), name, runs.root)
	// A signal that this process alone gets must not leave TensorBoard behind.
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	go keep(ctx, func(ctx context.Context) {
		if _, err := sync(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.err, "warning: new trials are not shown for now: %v\n", err)
		}
	})
	return showTensorboard(ctx, program, append([]string{"--logdir", runs.root}, more...), s)
}

// keep calls sync again and again. A long one is followed by a longer pause.
func keep(ctx context.Context, sync func(context.Context)) {
	pause := refresh
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		sync(ctx)
		pause = max(refresh, 5*time.Since(begun))
	}
}

// showTensorboard runs it until it ends, or ctx does.
func showTensorboard(ctx context.Context, program string, args []string, s streams) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, s.out, s.err
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// findTensorboard prefers the active virtual environment, which PATH may not have.
func findTensorboard() (string, error) {
	for _, folder := range []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX")} {
		if folder == "" {
			continue
		}
		if program, err := exec.LookPath(filepath.Join(folder, "bin", "tensorboard")); err == nil {
			return program, nil
		}
	}
	program, err := exec.LookPath("tensorboard")
	if errors.Is(err, exec.ErrNotFound) {
		return "", notFoundErrorf("there is no tensorboard here: install it by python3 -m pip install tensorboard setuptools, in a virtual environment for example, or print the folder for one that runs elsewhere by --logdir-only")
	}
	return program, err
}

// defaultFolder is new for an experiment that was made again.
func defaultFolder(v experimentView) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the runs: %w; name one by --logdir", err)
	}
	e := v.Experiment
	uid := string(e.UID)
	return filepath.Join(cache, "vernier", "tensorboard", fmt.Sprintf("%s.%s-%s", e.Namespace, e.Name, uid[:min(8, len(uid))])), nil
}
