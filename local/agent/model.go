package agent

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
)

// hookState is how far the preStop hook of a run has come.
type hookState int

const (
	hookNotRun hookState = iota
	hookRunning
	hookDone
)

// stopState is what has been done to stop the newest run of a container.
type stopState struct {
	Hook       hookState
	Terminated time.Time // when SIGTERM was sent; zero before
	Killed     bool      // SIGKILL was sent
}

// verdict is an end that was decided on the node, not by an exit code.
type verdict struct {
	Reason  string
	Message string
}

// containerView is what is known of one container.
type containerView struct {
	// Runs, oldest first. All other fields are about the newest.
	Runs []shim.Run
	// Wait is set while the start fails before a process exists, and WaitUntil is
	// when it is tried again.
	Wait      *corev1.ContainerStateWaiting
	WaitUntil time.Time
	// Passed and Ready say that the startup and the readiness probe have.
	Passed, Ready bool
	Stop          stopState
	// Starting is set until the postStart hook has ended.
	Starting bool
	// Condemned is since when the container is stopped on its own, because a probe
	// or hook failed; zero while it is not.
	Condemned time.Time
}

// view is all that is known of a pod. The decisions are functions of a view
// and the time.
type view struct {
	Pod *corev1.Pod
	// Containers holds what is known of each container, by name; see container.
	Containers map[string]*containerView
	// Rejected is set when the node refused the pod.
	Rejected *verdict
	// StartTime is when the node accepted the pod.
	StartTime time.Time
	// HostIP is the address of the node.
	HostIP string
	// PodIP is the address of the pod, HostIP for one on the machine's network.
	// Empty until the sandbox is ready.
	PodIP string
	// SandboxReady is set once the pod's volumes and shim stand.
	SandboxReady bool
	// Conditions that were last decided; they keep their transition times.
	Conditions []corev1.PodCondition
	// Down is when the node began to go down; zero while it stays.
	Down time.Time
	// Gone is set when the object no longer exists: everything is killed.
	Gone bool
}

// container is what is known of a container, for reading and for writing.
func (v *view) container(name string) *containerView {
	c := v.Containers[name]
	if c == nil {
		c = &containerView{}
		v.Containers[name] = c
	}
	return c
}

// last returns the newest run of a container.
func (v *view) last(name string) (run shim.Run, ok bool) {
	if runs := v.container(name).Runs; len(runs) > 0 {
		return runs[len(runs)-1], true
	}
	return shim.Run{}, false
}

// running returns the newest run of a container if it goes on.
func (v *view) running(name string) (run shim.Run, ok bool) {
	r, ok := v.last(name)
	return r, ok && r.Running()
}

func (v *view) isRunning(name string) bool {
	_, ok := v.running(name)
	return ok
}

// anyRunning reports whether any container of the pod runs.
func (v *view) anyRunning() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(v.Containers)), v.isRunning)
}

// mainStarted reports whether any main container was ever started: from then
// on the pod counts as initialized.
func (v *view) mainStarted() bool {
	return slices.ContainsFunc(v.Pod.Spec.Containers, func(c corev1.Container) bool { return len(v.container(c.Name).Runs) > 0 })
}

// started reports whether the newest run counts as started: it runs, and its
// postStart hook and startup probe, if any, have passed.
func (v *view) started(c *corev1.Container) bool {
	now := v.container(c.Name)
	return v.isRunning(c.Name) && !now.Starting && (c.StartupProbe == nil || now.Passed)
}

// ready reports whether a main or a sidecar is ready.
func (v *view) ready(c *corev1.Container) bool {
	return v.started(c) && (c.ReadinessProbe == nil || v.container(c.Name).Ready)
}

// isSidecar reports whether an init container is a native sidecar.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// gracePeriod is the pod's own grace, 30 s by default, and 68 years at most: a time.Duration ends
// at 292.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(min(*s, math.MaxInt32)) * time.Second
	}
	return 30 * time.Second
}

// keptRuns is how many runs of a container are remembered: enough for the
// back-off to reach its cap.
const keptRuns = 8

// mergeRun enters what is known of a run. A run that has ended never goes on,
// and runs stay in order. It reports whether anything changed.
func mergeRun(runs []shim.Run, r shim.Run) ([]shim.Run, bool) {
	i, found := slices.BinarySearchFunc(runs, r, func(a, b shim.Run) int { return a.Run - b.Run })
	if found {
		if old := runs[i]; old == r || !old.Running() {
			return runs, false
		}
		runs[i] = r
		return runs, true
	}
	runs = slices.Insert(runs, i, r)
	return runs[max(0, len(runs)-keptRuns):], true
}

// complete adds to the end of a run what the shim leaves out: times of a run that
// never began, and the message that comes from the log.
func complete(r shim.Run, c *corev1.Container, logPath string) shim.Run {
	if r.Running() {
		return r
	}
	r.FinishedAt = cmp.Or(r.FinishedAt, r.StartedAt)
	r.StartedAt = cmp.Or(r.StartedAt, r.FinishedAt)
	if r.TerminationMessage == "" && r.ExitCode != 0 && c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		r.TerminationMessage = logTail(logPath)
	}
	r.Message = cmp.Or(r.TerminationMessage, r.Message)
	return r
}

// The kubelet's limits of a termination message taken from the log.
const (
	fallbackBytes = 2048
	fallbackLines = 80
)

// logTail is the end of a log, as text; nothing where it cannot be read.
func logTail(path string) string {
	lines := int64(fallbackLines)
	var out bytes.Buffer
	// Nothing is followed, so there is nothing to cancel.
	_ = crilogs.ReadLogs(context.Background(), path, "", &crilogs.LogOptions{TailLines: &lines}, nil, &out, &out)
	text := out.Bytes()
	return strings.ToValidUTF8(string(text[max(0, len(text)-fallbackBytes):]), "")
}

// recordedRuns are the runs that an object's status tells of. They stand in
// where the node's own records were lost: what ran then has ended.
func recordedRuns(statuses []corev1.ContainerStatus) (runs []shim.Run) {
	for i := range statuses {
		s := &statuses[i]
		r := shim.Run{Name: s.Name, Run: int(s.RestartCount), Phase: shim.Exited}
		ended := s.State.Terminated
		if s.State.Waiting != nil {
			ended = s.LastTerminationState.Terminated
		}
		switch {
		case s.State.Running != nil:
			r.StartedAt = s.State.Running.StartedAt.Time
			r.FinishedAt = r.StartedAt
			r.ExitCode, r.Reason = lostExitCode, shim.ReasonLost
			r.Message = "The records of this run were lost"
		case ended != nil:
			r.StartedAt, r.FinishedAt = ended.StartedAt.Time, ended.FinishedAt.Time
			r.ExitCode, r.Signal = int(ended.ExitCode), int(ended.Signal)
			r.Reason, r.Message = ended.Reason, ended.Message
		default:
			continue
		}
		runs = append(runs, r)
	}
	return runs
}

// lostExitCode is what the kubelet reports for a run whose end was not seen.
const lostExitCode = 137
