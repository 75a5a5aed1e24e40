package agent

import "strings"

// expand replaces each $(NAME) in s by its value. $$ stands for $, so $$(NAME)
// is left as $(NAME). A name that lookup does not know, or a reference that is
// not closed, is left as it stands.
func expand(s string, lookup func(string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch s[1] {
		case '$':
			b.WriteByte('$')
			s = s[2:]
		case '(':
			end := strings.IndexByte(s, ')')
			if end < 0 {
				// Not closed: the text is only text.
				b.WriteString("$(")
				s = s[2:]
				continue
			}
			if value, ok := lookup(s[2:end]); ok {
				b.WriteString(value)
			} else {
				b.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			b.WriteString(s[:2])
			s = s[2:]
		}
	}
	return b.String()
}
