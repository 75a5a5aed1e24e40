package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	// Messages that are kept word for word, of different kinds.
	maxMessages = 3
	maxMessage  = 300
	// What is said of metrics that were not found: it may list names.
	maxMissing     = 3
	maxMissingText = 700
	// MaxText is the longest value text, in bytes; what is longer is cut.
	MaxText = 256
	// MaxName is the longest name of a metric or a source, in bytes.
	MaxName = 1024
	// Metrics that are summed up; a program that makes up names without end must
	// not fill the memory.
	maxMetrics = 1000
)

// notes is what a user should know beside the points.
type notes struct {
	missing     []string // what is said of metrics that were not found
	messages    []message
	more        int    // messages of further kinds
	kind        []byte // room for that of a message
	refusedN    int
	refusal     string
	undelivered int
	trouble     string // why the first of them were not delivered
	// What the cap on the rate left out.
	rate        int64
	capped      int64
	cappedNames []string
}

// message is the first of its kind.
type message struct {
	text string
	kind string
	more int // of the kind
}

// kindOf appends a message without what differs between messages of one kind:
// numbers, and what is quoted. There may be one for each line of a program.
func kindOf(dst []byte, text string) []byte {
	quoted := false
	for i := 0; i < min(len(text), maxMissingText); i++ {
		c := text[i]
		switch {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c < '0' || c > '9'):
			dst = append(dst, c)
		}
	}
	return dst
}

// cap notes that the rate of a metric was too high.
func (n *notes) cap(metric string) {
	if len(n.cappedNames) <= maxMessages {
		n.cappedNames = append(n.cappedNames, clip(metric, maxMessage))
	}
}

// miss notes metrics that were not found. It reports whether that is news.
func (n *notes) miss(text string) bool {
	text = contract.Shorten(text, maxMissingText)
	if slices.Contains(n.missing, text) || len(n.missing) == maxMissing {
		return false
	}
	n.missing = append(n.missing, text)
	return true
}

// add reports whether the message is among those that are kept.
func (n *notes) add(text string) bool {
	n.kind = kindOf(n.kind[:0], text)
	for i := range n.messages {
		if n.messages[i].kind == string(n.kind) {
			n.messages[i].more++
			return false
		}
	}
	if len(n.messages) == maxMessages {
		n.more++
		return false
	}
	n.messages = append(n.messages, message{text: contract.Shorten(text, maxMessage), kind: string(n.kind)})
	return true
}

func (n *notes) refuse(points int, err error) {
	n.refusedN += points
	if n.refusal == "" {
		n.refusal = contract.Shorten(err.Error(), maxMessage)
	}
}

func (n *notes) giveUp(points int, why error) {
	n.undelivered += points
	if n.trouble == "" {
		n.trouble = contract.Shorten(why.Error(), maxMessage)
	}
}

// String is empty when all went well.
func (n *notes) String() string {
	parts := slices.Clone(n.missing)
	for _, m := range n.messages {
		if m.more > 0 {
			m.text += fmt.Sprintf(" (and %d more of the kind)", m.more)
		}
		parts = append(parts, m.text)
	}
	if n.more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more of other kinds", n.more))
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
		parts = append(parts, fmt.Sprintf("%d points were not delivered (%s): the curve lacks them", n.undelivered, n.trouble))
	}
	return strings.Join(parts, "; ")
}

// clip returns s as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}
