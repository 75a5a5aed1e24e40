package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// What was proposed while several trials ran, before a manager died and after it, is
// derived again from the objects; a point that was changed is found.
func TestReplay(t *testing.T) {
	const trials = 18
	w := newWorld(t, never)
	w.apiToken = filepath.Join(t.TempDir(), "api.token")
	stop := w.start()
	e := w.experiment("exp", outside(3, trials), func(e *v1beta1.Experiment) {
		e.Spec.Seed, e.Spec.Algorithm.AlgorithmName = ptr.To[int64](playSeed), "tpe"
		e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "n_startup_trials", Value: "4"}}
		e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "1e-05", Max: "0.1", Distribution: v1beta1.DistributionLogUniform}
	})
	w.create(e)
	c := w.caller()
	var running []*vernierv1.Trial
	for begun, step := 0, 0; begun < trials || len(running) > 0; step++ {
		if step == trials/2 {
			stop()
			w.start()
			c = w.caller()
		}
		if begun < trials && len(running) < 3 {
			got := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), MaxWait: durationpb.New(20 * time.Second)})
			begun, running = begun+len(got), append(running, got...)
			continue
		}
		at := step % len(running) // not the oldest first
		w.complete(c, succeeded(running[at], playLoss(running[at].GetParameters()["lr"].GetNumberValue())))
		running = slices.Delete(running, at, at+1)
	}
	replay := func() (differ, left []string) {
		t.Helper()
		exp := &v1beta1.Experiment{}
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), exp); err != nil {
			t.Fatal(err)
		}
		v1beta1.SetDefaults(exp)
		err := study.Replay(t.Context(), exp, v1beta1.SortTrials(w.trialsOf(e)), nil, nil, func(r study.Replayed) {
			switch {
			case r.Reason != "":
				left = append(left, r.Trial.Name)
			case len(r.Differences) > 0:
				differ = append(differ, r.Trial.Name)
			case r.Asked.Version == "" || r.Asked.Late:
				t.Errorf("%s was asked for so: %+v", r.Trial.Name, r.Asked)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return differ, left
	}
	if differ, left := replay(); len(differ)+len(left) > 0 {
		t.Errorf("%v differ, and %v cannot be compared", differ, left)
	}
	last := v1beta1.SortTrials(w.trialsOf(e))[trials-1]
	changed := last.DeepCopy()
	changed.Spec.ParameterAssignments[0].Value = "0.05"
	if err := w.client.Patch(t.Context(), changed, client.MergeFrom(last)); err != nil {
		t.Fatal(err)
	}
	if differ, left := replay(); !cmp.Equal(differ, []string{last.Name}) || len(left) > 0 {
		t.Errorf("%v differ, want the last one, and %v cannot be compared", differ, left)
	}
}
