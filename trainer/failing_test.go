package trainer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/trainer"
)

func TestFailing(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ofJob := func(name string, phase corev1.PodPhase, code int32, ago time.Duration) corev1.Pod {
		p := pod(name, &terminated{ExitCode: code, FinishedAt: metav1.NewTime(now.Add(-ago))})
		p.Status.Phase = phase
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "exp-0001", Controller: ptr.To(true)}}
		return p
	}
	first, second := ofJob("a", corev1.PodFailed, 1, time.Minute), ofJob("b", corev1.PodFailed, 2, 20*time.Second)
	drained := ofJob("c", corev1.PodFailed, 143, 10*time.Second)
	drained.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	ofWorkflow := ofJob("d", corev1.PodFailed, 1, time.Minute)
	ofWorkflow.OwnerReferences[0].Kind = "Workflow"
	ofVolcano := *ofWorkflow.DeepCopy()
	ofVolcano.OwnerReferences[0] = metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "exp-0001", Controller: ptr.To(true)}
	silent := ofJob("e", corev1.PodFailed, 0, time.Minute)
	const again = ". The Job makes another after a pause that grows, as often as its backoffLimit allows (6 times unless it is set): set backoffLimit: 0 in the spec of the Job to let the trial fail at once"
	wait := func(why string, ago time.Duration) trainer.Wait {
		return trainer.Wait{Why: why + again, For: trainer.Retries, Since: now.Add(-ago)}
	}
	last := wait("2 of its pods failed and none runs: container main of pod b exited with code 2: see its last lines (kubectl logs -n team b -c main)", 20*time.Second)
	tests := map[string]struct {
		pods []corev1.Pod
		want trainer.Wait
	}{
		"no pods":                           {},
		"all failed, and the last one says": {[]corev1.Pod{second, first}, last},
		"a pod that was taken from its node counts for nothing": {[]corev1.Pod{first, drained, second}, last},
		"only pods that were taken from their nodes":            {[]corev1.Pod{drained}, trainer.Wait{}},
		"the next pod runs":                                      {[]corev1.Pod{first, ofJob("x", corev1.PodRunning, 0, 0)}, trainer.Wait{}},
		"the next pod waits for a node":                          {[]corev1.Pod{first, ofJob("x", corev1.PodPending, 0, 0)}, trainer.Wait{}},
		"another pod of the job has done its part":               {[]corev1.Pod{first, ofJob("x", corev1.PodSucceeded, 0, time.Minute)}, trainer.Wait{}},
		"the Job may not have noticed yet that this was the end": {[]corev1.Pod{ofJob("x", corev1.PodFailed, 1, 2*time.Second)}, trainer.Wait{}},
		"other kinds have other limits":                          {[]corev1.Pod{ofWorkflow}, trainer.Wait{}},
		"also a Job of Volcano":                                  {[]corev1.Pod{ofVolcano}, trainer.Wait{}},
		"a pod that shows no reason":                             {[]corev1.Pod{silent}, wait("1 of its pods failed and none runs: pod e failed", time.Minute)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, trainer.Failing(tc.pods, "main", now)); diff != "" {
				t.Errorf("Failing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutlived(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	beside := func(policy corev1.RestartPolicy, code int32, ago time.Duration, other corev1.ContainerState) []corev1.Pod {
		p := pod("a", &terminated{ExitCode: code, FinishedAt: metav1.NewTime(now.Add(-ago))})
		p.Spec.RestartPolicy = policy
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: other})
		return []corev1.Pod{p}
	}
	runs, over := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{Terminated: &terminated{}}
	tests := map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"another container runs on":              {beside(corev1.RestartPolicyNever, 0, time.Minute, runs), true},
		"also after a program that failed":       {beside(corev1.RestartPolicyNever, 1, time.Minute, runs), true},
		"a program that failed is started again": {beside(corev1.RestartPolicyOnFailure, 1, time.Minute, runs), false},
		"it may still have something to do":      {beside(corev1.RestartPolicyNever, 0, 59*time.Second, runs), false},
		"all have ended":                         {beside(corev1.RestartPolicyNever, 0, time.Minute, over), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := trainer.Outlived(tc.pods, "main", now)
			if said := strings.Contains(got.Why, "main") && strings.Contains(got.Why, "proxy"); said != tc.want || tc.want && got.For != trainer.Retries {
				t.Errorf("Outlived = %+v, want a word: %v", got, tc.want)
			}
		})
	}
}
