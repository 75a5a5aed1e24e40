package agent

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
)

// run is one start of one container.
type run struct {
	// Number counts the starts of the container from 0.
	Number    int
	StartedAt time.Time
	// FinishedAt is zero while the run goes on.
	FinishedAt time.Time
	ExitCode   int32
	// Signal that ended the process, 0 for none.
	Signal int32
	// Reason is empty where the exit code says all there is to say.
	Reason string
	// Message is the termination message, or why the run could not start.
	Message string
}

func (r run) running() bool { return r.FinishedAt.IsZero() }

// failed reports whether the run has ended badly.
func (r run) failed() bool { return !r.running() && r.ExitCode != 0 }

// Reasons of terminated runs that are not told by the exit code.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonOOMKilled  = "OOMKilled"
	reasonStartError = "StartError"
	// reasonLost marks a run whose shim died with it: its exit code is unknown.
	reasonLost = "ContainerStatusUnknown"
)

// lostExitCode and startErrorExitCode are what the kubelet reports for runs
// whose end was not seen, and for runs that never began.
const (
	lostExitCode       = 137
	startErrorExitCode = 128
)

// startWait says why a container that should start cannot, and when to try again.
type startWait struct {
	Reason  string
	Message string
	Until   time.Time
}

// probeState is what the probes of a container's newest run have found. The
// zero value is that of a container whose probes have not answered yet.
type probeState struct {
	Started bool
	Ready   bool
}

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
	Terminated bool // SIGTERM was sent
	Killed     bool // SIGKILL was sent
}

// verdict is an end that was decided on the node, not by an exit code.
type verdict struct {
	Reason  string
	Message string
}

// view is all that is known of a pod. The decisions are functions of a view
// and the time.
type view struct {
	Pod *corev1.Pod
	// Runs of each container, oldest first.
	Runs map[string][]run
	// Waits holds the containers whose start failed before a process existed.
	Waits map[string]startWait
	// Probes of the newest runs. Absent means that no probe has answered.
	Probes map[string]probeState
	// Stops of the newest runs.
	Stops map[string]stopState
	// Starting holds the containers whose postStart hook has not ended yet.
	Starting map[string]bool
	// Condemned containers are stopped on their own, since the given time,
	// because a probe or hook failed.
	Condemned map[string]time.Time
	// Rejected is set when the node refused the pod.
	Rejected *verdict
	// StartTime is when the node accepted the pod.
	StartTime time.Time
	// HostIP is the address of the node, and of its pods.
	HostIP string
	// SandboxReady is set once the pod's volumes and shim stand.
	SandboxReady bool
	// Conditions that were last decided; they keep their transition times.
	Conditions []corev1.PodCondition
	// Down is when the node began to go down; zero while it stays.
	Down time.Time
	// Gone is set when the object no longer exists: everything is killed.
	Gone bool
}

// last returns the newest run of a container.
func (v *view) last(name string) (run, bool) {
	runs := v.Runs[name]
	if len(runs) == 0 {
		return run{}, false
	}
	return runs[len(runs)-1], true
}

func (v *view) isRunning(name string) bool {
	r, ok := v.last(name)
	return ok && r.running()
}

// anyRunning reports whether any container of the pod runs.
func (v *view) anyRunning() bool {
	for name := range v.Runs {
		if v.isRunning(name) {
			return true
		}
	}
	return false
}

// mainStarted reports whether any main container was ever started: from then
// on the pod counts as initialized.
func (v *view) mainStarted() bool {
	for i := range v.Pod.Spec.Containers {
		if len(v.Runs[v.Pod.Spec.Containers[i].Name]) > 0 {
			return true
		}
	}
	return false
}

// started reports whether the newest run counts as started: it runs, and its
// postStart hook and startup probe, if any, have passed.
func (v *view) started(c *corev1.Container) bool {
	if !v.isRunning(c.Name) || v.Starting[c.Name] {
		return false
	}
	return c.StartupProbe == nil || v.Probes[c.Name].Started
}

// ready reports whether a main or a sidecar is ready.
func (v *view) ready(c *corev1.Container) bool {
	if !v.started(c) {
		return false
	}
	return c.ReadinessProbe == nil || v.Probes[c.Name].Ready
}

// isSidecar reports whether an init container is a native sidecar.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// gracePeriod is the pod's own grace, 30 s by default.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// keptRuns is how many runs of a container are remembered: enough for the
// back-off to reach its cap.
const keptRuns = 8

// mergeRun enters what is known of a run. A run that has ended never goes on,
// and runs stay in order. It reports whether anything changed.
func mergeRun(runs []run, r run) ([]run, bool) {
	i, found := slices.BinarySearchFunc(runs, r, func(a, b run) int { return a.Number - b.Number })
	if found {
		old := runs[i]
		if old == r || !old.running() {
			return runs, false
		}
		runs[i] = r
		return runs, true
	}
	runs = slices.Insert(runs, i, r)
	if len(runs) > keptRuns {
		runs = runs[len(runs)-keptRuns:]
	}
	return runs, true
}

// asRun translates a shim's record of a run.
func asRun(s shim.Run, c *corev1.Container, logPath string) run {
	r := run{Number: s.Run, StartedAt: s.StartedAt}
	if s.Phase != shim.Exited {
		return r
	}
	r.FinishedAt = s.FinishedAt
	if r.FinishedAt.IsZero() {
		r.FinishedAt = s.StartedAt
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = r.FinishedAt
	}
	r.ExitCode, r.Signal = int32(s.ExitCode), int32(s.Signal)
	if s.Reason != shim.ReasonCompleted && s.Reason != shim.ReasonError {
		r.Reason = s.Reason
	}
	r.Message = s.TerminationMessage
	if r.Message == "" && r.ExitCode != 0 && c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		r.Message = logTail(logPath)
	}
	if r.Message == "" {
		r.Message = s.Message
	}
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
func recordedRuns(statuses []corev1.ContainerStatus) map[string]run {
	runs := map[string]run{}
	for i := range statuses {
		s := &statuses[i]
		r := run{Number: int(s.RestartCount)}
		ended := s.State.Terminated
		if s.State.Waiting != nil {
			ended = s.LastTerminationState.Terminated
		}
		switch {
		case s.State.Running != nil:
			r.StartedAt = s.State.Running.StartedAt.Time
			r.FinishedAt = r.StartedAt
			r.ExitCode, r.Reason = lostExitCode, reasonLost
			r.Message = "The records of this run were lost"
		case ended != nil:
			r.StartedAt, r.FinishedAt = ended.StartedAt.Time, ended.FinishedAt.Time
			r.ExitCode, r.Signal, r.Message = ended.ExitCode, ended.Signal, ended.Message
			if ended.Reason != reasonCompleted && ended.Reason != reasonError {
				r.Reason = ended.Reason
			}
		default:
			continue
		}
		if !r.FinishedAt.IsZero() {
			runs[s.Name] = r
		}
	}
	return runs
}
