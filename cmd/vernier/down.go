package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local"
)

func newDownCommand(g *global) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the embedded control plane and its pods",
		Long: `Stop the pods, then the components. The state is kept; vernier up resumes it.

Programs get SIGTERM, and SIGKILL after the terminationGracePeriodSeconds of
their pod, at most 8 s; then their collectors may send the last points for 2 s
more. The pods fail with the condition DisruptionTarget. Trials whose Job has the
restartPolicy Never run again after vernier up, from their beginning or from a
checkpoint of their own; that is no failure of the trial. In another Job it
counts against its backoffLimit.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			if _, err := os.Stat(string(home)); errors.Is(err, fs.ErrNotExist) || err == nil && !remove && !home.Exists() {
				fmt.Fprintf(cmd.OutOrStdout(), "nothing to stop: there is no instance in %s\n", home)
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 90*time.Second)
			defer cancel()
			if err := local.Down(ctx, home); err != nil {
				return err
			}
			if !remove {
				fmt.Fprintf(cmd.OutOrStdout(), "stopped; the state is kept in %s\n", home)
				return nil
			}
			kept, err := local.Delete(home)
			if err != nil {
				return err
			}
			if len(kept) > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "stopped; removed the instance from %s, which also holds %s\n", home, strings.Join(kept, ", "))
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "stopped; removed %s\n", home)
			return nil
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "remove the instance too, with every experiment, result and log; other files in the home stay")
	return cmd
}
