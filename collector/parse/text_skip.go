package parse

import "bytes"

var _ Skipper = (*Text)(nil)

// Skip implements Skipper. Without filters, a sample needs a '=' after the last
// byte of a wanted name, which is looked for in many lines at once; of the lines
// without one, only what may announce an epoch is left to Parse.
func (t *Text) Skip(b []byte) int {
	if t.filters != nil {
		return 0
	}
	n := 0
	for window := minSkip; n < len(b); window = min(2*window, maxSkip) {
		part := b[n:min(len(b), n+window)]
		sign := t.firstSign(part)
		skipped, heading := skipLines(part[:sign])
		n += skipped
		if heading || sign < len(part) || skipped == 0 && (window == maxSkip || n+len(part) == len(b)) {
			return n
		}
	}
	return n
}

// Skip looks at minSkip bytes, and at twice as many each time that lines in them
// were passed over: where each line may be a heading, little is looked at twice.
const (
	minSkip = 512
	maxSkip = 16 << 10
)

// skipLines returns the length of the whole lines at the beginning of b, up to
// one that may be a heading.
func skipLines(b []byte) (n int, heading bool) {
	for n < len(b) {
		if mayBeginHeading[b[n]] {
			return n, true
		}
		k := bytes.IndexByte(b[n:], '\n')
		if k < 0 {
			break
		}
		n += k + 1
	}
	return n, false
}

// firstSign returns the place of the first '=' that a wanted name may stand
// before, or len(b).
func (t *Text) firstSign(b []byte) int {
	for next := 0; ; next++ {
		k := bytes.IndexByte(b[next:], '=')
		if k < 0 {
			return len(b)
		}
		next += k
		end := next
		for end > 0 && isSpace(b[end-1]) {
			end--
		}
		if end > 0 && (t.byLast[b[end-1]] != nil || endsSequence(b[:end])) {
			return next
		}
	}
}

// mayBeginHeading are the bytes with which a heading begins, and those that are
// taken off a line before it is read: escape sequences, and the zeros of a hole.
var mayBeginHeading = func() (may [256]bool) {
	for _, c := range []byte(headingFrame + "eE\x1b\x00") {
		may[c] = true
	}
	return may
}()
