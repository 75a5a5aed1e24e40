package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

type heard struct{ texts []string }

func (h *heard) HandleWarningHeader(_ int, _, text string) { h.texts = append(h.texts, text) }

var _ rest.WarningHandler = (*heard)(nil)

// What the API server warns of is said in flags where these made the experiment.
func TestWarningsAreInTheWordsOfTheCommandLine(t *testing.T) {
	var h heard
	s := &session{}
	w := warnings{s, &h}
	w.HandleWarningHeader(299, "", "spec.maxGPUHours: never reached")
	var made v1beta1.Experiment
	made.Annotations = map[string]string{script.Annotation: "{}"}
	s.words = func(text string) string { return script.InFlags(&made, text) }
	w.HandleWarningHeader(299, "", "spec.maxGPUHours: never reached")
	if diff := cmp.Diff([]string{"spec.maxGPUHours: never reached", "--max-gpu-hours: never reached"}, h.texts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
