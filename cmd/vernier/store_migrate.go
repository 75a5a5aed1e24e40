package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

func newStoreMigrateCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "migrate --from STORE --to STORE", Short: "Copy all curves from one store to another",
		Long: `Copy all curves from one store to another, of any kinds, and compare both: for each
trial its attempts, the number of its points and a checksum of them. Trials that are
equal already are passed over, so a copy that was broken off goes on where it was.
What else is in the target stays, and nothing is deleted from the source.

Stop the manager first: what is reported meanwhile may be missing in the copy.
For retention, copied trials count as having reported when they were copied.`,
		Example: "  export TARGET='postgres://vernier:PASSWORD@db/vernier'\n  vernier store migrate --from sqlite:/var/lib/vernier/points.db --to env:TARGET",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" || from == to {
				return usageErrorf("give --from and --to, two different stores")
			}
			return withStore(cmd.Context(), from, func(source collector.Store) error {
				return with(cmd.Context(), to, store.Open, func(target collector.Store) error {
					return copyStore(cmd, source, target, nil)
				})
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "store that is copied")
	cmd.Flags().StringVar(&to, "to", "", "store that it is copied to")
	return cmd
}

func copyStore(cmd *cobra.Command, source, target collector.Store, as func(collector.TrialID) collector.TrialID) error {
	p := copyProgress{out: cmd.ErrOrStderr(), now: time.Now, began: time.Now()}
	if err := store.Copy(cmd.Context(), source, target, as, p.show); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d trials with %d points are equal in both stores: %d were copied (%d points), %d were equal before\n",
		p.last.Trials, p.last.Points, p.last.Trials-p.last.Equal, p.last.Copied, p.last.Equal)
	return nil
}

// copyProgress shows how far a copy is, once a second at most.
type copyProgress struct {
	out          io.Writer
	now          func() time.Time
	began, shown time.Time
	last         store.CopyProgress
}

func (c *copyProgress) show(p store.CopyProgress) {
	c.last = p
	now := c.now()
	if now.Sub(c.shown) < time.Second && p.Trials < p.Total {
		return
	}
	c.shown = now
	rate := float64(p.Points) / max(now.Sub(c.began).Seconds(), 1e-3)
	fmt.Fprintf(c.out, "%d of %d trials, %d points, %.0f points/s\n", p.Trials, p.Total, p.Points, rate)
}
