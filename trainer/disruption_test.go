package trainer

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestRerunDisrupted(t *testing.T) {
	ignore := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	own := map[string]any{"rules": []any{map[string]any{
		"action": "FailJob", "onExitCodes": map[string]any{"operator": "In", "values": []any{int64(42)}},
	}}}
	for name, test := range map[string]struct {
		apiVersion, restart string
		more                map[string]any
		want                *batchv1.PodFailurePolicy
	}{
		"a Job that does not restart":        {"batch/v1", "Never", nil, ignore},
		"a Job that says the default":        {"batch/v1", "Never", map[string]any{"podReplacementPolicy": "Failed"}, ignore},
		"a Job that restarts":                {"batch/v1", "OnFailure", nil, nil},
		"a Job that says nothing":            {"batch/v1", "", nil, nil},
		"a Job that replaces too early":      {"batch/v1", "Never", map[string]any{"podReplacementPolicy": "TerminatingOrFailed"}, nil},
		"a Job of another controller":        {"batch/v1", "Never", map[string]any{"managedBy": "example.com/other"}, nil},
		"another kind with the name of ours": {"example.com/v1", "Never", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := map[string]any{"containers": []any{map[string]any{"name": "main"}}}
			if test.restart != "" {
				pod["restartPolicy"] = test.restart
			}
			spec := map[string]any{"template": map[string]any{"spec": pod}}
			maps.Copy(spec, test.more)
			job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.apiVersion, "kind": "Job", "spec": spec}}
			rerunDisrupted(job)
			rerunDisrupted(job)
			var got batchv1.Job
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Spec.PodFailurePolicy); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a Job with a policy", func(t *testing.T) {
		job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{
			"podFailurePolicy": own, "template": map[string]any{"spec": map[string]any{"restartPolicy": "Never"}},
		}}}
		before := job.DeepCopy()
		rerunDisrupted(job)
		if diff := cmp.Diff(before, job); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheJobsOfAJobSetRerunWhatIsDisrupted(t *testing.T) {
	jobs := []any{}
	for _, restart := range []string{"Never", "OnFailure"} {
		jobs = append(jobs, map[string]any{"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": restart}}}}})
	}
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": map[string]any{"replicatedJobs": jobs}}}
	rerunDisrupted(set)
	var got []bool
	for _, job := range jobs {
		got = append(got, at(job, "template", "spec", "podFailurePolicy") != nil)
	}
	if diff := cmp.Diff([]bool{true, false}, got); diff != "" {
		t.Errorf("which have a policy (-want +got):\n%s", diff)
	}
}

// Its pods train together: that one is replaced does not help the others.
func TestAJobSetThatIsStartedAgainAsAWholeKeepsItsPolicy(t *testing.T) {
	job := map[string]any{"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never"}}}}}
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": map[string]any{
		"failurePolicy": map[string]any{"maxRestarts": int64(3)}, "replicatedJobs": []any{job},
	}}}
	want := set.DeepCopy()
	rerunDisrupted(set)
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
}
