package parse

import "bytes"

// Skip returns the length of lines at the beginning of b, each with its line feed,
// that have neither samples nor errors, and that leave Parse as it is. It may be 0.
// There is no carriage return in b, and its first byte begins a line. It is worth
// calling where the line before had no sample: a sample needs a '=' after the last
// byte of a wanted name, which is looked for in many lines at once; of the lines
// without one, only what may announce an epoch is left to Parse.
func (t *Text) Skip(b []byte) int {
	if t.filters != nil || t.items || len(b) > 0 && mayBeginHeading[b[0]] {
		return 0
	}
	n := 0
	for n < len(b) {
		part := b[n:min(len(b), n+maxSkip)]
		sign := t.firstSign(part)
		skipped, heading := skipLines(part[:sign])
		n += skipped
		if heading || sign < len(part) || skipped == 0 {
			return n
		}
	}
	return n
}

// maxSkip is how much Skip looks at before it goes on, in bytes.
const maxSkip = 4 << 10

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
		if end > 0 && (t.byLast[b[end-1]] != nil || bytes.IndexByte(b[max(0, end-maxSequence):end], escape) >= 0) {
			return next
		}
	}
}

// maxSequence bounds an escape sequence between a name and its sign, in bytes.
const maxSequence = 32

// mayBeginHeading are the bytes with which a heading begins, and those that are
// taken off a line before it is read: escape sequences, and the zeros of a hole.
var mayBeginHeading = byteSet(headingFrame + "eE\x1b\x00")
