package main

import (
	"errors"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// anEnded experiment ended at noon.
func anEnded() *v1beta1.Experiment {
	e := ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", "")
	e.UID, e.Generation = "one", 3
	e.Status.CompletionTime = &metav1.Time{Time: noon}
	return e
}

func TestFilesThatAreRunAgain(t *testing.T) {
	change := func(act func(*v1beta1.Experiment)) *v1beta1.Experiment {
		e := anEnded()
		act(e)
		return e
	}
	tests := map[string]struct {
		before, now     *v1beta1.Experiment
		nothing, notYet bool
	}{
		"a new one":                           {nil, anExperiment(), false, false},
		"a new one that has ended":            {nil, anEnded(), false, false},
		"one that has ended and is unchanged": {anEnded(), anEnded(), true, false},
		"one that was replaced":               {anEnded(), change(func(e *v1beta1.Experiment) { e.UID = "two" }), false, false},
		"one that goes on, before it is seen": {anEnded(), change(func(e *v1beta1.Experiment) { e.Generation++ }), false, true},
		"one that goes on":                    {anEnded(), change(func(e *v1beta1.Experiment) { e.Generation++; e.Status.CompletionTime = nil }), false, false},
		"one that went on and has ended, later": {anEnded(), change(func(e *v1beta1.Experiment) {
			e.Generation++
			e.Status.CompletionTime = &metav1.Time{Time: noon.Add(time.Minute)}
		}), false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := newExperimentView(test.now, nil)
			if got := nothingRuns(test.before, v); got != test.nothing {
				t.Errorf("nothing runs: %v", got)
			}
			if got := endedBefore(test.before, v); got != test.notYet {
				t.Errorf("an old end: %v", got)
			}
		})
	}
	const want = "experiment charlm ended 10m ago; nothing was run; --replace runs it anew"
	if got := nothingRan(newExperimentView(anEnded(), nil), noon.Add(10*time.Minute)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestARefusedChangeNamesReplace(t *testing.T) {
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Experiment"}, "charlm", nil)
	err := refusedRerun(refusal, anEnded())
	if exitCode(err) != exitInvalid {
		t.Errorf("code %d", exitCode(err))
	}
	requireText(t, err.Error(), "--replace")
	for name, same := range map[string]error{"of a new one": refusedRerun(refusal, nil), "for another reason": refusedRerun(errors.New("x"), anEnded())} {
		if text := same.Error(); text != refusal.Error() && text != "x" {
			t.Errorf("%s: %v", name, same)
		}
	}
	if err := refusedRerun(nil, anEnded()); err != nil {
		t.Error(err)
	}
}

func TestFinishedBefore(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "default", Name: "charlm"}
	for name, test := range map[string]struct {
		there *v1beta1.Experiment
		want  bool
	}{"none": {nil, false}, "one that runs": {anExperiment(), false}, "one that has ended": {anEnded(), true}} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme)
			if test.there != nil {
				b = b.WithObjects(test.there)
			}
			got, err := finishedBefore(t.Context(), b.Build(), key)
			if err != nil || (got != nil) != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
