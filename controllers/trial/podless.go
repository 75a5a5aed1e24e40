package trial

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// podlessBegin is how long after a trial's start nothing is asked about its pods,
	// and podlessPatience how long a job may have none without an event that says why.
	podlessBegin, podlessPatience = 10 * time.Second, time.Minute
	// warningsKept is how long the warnings of a namespace serve all of its trials.
	warningsKept = 10 * time.Second

	nothingMade = "nothing has made them and no event says why: does the controller of its kind run, and has it a queue?"
)

// creating is how the Job controller begins to tell of a pod, by a name of its own
// for each attempt, after ten of which the events are one.
var creating = regexp.MustCompile(`^(\(combined from similar events\): )?Error creating: pods? "[^"]*" `)

// podless says why a job has no pods, by the newest warning about it or what it made;
// "" while nothing is wrong.
func (c *Controller) podless(ctx context.Context, t *v1beta1.Trial, now time.Time) string {
	started := t.Status.StartTime
	if started == nil || now.Sub(started.Time) < podlessBegin {
		return ""
	}
	warnings, err := c.warnings.of(ctx, c.Reader, t.Namespace, now)
	if err != nil {
		log.FromContext(ctx).Error(err, "it is not known why the job has no pods")
		return ""
	}
	why, newest := "", t.CreationTimestamp.Time
	for _, e := range warnings {
		if at := lastSeen(&e); concernsJob(t, e.InvolvedObject) && !at.Before(newest) {
			why, newest = creating.ReplaceAllString(strings.TrimSpace(e.Message), "a pod "), at
		}
	}
	switch {
	case strings.Contains(why, " per Container "): // a LimitRange, which does not say of which one
		why += ". It holds for the collector too: annotations of the namespace set what that asks for, such as " + v1beta1.AnnotationCollector + "cpu-request"
	case why == "" && now.Sub(started.Time) > podlessPatience:
		why = nothingMade
	}
	return why
}

// concernsJob reports whether an event is about a trial's job or what that made, which
// has names that begin with the job's. A job makes none of its own kind: those are of
// an experiment that is named like this trial. Its Services make no pods.
func concernsJob(t *v1beta1.Trial, about corev1.ObjectReference) bool {
	switch kind, err := kindOf(t); {
	case about.Kind == "Trial", about.Kind == "Experiment", about.Kind == "Suggestion", about.Kind == "Service":
		return false
	case err == nil && about.Kind == kind.Kind:
		return about.Name == t.Name
	}
	return about.Name == t.Name || strings.HasPrefix(about.Name, t.Name+"-")
}

// warnings are the last read ones of each namespace: a quota keeps the pods of many
// trials away at once. The zero value has none.
type warnings struct {
	mu   sync.Mutex
	last map[string]lookAtWarnings
}

type lookAtWarnings struct {
	at     time.Time
	events []corev1.Event
}

func (w *warnings) of(ctx context.Context, c client.Reader, namespace string, now time.Time) ([]corev1.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.last, func(_ string, l lookAtWarnings) bool { return now.Sub(l.at) >= warningsKept })
	if l, fresh := w.last[namespace]; fresh {
		return l.events, nil
	}
	var list corev1.EventList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"type": corev1.EventTypeWarning})
	if err != nil {
		return nil, fmt.Errorf("list the warnings in namespace %s: %w", namespace, err)
	}
	if w.last == nil {
		w.last = map[string]lookAtWarnings{}
	}
	w.last[namespace] = lookAtWarnings{now, list.Items}
	return list.Items, nil
}

func lastSeen(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if s := e.Series; s != nil && s.LastObservedTime.After(at) {
		at = s.LastObservedTime.Time
	}
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	return at
}
