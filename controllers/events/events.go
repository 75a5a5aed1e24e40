// Package events holds the events that controllers send after the write that they
// speak of.
package events

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Event is one event about an object. Reason and Action are words in CamelCase, Note
// is for people. The reason is that of the condition which the event tells of; those of
// events without one are listed in docs/observability.md.
type Event struct{ Type, Reason, Action, Note string }

// Normal is an event that tells of progress.
func Normal(reason, action, note string) Event {
	return Event{corev1.EventTypeNormal, reason, action, note}
}

// Warning is an event that a person should look at.
func Warning(reason, action, note string) Event {
	return Event{corev1.EventTypeWarning, reason, action, note}
}

// Send sends the event.
func (e Event) Send(r events.EventRecorder, about runtime.Object) {
	r.Eventf(about, nil, e.Type, e.Reason, e.Action, "%s", clip(e.Note))
}

// clip keeps a note within the API's limit of 1024 bytes.
func clip(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	cut := strings.ToValidUTF8(s[:limit], "")
	if at := strings.LastIndexByte(cut, ' '); at > limit/2 {
		cut = cut[:at]
	}
	return cut + "…"
}
