package report

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	// Messages that are kept word for word, of different kinds; and as many of metrics
	// that were not found, which may list names.
	maxMessages = 3
	maxMessage  = 300
	maxMissing  = 700
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
	yet                  string   // what is said of metrics that may still come
	missing              []string // what is said of metrics that were not found
	messages             []message
	more                 int // messages of further kinds
	refused, undelivered loss
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

// loss is points that did not arrive, and why the first of them did not.
type loss struct {
	points int
	why    string
}

func (l *loss) add(points int, err error) {
	l.points += points
	if l.why == "" {
		l.why = contract.Shorten(err.Error(), maxMessage)
	}
}

// differing is what differs between messages of one kind: numbers, and what is
// quoted. There may be one for each line of a program.
var differing = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]`)

// cap notes that the rate of a metric was too high.
func (n *notes) cap(metric string) {
	if len(n.cappedNames) < maxMessages {
		n.cappedNames = append(n.cappedNames, clip(metric, maxMessage))
	} else if len(n.cappedNames) == maxMessages {
		n.cappedNames = append(n.cappedNames, "and others")
	}
}

// add reports whether the message is new and among those that are kept.
func (n *notes) add(err error) bool {
	var early interface{ NotYet() bool }
	if errors.As(err, &early) && early.NotYet() {
		n.yet = contract.Shorten(err.Error(), maxMissing)
		return false
	}
	var missing interface{ Missing() []string }
	if errors.As(err, &missing) {
		text := contract.Shorten(err.Error(), maxMissing)
		if slices.Contains(n.missing, text) || len(n.missing) == maxMessages {
			return false
		}
		n.missing = append(n.missing, text)
		return true
	}
	kind := clip(differing.ReplaceAllString(err.Error(), ""), maxMissing)
	i := slices.IndexFunc(n.messages, func(m message) bool { return m.kind == kind })
	switch {
	case i >= 0:
		n.messages[i].more++
	case len(n.messages) == maxMessages:
		n.more++
	default:
		n.messages = append(n.messages, message{text: contract.Shorten(err.Error(), maxMessage), kind: kind})
		return true
	}
	return false
}

// String is what is said at the end, empty when all went well.
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
		parts = append(parts, fmt.Sprintf("%d points were left out of the curve of %s: more than %d a second; the least, the greatest and the last value are kept",
			n.capped, strings.Join(n.cappedNames, ", "), n.rate))
	}
	if n.refused.points > 0 {
		parts = append(parts, fmt.Sprintf("%d points were refused: %s", n.refused.points, n.refused.why))
	}
	if n.undelivered.points > 0 {
		parts = append(parts, fmt.Sprintf("%d points were not delivered (%s): the curve lacks them", n.undelivered.points, n.undelivered.why))
	}
	return strings.Join(parts, "; ")
}

// clip returns s as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}
