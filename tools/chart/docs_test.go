package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The flags about the collector are of both deployments: admission injects it too.
func TestTheKustomizationOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "apiVersion: kustomize.config.k8s.io/v1beta1")
	text, _, _ = strings.Cut(text, "```")
	dir := t.TempDir()
	config, err := filepath.Abs(configDir)
	if err != nil {
		t.Fatal(err)
	}
	if config, err = filepath.Rel(dir, config); err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "https://github.com/vernier-ml/vernier/config/default?ref=v0.1.0", config, 1)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := build(dir)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]string{}
	for _, o := range objects {
		if o.kind() != "Deployment" {
			continue
		}
		pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		for _, arg := range pod["containers"].([]any)[0].(map[string]any)["args"].([]any) {
			arg := arg.(string)
			if strings.HasPrefix(arg, "--collector-") || strings.HasPrefix(arg, "--store-") {
				given[o.name()] = append(given[o.name()], arg)
			}
		}
		slices.Sort(given[o.name()])
	}
	image := "--collector-image=registry.example.com/vernier/collector:v0.1.0"
	want := map[string][]string{"vernier-manager": {image, "--store-max-age=720h"}, "vernier-webhook": {image}}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}
