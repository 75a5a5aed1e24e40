package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// ends is a run that began at one second and ended at another.
func ends(number int, from, to float64, code int) shim.Run {
	return shim.Run{Run: number, Phase: shim.Exited, StartedAt: at(from), FinishedAt: at(to), ExitCode: code}
}

func goes(number int, from float64) shim.Run {
	return shim.Run{Run: number, Phase: shim.Running, StartedAt: at(from)}
}

// viewOf is the view of a pod with these init containers and mains; names that
// begin with "side" are sidecars.
func viewOf(policy corev1.RestartPolicy, init, mains []string, runs history) *view {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: corev1.PodSpec{RestartPolicy: policy}}
	for _, name := range init {
		c := corev1.Container{Name: name}
		if name[:4] == "side" {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for _, name := range mains {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name})
	}
	v := &view{Pod: pod, Containers: map[string]*containerView{}, StartTime: t0, HostIP: "127.0.0.1", PodIP: "127.0.0.1", SandboxReady: true}
	for name, r := range runs {
		v.container(name).Runs = r
	}
	return v
}

type history map[string][]shim.Run

func TestPhaseFollowsTheKubeletsRules(t *testing.T) {
	one := []string{"main"}
	tests := map[string]struct {
		view *view
		now  float64
		want corev1.PodPhase
	}{
		"nothing has started":                              {viewOf("Never", nil, one, nil), 1, corev1.PodPending},
		"the main runs":                                    {viewOf("Never", nil, one, history{"main": {goes(0, 0)}}), 1, corev1.PodRunning},
		"one of two mains has not started":                 {viewOf("Never", nil, []string{"a", "b"}, history{"a": {goes(0, 0)}}), 1, corev1.PodPending},
		"one of two mains has failed, one runs":            {viewOf("Never", nil, []string{"a", "b"}, history{"a": {ends(0, 0, 1, 1)}, "b": {goes(0, 0)}}), 2, corev1.PodRunning},
		"all mains succeeded":                              {viewOf("Never", nil, []string{"a", "b"}, history{"a": {ends(0, 0, 1, 0)}, "b": {ends(0, 0, 2, 0)}}), 3, corev1.PodSucceeded},
		"one of two mains failed for good":                 {viewOf("Never", nil, []string{"a", "b"}, history{"a": {ends(0, 0, 1, 9)}, "b": {ends(0, 0, 2, 0)}}), 3, corev1.PodFailed},
		"success under OnFailure is an end":                {viewOf("OnFailure", nil, one, history{"main": {ends(0, 0, 1, 0)}}), 2, corev1.PodSucceeded},
		"failure under OnFailure is Running":               {viewOf("OnFailure", nil, one, history{"main": {ends(0, 0, 1, 1)}}), 2, corev1.PodRunning},
		"success under Always is Running":                  {viewOf("Always", nil, one, history{"main": {ends(0, 0, 1, 0)}}), 2, corev1.PodRunning},
		"an init container runs":                           {viewOf("Never", []string{"init"}, one, history{"init": {goes(0, 0)}}), 1, corev1.PodPending},
		"an init container failed, Never":                  {viewOf("Never", []string{"init"}, one, history{"init": {ends(0, 0, 1, 1)}}), 2, corev1.PodFailed},
		"an init container failed, OnFailure":              {viewOf("OnFailure", []string{"init"}, one, history{"init": {ends(0, 0, 1, 1)}}), 2, corev1.PodPending},
		"init failed but a sidecar still runs":             {viewOf("Never", []string{"side", "init"}, one, history{"side": {goes(0, 0)}, "init": {ends(0, 0, 1, 1)}}), 2, corev1.PodPending},
		"mains done but a sidecar still runs":              {viewOf("Never", []string{"side"}, one, history{"side": {goes(0, 0)}, "main": {ends(0, 0, 1, 0)}}), 2, corev1.PodRunning},
		"mains done, the sidecar failed: only mains count": {viewOf("Never", []string{"side"}, one, history{"side": {ends(0, 0, 2, 1)}, "main": {ends(0, 0, 1, 0)}}), 3, corev1.PodSucceeded},
		"a sidecar that crashed while the main runs":       {viewOf("Never", []string{"side"}, one, history{"side": {ends(0, 0, 1, 1)}, "main": {goes(0, 0)}}), 2, corev1.PodRunning},
		"only a sidecar has started":                       {viewOf("Never", []string{"side"}, one, history{"side": {goes(0, 0)}}), 1, corev1.PodPending},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podStatus(test.view, at(test.now)).Phase; got != test.want {
				t.Errorf("phase = %s, want %s", got, test.want)
			}
		})
	}
}

