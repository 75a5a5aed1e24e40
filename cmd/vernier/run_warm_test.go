package main

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

func TestExperimentsToBeginWithAreLookedFor(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	there := anExperiment()
	s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build(), namespace: there.Namespace}
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"charlm"}, ""},
		{[]string{"charlm", "chralm"}, "did you mean charlm?"},
	} {
		o := scriptOptions{spec: script.Spec{WarmStart: tc.names}}
		err := o.checkWarm(t.Context(), s)
		if (tc.want == "") != (err == nil) {
			t.Errorf("%v: %v", tc.names, err)
		}
		if err != nil {
			requireText(t, err.Error(), "--warm-start", tc.want)
		}
	}
}
