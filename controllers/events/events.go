// Package events holds the events that controllers send after the write that they
// speak of.
package events

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Event is one event about an object.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are words in CamelCase.
	Reason, Action string
	// Note is for people.
	Note string
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