func TestAStoppedPodIsTerminalOnlyWhenNothingRuns(t *testing.T) {
	deleted := func(v *view) *view {
		v.Pod.DeletionTimestamp = ptrTime(at(30))
		v.Pod.DeletionGracePeriodSeconds = ptr.To[int64](30)
		return v
	}
	late := func(v *view) *view {
		v.Pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](10)
		return v
	}
	tests := map[string]struct {
		view       *view
		now        float64
		wantPhase  corev1.PodPhase
		wantReason string
	}{
		"deleted, still running":                     {deleted(viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})), 1, corev1.PodRunning, ""},
		"deleted, ended with a failure":              {deleted(viewOf("Always", nil, []string{"m"}, history{"m": {ends(0, 0, 2, 143)}})), 3, corev1.PodFailed, ""},
		"deleted, ended well though Always":          {deleted(viewOf("Always", nil, []string{"m"}, history{"m": {ends(0, 0, 2, 0)}})), 3, corev1.PodSucceeded, ""},
		"deleted before anything started":            {deleted(viewOf("Never", nil, []string{"m"}, nil)), 3, corev1.PodFailed, ""},
		"past its deadline, still running":           {late(viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})), 11, corev1.PodRunning, ""},
		"past its deadline, ended well all the same": {late(viewOf("Never", nil, []string{"m"}, history{"m": {ends(0, 0, 12, 0)}})), 13, corev1.PodFailed, "DeadlineExceeded"},
		"ended well before its deadline, seen after": {late(viewOf("Never", []string{"side"}, []string{"m"}, history{"side": {ends(0, 0, 8, 0)}, "m": {ends(0, 0, 7, 0)}})), 60, corev1.PodSucceeded, ""},
		"before its deadline":                        {late(viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})), 9, corev1.PodRunning, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := podStatus(test.view, at(test.now))
			if diff := cmp.Diff([]string{string(test.wantPhase), test.wantReason}, []string{string(got.Phase), got.Reason}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATerminalPhaseNeverReverts(t *testing.T) {
	v := viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		v.Pod.Status.Phase = phase
		if got := podStatus(v, at(1)).Phase; got != phase {
			t.Errorf("phase = %s, want %s", got, phase)
		}
	}
}

