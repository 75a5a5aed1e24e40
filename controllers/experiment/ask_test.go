package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// A trial that was made anew under the same name must not be stopped in place of
// the one that was looked at: an API server refuses a patch with another UID
// than the object's, as one of a field that is immutable.
func TestOnlyTheTrialThatWasLookedAtIsAskedToStop(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	trials := schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "trials"}
	refused := func(field string) error {
		path := schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Trial"}
		return apierrors.NewInvalid(path, "demo-0001", fieldpath.ErrorList{fieldpath.Invalid(fieldpath.NewPath("metadata", field), "seen", "field is immutable")})
	}
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"it is asked":             {nil, false},
		"another one has come":    {refused("uid"), false},
		"the reason is refused":   {refused("annotations"), true},
		"it is gone":              {apierrors.NewNotFound(trials, "demo-0001"), false},
		"the API server is ill":   {apierrors.NewInternalError(errors.New("disk full")), true},
		"the manager may not ask": {apierrors.NewForbidden(trials, "demo-0001", errors.New("no role")), true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent map[string]any
			catch := interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
				data, err := p.Data(o)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(data, &sent); err != nil {
					return err
				}
				return c.answer
			}}
			e := New(Options{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(catch).Build()})
			seen := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "demo-0001", UID: "seen"}}
			if err := e.ask(t.Context(), seen, v1beta1.AnnotationStop, "the goal is reached"); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			want := map[string]any{"metadata": map[string]any{
				"uid": "seen", "annotations": map[string]any{v1beta1.AnnotationStop: "the goal is reached"},
			}}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}
