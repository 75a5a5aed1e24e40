package trainer_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/trainer"
)

func TestHopeless(t *testing.T) {
	pod := func(container, reason string, restarts int32) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name: container, Image: "c:1", RestartCount: restarts,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "not found"}},
			}},
		}}
	}
	hidden := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: trainer.ReasonDirectoryHidden, Message: "the collector mounts an empty directory over /home/me",
	}}
	running := pod(trainer.Sidecar, "CrashLoopBackOff", 9)
	running.Status.Phase = corev1.PodRunning
	cases := map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"the collector crashes for the third time":    {pod(trainer.SidecarLogger, "CrashLoopBackOff", 3), ""},
		"the collector crashes again and again":       {pod(trainer.SidecarLogger, "CrashLoopBackOff", 4), "collector does not start: container metrics-logger-and-collector of pod p could not be started (not found)"},
		"the user's own container crashes":            {pod("prepare", "CrashLoopBackOff", 40), ""},
		"its image is waited for":                     {pod(trainer.Sidecar, "ImagePullBackOff", 0), ""},
		"a pod that waits for others":                 {pod(trainer.Sidecar, "PodInitializing", 0), ""},
		"a collector that crashes beside the program": {running, ""},
		"a directory that would be hidden":            {hidden, "pod p cannot run: the collector mounts an empty directory over /home/me"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := trainer.Hopeless([]corev1.Pod{c.pod})
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A program that takes all memory of its node would be evicted and made again forever.
func TestPodsThatAreEvictedAgainAndAgainAreHopeless(t *testing.T) {
	evicted := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory",
		Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}
	runs, waits := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	own := *evicted.DeepCopy() // for a limit of its own, which the Job counts
	own.Status.Conditions = nil
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"six times":                   {append(slices.Repeat([]corev1.Pod{evicted}, 6), waits), ""},
		"seven times":                 {append(slices.Repeat([]corev1.Pod{evicted}, 7), waits), "low on resource: memory"},
		"seven times, and it trains":  {append(slices.Repeat([]corev1.Pod{evicted}, 7), runs), ""},
		"seven times, of many pods":   {append(slices.Repeat([]corev1.Pod{evicted}, 7), waits, waits, waits), ""},
		"for limits of their own":     {append(slices.Repeat([]corev1.Pod{own}, 7), runs), ""},
		"before the next one is made": {slices.Repeat([]corev1.Pod{evicted}, 7), "low on resource: memory"},
	} {
		if got := trainer.Hopeless(c.pods); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