func TestContainerStatuses(t *testing.T) {
	waits := viewOf("Never", nil, []string{"m"}, nil)
	waits.container("m").Wait = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "no secret"}
	probed := viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})
	probed.Pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	starting := viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})
	starting.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{}
	tests := map[string]struct {
		view *view
		now  float64
		want string
	}{
		"not started":                   {viewOf("Never", nil, []string{"m"}, nil), 1, "waiting ContainerCreating restarts=0 ready=false started=false"},
		"not started, init first":       {viewOf("Never", []string{"init"}, []string{"m"}, nil), 1, "waiting PodInitializing restarts=0 ready=false started=false"},
		"configuration is missing":      {waits, 1, "waiting CreateContainerConfigError restarts=0 ready=false started=false"},
		"running":                       {viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}}), 1, "running restarts=0 ready=true started=true"},
		"running, readiness unknown":    {probed, 1, "running restarts=0 ready=false started=true"},
		"running, startup unknown":      {starting, 1, "running restarts=0 ready=false started=false"},
		"ended":                         {viewOf("Never", nil, []string{"m"}, history{"m": {ends(0, 0, 1, 0)}}), 2, "Completed 0 restarts=0 ready=false started=false"},
		"failed":                        {viewOf("Never", nil, []string{"m"}, history{"m": {ends(0, 0, 1, 2)}}), 2, "Error 2 restarts=0 ready=false started=false"},
		"failed once, restarts at once": {viewOf("OnFailure", nil, []string{"m"}, history{"m": {ends(0, 0, 1, 2)}}), 2, "Error 2 restarts=0 ready=false started=false"},
		"failed twice, backs off":       {viewOf("OnFailure", nil, []string{"m"}, history{"m": {ends(0, 0, 1, 2), ends(1, 1, 2, 3)}}), 3, "waiting CrashLoopBackOff last=Error 3 restarts=1 ready=false started=false"},
		"running again":                 {viewOf("OnFailure", nil, []string{"m"}, history{"m": {ends(0, 0, 1, 2), goes(1, 1)}}), 3, "running last=Error 2 restarts=1 ready=true started=true"},
		"memory ran out":                {viewOf("Never", nil, []string{"m"}, history{"m": {{Phase: shim.Exited, StartedAt: at(0), FinishedAt: at(1), ExitCode: 137, Reason: shim.ReasonOOMKilled}}}), 2, "OOMKilled 137 restarts=0 ready=false started=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := podStatus(test.view, at(test.now)).ContainerStatuses[0]
			got := ""
			switch {
			case s.State.Waiting != nil:
				got = "waiting " + s.State.Waiting.Reason
			case s.State.Running != nil:
				got = "running"
			default:
				got = fmt.Sprintf("%s %d", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
			}
			if last := s.LastTerminationState.Terminated; last != nil {
				got += fmt.Sprintf(" last=%s %d", last.Reason, last.ExitCode)
			}
			got += fmt.Sprintf(" restarts=%d ready=%t started=%t", s.RestartCount, s.Ready, *s.Started)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	tests := map[string]struct {
		view *view
		want map[corev1.PodConditionType]string
	}{
		"succeeded": {viewOf("Never", []string{"init"}, []string{"m"}, history{"init": {ends(0, 0, 1, 0)}, "m": {ends(0, 1, 2, 0)}}), map[corev1.PodConditionType]string{
			corev1.PodScheduled: "True", corev1.PodInitialized: "True PodCompleted", corev1.ContainersReady: "False PodCompleted", corev1.PodReady: "False PodCompleted", corev1.PodReadyToStartContainers: "False"}},
		"failed": {viewOf("Never", nil, []string{"m"}, history{"m": {ends(0, 1, 2, 1)}}), map[corev1.PodConditionType]string{
			corev1.PodScheduled: "True", corev1.PodInitialized: "True", corev1.ContainersReady: "False PodFailed", corev1.PodReady: "False PodFailed", corev1.PodReadyToStartContainers: "False"}},
		"initializing": {viewOf("Never", []string{"init"}, []string{"m"}, history{"init": {goes(0, 0)}}), map[corev1.PodConditionType]string{
			corev1.PodScheduled: "True", corev1.PodInitialized: "False ContainersNotInitialized", corev1.ContainersReady: "False ContainersNotReady", corev1.PodReady: "False ContainersNotReady", corev1.PodReadyToStartContainers: "True"}},
		"ready": {viewOf("Never", []string{"side"}, []string{"m"}, history{"side": {goes(0, 0)}, "m": {goes(0, 0)}}), map[corev1.PodConditionType]string{
			corev1.PodScheduled: "True", corev1.PodInitialized: "True", corev1.ContainersReady: "True", corev1.PodReady: "True", corev1.PodReadyToStartContainers: "True"}},
		"lost": {viewOf("Never", nil, []string{"m"}, history{"m": {{Phase: shim.Exited, StartedAt: at(0), FinishedAt: at(1), ExitCode: lostExitCode, Reason: shim.ReasonLost}}}), map[corev1.PodConditionType]string{
			corev1.PodScheduled: "True", corev1.PodInitialized: "True", corev1.ContainersReady: "False PodFailed", corev1.PodReady: "False PodFailed", corev1.PodReadyToStartContainers: "False",
			corev1.DisruptionTarget: "True TerminationByKubelet"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[corev1.PodConditionType]string{}
			for _, c := range podStatus(test.view, at(3)).Conditions {
				got[c.Type] = string(c.Status)
				if c.Reason != "" {
					got[c.Type] += " " + c.Reason
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConditionKeepsItsTransitionTimeWhileItsStatusStays(t *testing.T) {
	v := viewOf("Never", nil, []string{"m"}, history{"m": {goes(0, 0)}})
	v.Conditions = podStatus(v, at(1)).Conditions
	v.container("m").Runs = []shim.Run{ends(0, 0, 4, 0)}
	for _, c := range podStatus(v, at(5)).Conditions {
		want := at(1)
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady || c.Type == corev1.PodReadyToStartContainers {
			want = at(5)
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}
