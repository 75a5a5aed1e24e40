package trial

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// Messages of the conditions; the first words are Katib's.
const (
	messageCreated   = "Trial is created"
	messageRunning   = "Trial is running"
	messageWaits     = "Trial waits: "
	messageSucceeded = "Trial has succeeded"
	messageFailed    = "Trial has failed"
)

func succeededMessage(s seen) string {
	message := withJob(messageSucceeded, s.job.state)
	if _, lacking := missing(s.trial, best(s.trial.Spec.Objective, s.data)); len(lacking) > 0 {
		message += ". No value of " + quoted(lacking) + " was reported"
	}
	// A collector of the user's own has no way to say that it has ended.
	if !allReported(s.trial, s.data) && collectorKind(s.trial) != v1beta1.CustomCollector {
		message += fmt.Sprintf(". The metrics may be incomplete: the collector did not report the end within %s after the job's end, so the values are those that it had sent before", patience)
	}
	return message + noted(s.data)
}

func failedMessage(s seen) string {
	message := messageFailed
	if why := trainer.Explain(s.pods, s.trial.Spec.PrimaryContainerName); why != "" {
		message += ". " + strings.TrimSuffix(why, ".") // first, as tables cut the end
	}
	message = withJob(message, s.job.state)
	if s.job.state.Reason == batchv1.JobReasonDeadlineExceeded {
		// Its pods are deleted, so they tell nothing.
		message += ". Raise the job's activeDeadlineSeconds, or train for fewer steps"
	}
	return message
}

func withJob(message string, state trainer.State) string {
	if state.Reason != "" {
		message += ". Job reason: " + state.Reason
	}
	if state.Message != "" {
		message += ". Job message: " + state.Message
	}
	return message
}

func noted(d data) string {
	if len(d.notes) == 0 {
		return ""
	}
	return ". " + v1beta1.CollectorSays + strings.Join(d.notes, "; ")
}

// What is said, with a time, of a job without pods, of one that cannot be made, of a
// trial whose job is gone and cannot be made again, and of one whose job is over by the
// conditions of its kind and not by those of the template.
const (
	noPods  = "Its job has no pods since "
	notMade = "Its job cannot be created since "
	noJob   = "It has no job since "
	noEnd   = "Its job's end is not seen since "
)

// waiting says why a job does not train yet. said is what was said before.
func waiting(s seen, said string, now time.Time) trainer.Wait {
	if s.job.ended != "" {
		why := fmt.Sprintf("it has %s, but neither successCondition nor failureCondition of the template holds: correct them, or leave them out, as its kind has its own", strings.ToLower(string(s.job.ended)))
		return sinceSaid(noEnd, why, trainer.Repair, said, now)
	}
	if s.podless != "" {
		// Its own controller may have a queue, and tell of that as it likes or not at all.
		return sinceSaid(noPods, s.podless, trainer.Room, said, now)
	}
	if s.job.state.Phase == trainer.Pending {
		w := trainer.Wait{Why: v1beta1.QueuedSays, For: trainer.Room, Since: s.job.state.Since}
		// What a job that had begun has reported tells it from one that never began.
		if len(s.data.stored) > 0 || len(s.data.names) > 0 || strings.Contains(said, v1beta1.PreemptedSays) {
			w.Why = v1beta1.PreemptedSays
		}
		w.Why += ": it is suspended"
		if s.job.state.Reason != "" {
			w.Why += " (" + s.job.state.Reason + ")"
		}
		if w.Since.IsZero() { // as of a RayJob, which may have run for hours
			w.Since = now
			if c := s.trial.Condition(v1beta1.TrialRunning); c.Suspension() != "" {
				w.Since = c.LastUpdateTime.Time
			}
		}
		return w
	}
	if w := trainer.Waiting(s.pods); w.Why != "" {
		return w
	}
	if w := trainer.Outlived(s.pods, s.trial.Spec.PrimaryContainerName, now); w.Why != "" {
		return w
	}
	return trainer.Failing(s.pods, s.trial.Spec.PrimaryContainerName, now)
}

// sinceSaid is a wait of which nothing but what was said before tells since when. other
// is its remedy where why does not tell.
func sinceSaid(what, why string, other trainer.Remedy, said string, now time.Time) trainer.Wait {
	since, remedy := now.UTC(), remedyOf(why, other)
	if _, earlier, found := strings.Cut(said, what); found {
		text, before, _ := strings.Cut(earlier, ", because ")
		if t, err := time.Parse(time.RFC3339, text); err == nil && remedyOf(before, other) == remedy {
			since = t
		}
	}
	return trainer.Wait{Why: what + since.Format(time.RFC3339) + ", because " + why, For: remedy, Since: since}
}

// refuses is how the API server and admission say that they refuse an object.
var refuses = regexp.MustCompile(`^Error creating|forbidden|PodSecurity|denied the request|is invalid`)

