package report

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// Messages that are kept word for word.
	maxMessages = 3
	maxMessage  = 200
	// MaxText is the longest value text, in bytes; what is longer is cut.
	MaxText = 256
	// MaxName is the longest name of a metric or a source, in bytes.
	MaxName = 1024
	// Metrics that are condensed; a program that makes up names without end must
	// not fill the memory.
	maxMetrics = 1000
)

// notes is what a user should know beside the points.
type notes struct {
	messages    []string
	more        int // further messages
	refusedN    int
	refusal     string
	undelivered int
	// What the cap on the rate left out.
	rate        int64
	capped      int64
	cappedNames []string
}

// cap notes that the rate of a metric was too high.
func (n *notes) cap(metric string) {
	if len(n.cappedNames) <= maxMessages {
		n.cappedNames = append(n.cappedNames, clip(metric, maxMessage))
	}
}

// add reports whether the message is among those that are kept.
func (n *notes) add(message string) bool {
	message = clip(message, maxMessage)
	for _, known := range n.messages {
		if known == message {
			n.more++
			return false
		}
	}
	if len(n.messages) == maxMessages {
		n.more++
		return false
	}
	n.messages = append(n.messages, message)
	return true
}

func (n *notes) refuse(points int, err error) {
	n.refusedN += points
	if n.refusal == "" {
		n.refusal = clip(err.Error(), maxMessage)
	}
}

// String is empty when all went well.
func (n *notes) String() string {
	parts := append([]string(nil), n.messages...)
	if n.more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more of the kind", n.more))
	}
	if n.capped > 0 {
		names := slices.Clone(n.cappedNames)
		if len(names) > maxMessages {
			names[maxMessages] = "and others"
		}
		parts = append(parts, fmt.Sprintf("%d points were left out of the curve of %s: more than %d a second; the least, the greatest and the last value are kept",
			n.capped, strings.Join(names, ", "), n.rate))
	}
	if n.refusedN > 0 {
		parts = append(parts, fmt.Sprintf("%d points were refused: %s", n.refusedN, n.refusal))
	}
	if n.undelivered > 0 {
		parts = append(parts, fmt.Sprintf("%d points were not delivered", n.undelivered))
	}
	return strings.Join(parts, "; ")
}

// clip returns s as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}
