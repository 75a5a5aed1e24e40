package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
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

// A node can be drained whatever the number of replicas: a budget that allows no
// disruption would hold it up for ever.
func TestBudgetsLetNodesBeDrained(t *testing.T) {
	for _, values := range []string{"", "{webhook: {replicas: 1}}", "{store: {url: 'env:X'}, manager: {replicas: 3}, webhook: {replicas: 3}}"} {
		budgets := 0
		for name, o := range rendered(t, values) {
			if o.kind() != "PodDisruptionBudget" {
				continue
			}
			budgets++
			raw, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var b policyv1.PodDisruptionBudget
			if err := yaml.UnmarshalStrict(raw, &b); err != nil {
				t.Fatal(err)
			}
			if most := b.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 {
				t.Errorf("%s with the values %q: maxUnavailable is %v, want 1", name, values, most)
			}
		}
		if budgets != 2 {
			t.Errorf("%d budgets were read, want those of manager and webhook", budgets)
		}
	}
}

// After an upgrade the replicas of each deployment are on nodes of their own still: pods
// that were replaced do not count.
func TestReplicasAreSpreadAfterAnUpgrade(t *testing.T) {
	for name, o := range rendered(t, "") {
		if o.kind() != "Deployment" {
			continue
		}
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict(raw, &d); err != nil {
			t.Fatal(err)
		}
		var keys [][]string
		for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
			keys = append(keys, c.MatchLabelKeys)
		}
		if diff := cmp.Diff([][]string{{appsv1.DefaultDeploymentUniqueLabelKey}}, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
