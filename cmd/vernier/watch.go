package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func newWatchCommand(open opener) *cobra.Command {
	var progress string
	cmd := &cobra.Command{
		Use:   "watch EXPERIMENT",
		Short: "Show the progress of an experiment until it ends",
		Long: `Show the progress of an experiment until it ends, and its best trial, with the exit
codes of run. Ctrl-C leaves the view; the experiment goes on.`,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			d, err := newDisplay(progress, s.err)
			if err != nil {
				return err
			}
			ctx, release := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer release()
			return watch(ctx, args[0], d, s, open)
		},
	}
	choiceFlag(cmd, &progress, "progress", "", "auto, live, plain or none", "auto", "live", "plain", "none")
	return cmd
}

func watch(ctx context.Context, name string, d display, s streams, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	key := session.key(name)
	if _, err := loadExperiment(ctx, session.client, key); err != nil {
		return err
	}
	var last experimentView
	err = follow(ctx, session, key, func(v experimentView, now time.Time) (bool, error) {
		last = v
		return v.finished(), d.show(v, now)
	})
	switch {
	case ctx.Err() != nil:
		return nil // the person who watched has seen enough
	case err != nil:
		return err
	}
	last.BestStep = session.bestStep(ctx, last)
	_, told := d.(*plainDisplay)
	return conclude(last, ending{told: told}, s)
}
