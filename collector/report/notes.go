package report

import (
	"fmt"
	"strings"

	"github.com/vernier-ml/vernier/collector"
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
	if n.refusedN > 0 {
		parts = append(parts, fmt.Sprintf("%d points were refused: %s", n.refusedN, n.refusal))
	}
	if n.undelivered > 0 {
		parts = append(parts, fmt.Sprintf("%d points were not delivered", n.undelivered))
	}
	return strings.Join(parts, "; ")
}

// fit makes a point's texts such that they can travel.
func fit(p collector.Point) collector.Point {
	p.Text = clip(p.Text, MaxText)
	p.Metric = clip(p.Metric, MaxName)
	p.Source = clip(p.Source, MaxName)
	return p
}

// clip returns s as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}
