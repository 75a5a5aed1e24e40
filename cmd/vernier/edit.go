package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// newEditCommand makes the command that changes what may change of an experiment.
func newEditCommand(open opener) *cobra.Command {
	var trials, parallel, failed int32
	var duration, perTrial time.Duration
	var gpuHours float64
	cmd := &cobra.Command{
		Use:   "edit EXPERIMENT",
		Short: "Change the budgets of an experiment, also of one that has ended",
		Long: `Change the budgets of an experiment. More trials let one go on that has ended, with
resumePolicy LongRunning, which vernier run PROGRAM sets. Fewer trials than have ended
end it, and stop those that run. 0 takes away a limit of time or of GPU hours.`,
		Example: "  vernier edit charlm --max-trials 100 --parallel 8",
		Args:    oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec := map[string]any{}
			set := func(flag, field string, value any) {
				if cmd.Flags().Changed(flag) {
					spec[field] = value
				}
			}
			limit := func(zero bool, value any) any {
				if zero {
					return nil // which takes it away
				}
				return value
			}
			set("max-trials", "maxTrialCount", trials)
			set("parallel", "parallelTrialCount", parallel)
			set("max-failed", "maxFailedTrialCount", failed)
			set("max-duration", "maxDuration", limit(duration == 0, duration.String()))
			set("max-trial-duration", "maxTrialDuration", limit(perTrial == 0, perTrial.String()))
			set("max-gpu-hours", "maxGPUHours", limit(gpuHours == 0, gpuHours))
			if len(spec) == 0 {
				return usageErrorf("say what to change: --max-trials, --parallel, --max-failed, --max-duration, --max-trial-duration or --max-gpu-hours")
			}
			if err := checkHours(gpuHours); cmd.Flags().Changed("max-gpu-hours") && gpuHours != 0 && err != nil {
				return err
			}
			if trials < 0 || parallel < 0 || failed < 0 || duration < 0 || perTrial < 0 {
				return usageErrorf("a budget is not below zero")
			}
			return edit(cmd.Context(), args[0], spec, streams{out: cmd.OutOrStdout()}, open)
		},
	}
	f := cmd.Flags()
	f.Int32Var(&trials, "max-trials", 0, "how many trials there are in all")
	f.Int32VarP(&parallel, "parallel", "j", 0, "how many trials run at a time")
	f.Int32Var(&failed, "max-failed", 0, "how many trials may fail before the experiment fails")
	f.DurationVar(&duration, "max-duration", 0, "end the experiment this long after its start")
	f.DurationVar(&perTrial, "max-trial-duration", 0, "new trials that run longer fail")
	f.Float64Var(&gpuHours, "max-gpu-hours", 0, "end the experiment when its trials have used so many hours of GPUs")
	return cmd
}

// checkHours says what is wrong with a budget of GPU hours, whose bounds are the API's.
func checkHours(hours float64) error {
	if !(hours > 0 && hours <= 1e6) { // NaN is neither
		return usageErrorf("--max-gpu-hours %g: it must be above 0 and at most 1000000", hours)
	}
	return nil
}

func edit(ctx context.Context, name string, spec map[string]any, s streams, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	if _, err := readExperiment(ctx, session.client, session.key(name)); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	experiment := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: session.namespace, Name: name}}
	if err := session.client.Patch(ctx, experiment, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return refusedEdit(name, err)
	}
	view, err := loadExperiment(ctx, session.client, session.key(name))
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "experiment %s: %s\n", name, countsLine(view))
	if _, perTrial := spec["maxTrialDuration"]; perTrial {
		fmt.Fprint(s.out, untouched(view))
	}
	return nil
}

// untouched says that trials which run keep the limit of time that they began with.
func untouched(v experimentView) string {
	first, n := trialView{}, 0
	for _, t := range v.Trials {
		if t.State == string(v1beta1.TrialRunning) && !t.stopping() {
			if n++; n == 1 {
				first = t
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("--max-trial-duration holds for new trials; %s that run keep theirs, and vernier stop %s/%d ends one\n", countOfTrials(n), v.Experiment.Name, first.Number)
}

// budgetFlags are the flags of edit by the fields that they set.
var budgetFlags = map[string]string{
	"maxTrialCount": "--max-trials", "parallelTrialCount": "--parallel", "maxFailedTrialCount": "--max-failed",
	"maxDuration": "--max-duration", "maxTrialDuration": "--max-trial-duration", "maxGPUHours": "--max-gpu-hours",
}

// refusedEdit says in flags why nothing of an experiment was changed.
func refusedEdit(name string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return fmt.Errorf("edit experiment %s: %w", name, err)
	}
	var flags, faults []string // what is behind "in body" comes from the schema
	for budget, flag := range budgetFlags {
		flags = append(flags, "spec."+budget+" in body", "it", "spec."+budget, flag, budget, flag)
	}
	inFlags := strings.NewReplacer(flags...)
	for _, c := range status.Status().Details.Causes {
		flag, budget := budgetFlags[strings.TrimPrefix(c.Field, "spec.")]
		value, invalid := strings.CutPrefix(c.Message, field.ErrorTypeInvalid.String()+": ")
		switch text := inFlags.Replace(value); {
		case c.Field == "<nil>": // that the API server checked no more
		case c.Field == "spec" && invalid: // several budgets together
			faults = append(faults, text)
		case budget && invalid: // it begins with the value
			faults = append(faults, flag+" "+text)
		case budget:
			faults = append(faults, flag+": "+text)
		default:
			faults = append(faults, c.Field+": "+inFlags.Replace(c.Message))
		}
	}
	if len(faults) == 0 {
		return fmt.Errorf("edit experiment %s: %w", name, err)
	}
	return &exitError{exitCode(err), fmt.Errorf("experiment %s was not changed: %s", name, strings.Join(faults, "; "))}
}

func newDeleteCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "delete EXPERIMENT...", Short: "Delete experiments with their trials",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("name the experiments to delete: write %s", cmd.UseLine())
			}
			for _, name := range args {
				if err := noTrial(cmd, name); err != nil {
					return err
				}
			}
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, err := readExperiment(cmd.Context(), session.client, session.key(name)); err != nil {
					return err
				}
				if err := deleteAndWait(cmd.Context(), session.client, session.key(name)); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "experiment %s was deleted\n", name)
			}
			return nil
		},
	}
}
