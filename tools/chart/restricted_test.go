package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// Each pod of ours keeps to the profile restricted, writes to volumes only, and is asked
// whether it is alive and ready.
func TestPodsAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, values := range []string{"", "{certManager: {enabled: true}, kubeflow: {enabled: true}, store: {url: 'env:X'}, manager: {replicas: 2}}"} {
		pods := 0
		for name, o := range rendered(t, values) {
			if o.kind() != "Deployment" {
				continue
			}
			pods++
			raw, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var d appsv1.Deployment
			if err := yaml.UnmarshalStrict(raw, &d); err != nil {
				t.Fatal(err)
			}
			pod := d.Spec.Template
			for _, result := range checks.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: the container %s can write to its image's files", name, c.Name)
				}
				if c.LivenessProbe == nil || c.ReadinessProbe == nil {
					t.Errorf("%s: the container %s is not asked whether it is alive and ready", name, c.Name)
				}
			}
		}
		if pods != 2 {
			t.Errorf("%d deployments were read, want those of manager and webhook", pods)
		}
	}
}
