package agent

import (
	"bytes"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
)

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
