package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/restore"
)

const restoreHelp = `Make experiments, suggestions and trials again that were backed up with

  kubectl get experiments,suggestions,trials -A -o yaml >objects.yaml

with their states, and copy the curves of the trials from a backup of the store to the
store that the manager will open. The trials get other UIDs here; curves follow them.
It may be broken off and run again. Objects that are still there stay as they are. An
experiment that admission refuses today, or whose name another one has, is passed over
with its trials; the command then ends with an error that says why.

No manager may run meanwhile. When it does again, experiments that had not ended go on;
trials that ran when they were backed up start again, with the same parameters.`

func newRestoreCommand(open opener) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "restore FILE [--from STORE --to STORE]", Short: "Make experiments again from a backup", Long: restoreHelp,
		Example: "  kubectl vernier restore objects.yaml --from sqlite:backup.db --to sqlite:points.db",
		Args:    oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (from == "") != (to == "") || from != "" && from == to {
				return usageErrorf("give --from and --to, two different stores, or neither: then curves are left out")
			}
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			made, err := restoreObjects(cmd.Context(), args[0], session, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if from != "" {
				err = restoreCurves(cmd, from, to, made.UIDs)
			}
			if len(made.Refused) > 0 {
				err = errors.Join(err, fmt.Errorf("%d experiments are not restored, nor %d suggestions and trials of them; mend them in %s, and run this again",
					len(made.Refused), made.LeftOut, args[0]), errors.Join(made.Refused...))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "store that was backed up")
	cmd.Flags().StringVar(&to, "to", "", "store that the curves are copied to")
	return cmd
}

// restoreCurves copies the curves of what was made again, under its new UIDs.
func restoreCurves(cmd *cobra.Command, from, to string, made map[types.UID]types.UID) error {
	return withStore(cmd.Context(), from, func(source collector.Store) error {
		return with(cmd.Context(), to, store.Open, func(target collector.Store) error {
			return copyStore(cmd, source, target, func(id collector.TrialID) collector.TrialID {
				id.UID = string(made[types.UID(id.UID)])
				return id
			})
		})
	})
}

func restoreObjects(ctx context.Context, file string, s *session, out io.Writer) (restore.Restored, error) {
	f, err := os.Open(file)
	if err != nil {
		return restore.Restored{}, err
	}
	defer f.Close()
	objects, err := restore.Read(f)
	if err != nil {
		return restore.Restored{}, fmt.Errorf("%s: %w", file, err)
	}
	made, err := objects.Make(ctx, s.client, time.Now())
	if errors.Is(err, restore.ErrManagerRuns) {
		return made, &exitError{code: exitConflict, err: err}
	} else if err != nil {
		return made, err
	}
	fmt.Fprintf(out, "%d objects are restored\n", len(made.UIDs))
	return made, nil
}
