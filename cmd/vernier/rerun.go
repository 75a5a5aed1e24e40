package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// existing reads the experiment of that name, or returns nil when there is none.
func existing(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1beta1.Experiment, error) {
	var experiment v1beta1.Experiment
	err := c.Get(ctx, key, &experiment)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read experiment %s: %w", key, err)
	}
	return &experiment, nil
}

// checkLimit refuses a file that would lower the maxTrialCount of a running
// experiment, which stops trials, unless it may: the limit may have been raised since.
// One that has ended keeps its trials, so its limit cannot be below their number.
func checkLimit(there *v1beta1.Experiment, file *unstructured.Unstructured, lower bool) error {
	limit, found, err := unstructured.NestedInt64(file.Object, "spec", "maxTrialCount")
	if there == nil || !found || err != nil {
		return nil // what is no number is refused by the API server
	}
	now := "no maxTrialCount"
	if n := there.Spec.MaxTrialCount; n != nil {
		if int64(*n) <= limit {
			return nil
		}
		now = fmt.Sprintf("maxTrialCount %d", *n)
	}
	ended, trials := newExperimentView(there, nil).finished(), there.Status.Trials
	switch {
	case ended && limit < int64(trials):
		return &exitError{code: exitConflict, err: fmt.Errorf("experiment %s has ended with %d trials, more than the limit of %d: vernier best %s shows its result, a higher limit adds trials, and --replace deletes it with its trials and runs it anew", there.Name, trials, limit, there.Name)}
	case ended || lower:
		return nil
	}
	return &exitError{code: exitConflict, err: fmt.Errorf("experiment %s runs with %s, and the limit given is %d: give a higher one, or lower it with --lower, which may stop running trials", there.Name, now, limit)}
}

// nothingRuns reports whether v had ended before the files were applied and they
// changed nothing in it.
func nothingRuns(before *v1beta1.Experiment, v experimentView) bool {
	return before != nil && v.finished() && v.Experiment.UID == before.UID && v.Experiment.Generation == before.Generation
}

// endedBefore reports whether v still shows the old end of an experiment that the
// files let go on.
func endedBefore(before *v1beta1.Experiment, v experimentView) bool {
	return before != nil && !nothingRuns(before, v) && v.Experiment.UID == before.UID &&
		v.Experiment.Status.CompletionTime.Equal(before.Status.CompletionTime)
}

func nothingRan(v experimentView, now time.Time) string {
	ago := ""
	if t := v.Experiment.Status.CompletionTime; t != nil {
		ago = " " + age(now.Sub(t.Time)) + " ago"
	}
	return fmt.Sprintf("experiment %s ended%s; nothing was run; --replace runs it anew", v.Experiment.Name, ago)
}

// makeRoom deletes the experiment of that name, once the API server has accepted the
// new one in a dry run: a mistake in a file costs no results. What else is in the files
// is applied before, as the experiment may refer to it.
func (s *session) makeRoom(ctx context.Context, objects []*unstructured.Unstructured, experiment *unstructured.Unstructured) error {
	key := s.keyOf(experiment)
	others := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o == experiment })
	if err := s.apply(ctx, others); err != nil {
		return err
	}
	err := patiently(ctx, func() error {
		candidate := experiment.DeepCopy()
		candidate.SetNamespace(key.Namespace)
		return s.client.Create(ctx, candidate, client.DryRunAll, fieldOwner)
	})
	// The name is looked up after everything else was checked.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("experiment %s is not replaced: %w", key, err)
	}
	return deleteAndWait(ctx, s.client, key)
}

// inFlags is an error about an experiment in words of the command line that made it.
func inFlags(experiment *unstructured.Unstructured, err error) error {
	var e v1beta1.Experiment
	if failed := kruntime.DefaultUnstructuredConverter.FromUnstructured(experiment.Object, &e); failed != nil {
		return err
	}
	if text := script.InFlags(&e, err.Error()); text != err.Error() {
		return &exitError{code: exitCode(err), err: errors.New(text)}
	}
	return err
}

// refusedRerun adds --replace to the refusal of a change to a finished experiment.
func refusedRerun(err error, before *v1beta1.Experiment) error {
	if before == nil || exitCode(err) != exitInvalid {
		return err
	}
	return &exitError{code: exitInvalid, err: fmt.Errorf("%w; experiment %s has ended: --replace deletes it with its trials and runs the files anew", err, before.Name)}
}
