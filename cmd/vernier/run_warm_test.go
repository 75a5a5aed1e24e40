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
		name    string
		replace bool
		names   []string
		want    string
	}{
		{"new", false, nil, ""},
		{"new", false, []string{"charlm"}, ""},
		{"new", false, []string{"charlm", "chralm"}, "did you mean charlm?"},
		{"charlm", false, []string{"deleted"}, ""}, // it has begun, and goes on
		{"charlm", true, []string{"deleted"}, "no experiment"},
	} {
		o := scriptOptions{spec: script.Spec{WarmStart: tc.names}}
		err := o.checkWarm(t.Context(), s, s.key(tc.name), tc.replace)
		if (tc.want == "") != (err == nil) {
			t.Errorf("%v: %v", tc.names, err)
		}
		if err != nil {
			requireText(t, err.Error(), "--warm-start", tc.want)
		}
	}
}
