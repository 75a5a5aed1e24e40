package main

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// newSuspendCommand makes the commands suspend and resume.
func newSuspendCommand(open opener, suspend bool) *cobra.Command {
	use, short, said := "suspend", "Make no new trials of an experiment; those that run go on", "is suspended"
	if !suspend {
		use, short, said = "resume", "Make new trials of a suspended experiment again", "goes on"
	}
	return &cobra.Command{
		Use: use + " EXPERIMENT", Short: short, Example: "  vernier " + use + " charlm", Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			experiment := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: session.namespace, Name: args[0]}}
			patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend)
			if there, err := readExperiment(cmd.Context(), session.client, session.key(args[0])); err != nil {
				return err
			} else if suspend && there.IsCompleted() { // the webhook would refuse it with words about maxTrialCount
				return &exitError{exitConflict, fmt.Errorf("experiment %s has ended: it makes no new trials, so there is nothing to suspend", args[0])}
			}
			if err := session.client.Patch(cmd.Context(), experiment, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return fmt.Errorf("%s experiment %s: %w", use, args[0], err)
			}
			if how := experiment.Annotations[v1beta1.AnnotationEnd]; how != "" && !suspend {
				return &exitError{exitConflict, fmt.Errorf("experiment %s was ended by %s=%s, which is final: run the same search under another name", args[0], v1beta1.AnnotationEnd, how)}
			}
			if experiment.IsCompleted() && !suspend {
				return &exitError{exitConflict, fmt.Errorf("experiment %s has ended and makes no new trials: raise its limit with vernier edit %s --max-trials N", args[0], args[0])}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "experiment %s %s\n", args[0], said)
			return nil
		},
	}
}
