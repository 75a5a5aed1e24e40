package agent

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPlanOfANodeThatGoesDown(t *testing.T) {
	mains, sides := []string{"m"}, []string{"side1"}
	down := func(v *view, grace int64) *view {
		v.Down = at(10)
		v.Pod.Spec.TerminationGracePeriodSeconds = ptr.To(grace)
		return v
	}
	up := history{"side1": {goes(0, 0)}, "m": {goes(0, 0)}}
	askedAt := func(when float64) func(*view) {
		return func(v *view) { v.container("m").Stop = stopState{Terminated: at(when)} }
	}
	ended := func(when float64, code int) history {
		return history{"side1": {goes(0, 0)}, "m": {ends(0, 0, when, code)}}
	}
	for name, test := range map[string]struct {
		view  *view
		now   float64
		want  string
		phase corev1.PodPhase
	}{
		"the main is asked, and not the sidecar":       {down(viewOf("Never", sides, mains, up), 3), 10, "wake 13, SIGTERM m", corev1.PodRunning},
		"a long grace is bounded":                      {down(viewOf("Never", sides, mains, up), 300), 10, "wake 18, SIGTERM m", corev1.PodRunning},
		"a grace of hundreds of years is too":          {down(viewOf("Never", sides, mains, up), 9_999_999_999), 10, "wake 18, SIGTERM m", corev1.PodRunning},
		"the sidecar follows the main":                 {down(viewOf("Never", sides, mains, ended(11, 0)), 3), 11, "wake 13, SIGTERM side1", corev1.PodRunning},
		"and has time when the main took all":          {down(viewOf("Never", sides, mains, ended(13, 137)), 3), 13, "wake 15, SIGTERM side1", corev1.PodRunning},
		"a main that is restarted otherwise stays out": {down(viewOf("Always", nil, mains, history{"m": {ends(0, 0, 11, 1)}}), 3), 11, "settled", corev1.PodFailed},
		"what was asked to end has not succeeded":      {down(viewOf("Never", nil, mains, history{"m": {ends(0, 0, 11, 0)}}), 3), 11, "settled", corev1.PodFailed},
		"what had ended before has succeeded":          {down(viewOf("Never", nil, mains, history{"m": {ends(0, 0, 9, 0)}}), 3), 11, "settled", corev1.PodSucceeded},
		"a signal just before was the same shutdown":   {down(viewOf("Never", nil, mains, history{"m": {ends(0, 0, 9.5, 143)}}), 3), 11, "settled", corev1.PodFailed},
		"also when it is heard of after it was asked":  {down(with(viewOf("Never", nil, mains, history{"m": {ends(0, 0, 9.5, 143)}}), askedAt(10.5)), 3), 11, "settled", corev1.PodFailed},
		"what had not begun does not begin":            {down(viewOf("Never", nil, mains, nil), 3), 11, "settled", corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := plan(test.view, at(test.now))
			got := strings.Split(told(d), ", ")
			for _, want := range strings.Split(test.want, ", ") {
				if !strings.Contains(strings.Join(got, ", "), want) {
					t.Errorf("plan = %v, want %s", got, test.want)
				}
			}
			if strings.Contains(told(d), "side1") != strings.Contains(test.want, "side1") {
				t.Errorf("plan = %v, want %s", got, test.want)
			}
			s := podStatus(test.view, at(test.now))
			if s.Phase != test.phase {
				t.Errorf("phase = %s, want %s", s.Phase, test.phase)
			}
			disrupted := findCondition(s.Conditions, corev1.DisruptionTarget) != nil
			if disrupted != (test.phase == corev1.PodFailed) || disrupted != strings.Contains(s.Message, "vernier down") {
				t.Errorf("disrupted = %v, message %q in phase %s", disrupted, s.Message, s.Phase)
			}
		})
	}
}

func TestPodsThatAreKilledWithoutAnAgentWereDisrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.create(r.pod("killed", "echo up; while :; do sleep 0.02; done"))
	r.create(r.pod("done", "echo up"))
	r.awaitPhase("killed", corev1.PodRunning)
	r.awaitPhase("done", corev1.PodSucceeded)
	r.stop(syscall.SIGKILL)
	if err := StopPods(t.Context(), r.config.Root); err != nil {
		t.Fatal(err)
	}
	r.start()
	got := r.awaitPhase("killed", corev1.PodFailed)
	if c := findCondition(got.Status.Conditions, corev1.DisruptionTarget); c == nil || got.Status.Reason != reasonDown {
		t.Errorf("reason %q, conditions %+v, want %s and DisruptionTarget", got.Status.Reason, got.Status.Conditions, reasonDown)
	}
	r.create(r.pod("next", "echo hello"))
	r.awaitPhase("next", corev1.PodSucceeded)
	r.awaitPhase("done", corev1.PodSucceeded)
}

func TestANodeThatGoesDownEndsItsPods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	loops := func(word string) string {
		return "trap 'echo " + word + " at $(date +%s%N); exit 0' TERM; echo up; while :; do sleep 0.02; done"
	}
	pod := r.pod("trains", loops("saved"))
	pod.Spec.InitContainers = []corev1.Container{sidecar("collects", loops("flushed"))}
	r.create(pod)
	ignores := r.pod("ignores", "trap '' TERM; echo up; while :; do sleep 0.02; done")
	ignores.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	r.create(ignores)
	for name, containers := range map[string][]string{"trains": {"main", "collects"}, "ignores": {"main"}} {
		r.await(name, name+" is up", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(containers, func(c string) bool {
				return !strings.Contains(r.logs(name, corev1.PodLogOptions{Container: c}), "up")
			})
		})
	}
	r.stop(syscall.SIGTERM)
	for name, code := range map[string]int32{"trains": 0, "ignores": 137} {
		got := r.get(name)
		if got.Status.Phase != corev1.PodFailed || got.Status.Reason != reasonDown || got.Status.Message != messageDown {
			t.Errorf("%s: %s %s %q", name, got.Status.Phase, got.Status.Reason, got.Status.Message)
		}
		if c := findCondition(got.Status.Conditions, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue {
			t.Errorf("%s: conditions = %+v, want DisruptionTarget", name, got.Status.Conditions)
		}
		if s := got.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != code {
			t.Errorf("%s: state = %+v, want code %d", name, s, code)
		}
	}
	// What came meanwhile waits for the next agent.
	r.create(r.pod("follows", "echo hello"))
	r.start()
	r.awaitPhase("follows", corev1.PodSucceeded)
	saved, flushed := r.logs("trains", corev1.PodLogOptions{}), r.logs("trains", corev1.PodLogOptions{Container: "collects"})
	_, first, ok1 := strings.Cut(saved, "saved at ")
	_, second, ok2 := strings.Cut(flushed, "flushed at ")
	if !ok1 || !ok2 || first >= second {
		t.Errorf("main %q, sidecar %q: want the sidecar's end after the main's", saved, flushed)
	}
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "trains", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	r.awaitGone("trains")
}