// remedyOf tells a full quota or machine from what is refused for good; other is of all else.
func remedyOf(why string, other trainer.Remedy) trainer.Remedy {
	switch {
	case strings.Contains(why, "exceeded quota"), strings.HasPrefix(why, noRoom):
		return trainer.Room
	case refuses.MatchString(why):
		return trainer.Repair
	}
	return other
}

// Limits are how long a trial may be held up before it fails. 0 is forever.
type Limits struct {
	// Repair is for what does not come by itself: an image, a claim, a permission.
	Repair time.Duration
	// Room is for what other work may free: a node, a quota, a queue.
	Room time.Duration
}

// left is how long a trial may still wait; limited is false if it may forever. What
// its experiment says goes before l.
func (l Limits) left(t *v1beta1.Trial, w trainer.Wait, now time.Time) (left time.Duration, limited bool) {
	limit := map[trainer.Remedy]time.Duration{trainer.Repair: l.Repair, trainer.Room: l.Room}[w.For]
	if own := t.Spec.MaxWaitDuration; own != nil && w.For != trainer.Retries {
		limit = own.Duration
	}
	return w.Since.Add(limit).Sub(now), limit > 0 && w.Why != ""
}

// quoted is a list of names: "loss", "acc".
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return strings.Join(out, ", ")
}

// unavailableMessage says which metrics are missing, all of them, what came
// instead, and what to do.
func unavailableMessage(t *v1beta1.Trial, d data) string {
	objectives, others := missing(t, best(t.Spec.Objective, d))
	var b strings.Builder
	fmt.Fprintf(&b, "Metrics are not available: the job succeeded, but the %s collector never saw %s. ", collectorKind(t), neverSeen(objectives, others))
	switch {
	case len(d.names) > 0:
		fmt.Fprintf(&b, "It saw: %s. ", strings.Join(d.names, ", "))
	case len(d.notes) > 0: // which say what there was instead
	case d.final || d.condensed:
		b.WriteString("It saw no metric at all. ")
	default:
		fmt.Fprintf(&b, "It did not report within %s after the job's end: its log says why (vernier logs %s/%s -c %s). ",
			patience, t.Labels[v1beta1.LabelExperiment], t.Name, trainer.SidecarOf(string(collectorKind(t))))
	}
	// What the collector says is about this trial, and comes before what holds for
	// all: messages are cut at their ends.
	if said := strings.TrimPrefix(noted(d), ". "); said != "" {
		b.WriteString(strings.TrimRight(said, ".") + ". ")
	}
	b.WriteString(hint(t, objectives[0]))
	return b.String()
}

// neverSeen is: the objective metric "loss", nor "memory".
func neverSeen(objectives, others []string) string {
	text := "the objective metric " + quoted(objectives)
	if len(objectives) > 1 {
		text = "the objective metrics " + quoted(objectives)
	}
	if len(others) > 0 {
		text += ", nor " + quoted(others)
	}
	return text
}

func hint(t *v1beta1.Trial, metric string) string {
	var written v1beta1.FileSystemPath
	if source := t.Spec.MetricsCollector.Source; source != nil && source.FileSystemPath != nil {
		written = *source.FileSystemPath
	}
	switch collectorKind(t) {
	case v1beta1.FileCollector:
		return fmt.Sprintf("Write it to %s in the format that the experiment's metricsCollectorSpec says, or correct the metric's name", written.Path)
	case v1beta1.TensorFlowEventCollector:
		return fmt.Sprintf("Write TensorBoard events with the tag %q under %s, or correct the metric's name", metric, written.Path)
	case v1beta1.PrometheusMetricCollector:
		return fmt.Sprintf("Show a metric %s at the endpoint for as long as the program runs, or correct the metric's name", metric)
	case v1beta1.PushCollector:
		return fmt.Sprintf("Report %q from the program, or correct the metric's name", metric)
	case v1beta1.CustomCollector:
		return fmt.Sprintf("Report %q from the collector's container to katib-db-manager.kubeflow:6789, or correct the metric's name", metric)
	case v1beta1.NoneCollector:
		return "Choose a metrics collector: None collects nothing"
	}
	switch written.Format {
	case v1beta1.JSONFormat:
		return fmt.Sprintf("Print it on standard output in a JSON object a line, as {%q: 0.123}, or correct the metric's name or the format in the experiment's metricsCollectorSpec", metric)
	case v1beta1.LogfmtFormat:
		return fmt.Sprintf("Print it on standard output as %s=0.123, or correct the metric's name or the format in the experiment's metricsCollectorSpec", metric)
	default:
		return fmt.Sprintf("Print it on standard output as %s=0.123, or correct the metric's name or the filter in the experiment's metricsCollectorSpec", metric)
	}
}

func collectorKind(t *v1beta1.Trial) v1beta1.CollectorKind {
	if c := t.Spec.MetricsCollector.Collector; c != nil && c.Kind != "" {
		return c.Kind
	}
	return v1beta1.StdOutCollector
}
