package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// TestDocumentedExperiments holds that the parts of Experiments that are shown
// in the documentation of the search are read, and accepted.
func TestDocumentedExperiments(t *testing.T) {
	files, err := filepath.Glob("../../docs/algorithms/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../docs/search-space.md", "../../docs/stopping.md")
	shown := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```") {
			language, body, _ := strings.Cut(block, "\n")
			if i%2 == 0 || language != "yaml" {
				continue
			}
			shown++
			t.Run(filepath.Base(file), func(t *testing.T) { acceptPart(t, body) })
		}
	}
	if shown < 30 {
		t.Errorf("%d parts of Experiments are shown", shown)
	}
}

func acceptPart(t *testing.T, body string) {
	t.Helper()
	var exp v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(body), &exp); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	v1beta1.SetDefaults(&exp)
	errs := append(Check(&exp.Spec), CheckStopping(&exp.Spec)...)
	if len(errs) > 0 {
		t.Errorf("%v\n%s", errs.ToAggregate(), body)
	}
}
