package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// jsonScan walks over JSON text.
type jsonScan struct {
	b    []byte
	at   int
	path []byte
}

func (s *jsonScan) reset(b []byte) { s.b, s.at, s.path = b, 0, s.path[:0] }

// release lets go of the text, and of a path that is very long.
func (s *jsonScan) release() {
	if s.b = nil; cap(s.path) > keptBytes {
		s.path = nil
	}
}

func (s *jsonScan) fail(why string) error { return fmt.Errorf("%s at byte %d", why, s.at) }

// skipSpace returns the place of the next byte that is no white space.
func (s *jsonScan) skipSpace() int {
	for s.at < len(s.b) {
		if c := s.b[s.at]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			break
		}
		s.at++
	}
	return s.at
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *jsonScan) peek() byte {
	if s.skipSpace() == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// open enters a list or an object and reports whether it has elements.
func (s *jsonScan) open(closing byte) bool {
	s.at++
	if s.peek() == closing {
		s.at++
		return false
	}
	return true
}

// next goes on after an element and reports whether there is another.
func (s *jsonScan) next(closing byte) (more bool, err error) {
	switch s.peek() {
	case ',':
		s.at++
		s.skipSpace()
		return true, nil
	case closing:
		s.at++
		return false, nil
	}
	return false, s.fail("unfinished list or object")
}

// key reads a key and the colon after it.
func (s *jsonScan) key() ([]byte, error) {
	key, err := s.str()
	if err != nil {
		return nil, err
	}
	if s.peek() != ':' {
		return nil, s.fail("no colon after a key")
	}
	s.at++
	s.skipSpace()
	return key, nil
}

// inString says of a byte whether it needs a closer look within a string.
var inString = [256]bool{'"': true, '\\': true, 0: true, 1: true, 2: true, 3: true, 4: true, 5: true,
	6: true, 7: true, 8: true, 9: true, 10: true, 11: true, 12: true, 13: true, 14: true, 15: true,
	16: true, 17: true, 18: true, 19: true, 20: true, 21: true, 22: true, 23: true, 24: true, 25: true,
	26: true, 27: true, 28: true, 29: true, 30: true, 31: true}

// str reads a string. The result is valid until the next call.
func (s *jsonScan) str() ([]byte, error) {
	b, begin := s.b, s.at
	if begin >= len(b) || b[begin] != '"' {
		return nil, s.fail("no string")
	}
	odd := false
	for i := begin + 1; i < len(b); i++ {
		c := b[i]
		if !inString[c] {
			continue
		}
		switch c {
		case '"':
			s.at = i + 1
			if !odd {
				return b[begin+1 : i], nil
			}
			var text string
			if err := json.Unmarshal(b[begin:s.at], &text); err != nil {
				return nil, err
			}
			return []byte(text), nil
		case '\\':
			odd = true
			i++
		default:
			return nil, s.fail("control character in a string")
		}
	}
	return nil, errors.New("unfinished string")
}

// literal reads a number, true, false or null; raw is nil unless a number.
func (s *jsonScan) literal() (raw []byte, v number, err error) {
	rest := s.b[s.at:]
	if len(rest) > 0 && (rest[0] == 't' || rest[0] == 'f' || rest[0] == 'n') {
		for _, w := range [...]string{"true", "false", "null"} {
			if bytes.HasPrefix(rest, []byte(w)) && (len(rest) == len(w) || !isWord(rest[len(w)])) {
				s.at += len(w)
				return nil, number{}, nil
			}
		}
	}
	v = scanDecimal(rest)
	if v.n == 0 || v.n < len(rest) && (isWord(rest[v.n]) || rest[v.n] == '.') {
		return nil, number{}, s.fail("no value")
	}
	s.at += v.n
	return rest[:v.n], v, nil
}

// skip passes over any value.
func (s *jsonScan) skip(depth int) error {
	if depth > maxDepth {
		return s.fail("nested too deeply")
	}
	switch s.peek() {
	case '[':
		return s.skipAll(']', depth, false)
	case '{':
		return s.skipAll('}', depth, true)
	case '"':
		_, err := s.str()
		return err
	}
	_, _, err := s.literal()
	return err
}

func (s *jsonScan) skipAll(closing byte, depth int, keys bool) error {
	var err error
	for more := s.open(closing); more && err == nil; {
		if keys {
			if _, err = s.key(); err != nil {
				return err
			}
		}
		if err = s.skip(depth + 1); err == nil {
			more, err = s.next(closing)
		}
	}
	return err
}
