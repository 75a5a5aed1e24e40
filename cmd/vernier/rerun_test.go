package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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

// TestALowerLimitIsNotAppliedUnasked is about files that are run while their
// experiment runs with a maxTrialCount that was raised meanwhile.
func TestALowerLimitIsNotAppliedUnasked(t *testing.T) {
	file := "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: charlm, namespace: default}\nspec: {maxTrialCount: 24}\n"
	without := "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: charlm, namespace: default}\nspec: {}\n"
	running := func(limit *int32) *v1beta1.Experiment {
		e := anExperiment()
		e.Spec.MaxTrialCount = limit
		return e
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		there  *v1beta1.Experiment
		file   string
		refuse bool
	}{
		"a lower limit":             {running(ptr.To[int32](60)), file, true},
		"the same limit":            {running(ptr.To[int32](24)), file, false},
		"a higher limit":            {running(ptr.To[int32](10)), file, false},
		"a limit where none was":    {running(nil), file, true},
		"no limit in the file":      {running(ptr.To[int32](60)), without, false},
		"no such experiment":        {nil, file, false},
		"an experiment that is new": {anExperiment(), file, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := decodeManifest([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.there != nil {
				builder = builder.WithObjects(tc.there)
			}
			s := &session{client: builder.Build(), namespace: "default"}
			_, err = submit(t.Context(), runOptions{}, s, objects, objects[0], io.Discard)
			if tc.refuse != (exitCode(err) == exitConflict) || !tc.refuse && err != nil {
				t.Fatalf("got %v", err)
			}
			if tc.refuse {
				requireText(t, err.Error(), "maxTrialCount", "24", "--lower")
				if _, err := submit(t.Context(), runOptions{lower: true}, s, objects, objects[0], io.Discard); err != nil {
					t.Errorf("with --lower: %v", err)
				}
			}
			var now v1beta1.Experiment
			if err := s.client.Get(t.Context(), s.keyOf(objects[0]), &now); err != nil {
				t.Fatal(err)
			}
			if limit := now.Spec.MaxTrialCount; tc.file == file && *limit != 24 {
				t.Errorf("maxTrialCount is %d", *limit)
			}
		})
	}
}

// TestReplaceKeepsWhatItCannotReplace is about a file with a mistake: the experiment of
// that name, with its results, stays.
func TestReplaceKeepsWhatItCannotReplace(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	file := "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: charlm, namespace: default}\nspec: {maxTrialCount: 24}\n"
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Experiment"}, "charlm", nil)
	for name, refused := range map[string]bool{"a good file": false, "a file with a mistake": true} {
		t.Run(name, func(t *testing.T) {
			objects, err := decodeManifest([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			there := anEnded()
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					var asked client.CreateOptions
					if asked.ApplyOptions(opts); len(asked.DryRun) > 0 && refused {
						return refusal
					}
					return c.Create(ctx, o, opts...)
				},
			}).Build()
			s := &session{client: c, namespace: "default"}
			_, err = submit(t.Context(), runOptions{replace: true}, s, objects, objects[0], io.Discard)
			if (exitCode(err) == exitInvalid) != refused || !refused && err != nil {
				t.Errorf("got %v", err)
			}
			var now v1beta1.Experiment
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(there), &now); err != nil {
				t.Fatal(err)
			}
			if kept := now.UID == there.UID; kept != refused {
				t.Errorf("the old experiment is kept: %v", kept)
			}
		})
	}
}

func TestALimitBelowTheTrialsOfWhatHasEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		trials, was int32
		limit       int64
		refused     bool
	}{
		"fewer than there are":                  {15, 15, 5, true},
		"as many":                               {15, 15, 15, false},
		"more":                                  {15, 15, 20, false},
		"the same, and one was made by hand":    {16, 15, 15, false},
		"one that was stopped early, as it was": {7, 7, 12, false},
	} {
		t.Run(name, func(t *testing.T) {
			there := anEnded()
			there.Status.Trials, there.Spec.MaxTrialCount = tc.trials, &tc.was
			file := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"maxTrialCount": tc.limit}}}
			err := checkLimit(there, file, true)
			if (err != nil) != tc.refused || tc.refused && exitCode(err) != exitConflict {
				t.Errorf("refused: %v", err)
			}
		})
	}
}
