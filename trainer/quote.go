package trainer

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vernier-ml/vernier/collector/contract"
)

// tail bounds how much of a program's own message is quoted.
const tail = 300

// quote adds a program's or the kubelet's message, or the end of a long one. The
// collector's, where there is no sidecar, is in the place of the program's.
func quote(message string) string {
	message = strings.TrimSpace(message)
	if _, err := contract.ParseSummary(message); message == "" || err == nil {
		return ""
	}
	if before, exception := cutTraceback(message); exception != "" {
		said := []rune(oneLine(exception))
		if len(said) > tail { // the program said more after it, which may be why it ended
			return fmt.Sprintf(" (%s ... %s)", string(said[:tail/2]), string(said[len(said)-tail/2:]))
		}
		return fmt.Sprintf(" (%s, at %s)", string(said), lastOf(before, tail))
	}
	return fmt.Sprintf(" (%s)", lastOf(message, tail))
}

func lastOf(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		text = "..." + string(runes[len(runes)-n:])
	}
	return oneLine(text)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// A frame of Python's traceback, the signs below its code, and what is no part of it.
var (
	frame   = regexp.MustCompile(`(?m)^  File "`)
	signs   = regexp.MustCompile(`(?m)^ +[~^]+$`)
	outside = regexp.MustCompile(`(?m)^\S`)
)

// cutTraceback cuts what a Python program printed at its end into the last frame and
// the exception, which says most and stands last. exception is "" where there is none.
func cutTraceback(message string) (last, exception string) {
	frames := frame.FindAllStringIndex(message, -1)
	if len(frames) == 0 {
		return "", ""
	}
	rest := message[frames[len(frames)-1][0]:]
	at := outside.FindStringIndex(rest)
	if at == nil {
		return "", ""
	}
	return signs.ReplaceAllString(rest[:at[0]], ""), rest[at[0]:]
}
