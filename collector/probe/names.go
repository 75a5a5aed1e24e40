package probe

import (
	"bytes"
	"regexp"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// maxSearched bounds how much of a file is searched for names, in bytes.
	maxSearched = 8 << 20
	// maxSearchedLine bounds a line that is searched.
	maxSearchedLine = 1 << 20
)

// assigned finds what looks like a metric: a name, a sign, a number.
var assigned = regexp.MustCompile(`([A-Za-z_][\w|/.@-]*)"?(\s*[=:]\s*)"?[+-]?(?:\d|\.\d|(?i:nan|inf)\b)`)

// colonFilter finds "name: value".
const colonFilter = `([\w|/-]+)\s*:\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`

// nameSearch looks for names in what is written to it, line by line. It never
// fails.
type nameSearch struct {
	format  string
	filters []*regexp.Regexp
	json    *parse.JSON
	samples []parse.Sample

	partial []byte
	read    int64
	cut     bool

	names []string
	known map[string]bool
	// hints are of names that this format does not find.
	hints map[string]string
}

func newNameSearch(format string, filters []string) (*nameSearch, error) {
	s := &nameSearch{format: format, json: parse.NewAnyJSON(), known: map[string]bool{}, hints: map[string]string{}}
	for _, f := range filters {
		re, err := regexp.Compile(f)
		if err != nil {
			return nil, err
		}
		s.filters = append(s.filters, re)
	}
	return s, nil
}

// Write implements io.Writer.
func (s *nameSearch) Write(b []byte) (int, error) {
	n := len(b)
	if s.read += int64(n); s.read > maxSearched {
		return n, nil
	}
	for {
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			break
		}
		if !s.cut {
			s.line(append(s.partial, b[:end]...))
		}
		s.partial, s.cut = s.partial[:0], false
		b = b[end+1:]
	}
	if len(s.partial)+len(b) > maxSearchedLine {
		s.partial, s.cut = s.partial[:0], true
	}
	if !s.cut {
		s.partial = append(s.partial, b...)
	}
	return n, nil
}

// end searches a last line that has no end.
func (s *nameSearch) end() {
	if len(s.partial) > 0 {
		s.line(s.partial)
		s.partial = nil
	}
}

func (s *nameSearch) line(line []byte) {
	switch {
	case len(s.names) >= maxNames:
	case len(s.filters) > 0:
		for _, f := range s.filters {
			for _, m := range f.FindAllSubmatch(line, -1) {
				if len(m) > 2 && len(bytes.TrimSpace(m[2])) > 0 {
					s.add(string(bytes.TrimSpace(m[1])))
				}
			}
		}
	case s.format == parse.FormatJSON:
		samples, err := s.json.Parse(s.samples[:0], line)
		s.samples = samples
		for _, one := range samples {
			if err == nil {
				s.add(one.Metric)
			}
		}
	default:
		s.assignments(line)
	}
}

// assignments finds name=value, and notes what is written in another way.
func (s *nameSearch) assignments(line []byte) {
	for _, m := range assigned.FindAllSubmatch(line, -1) {
		name, sign := string(m[1]), bytes.TrimSpace(m[2])
		if string(sign) == "=" {
			s.add(name)
			continue
		}
		if len(s.hints) < maxNames && s.hints[name] == "" {
			s.hints[name] = `it is written "` + name + `: ...": print ` + name + "=..., or add --filter '" + colonFilter + "'"
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
				s.hints[name] = "the lines are JSON: add --format JSON"
			}
		}
	}
}

// add takes a name that is not that of a step: steps are metrics only for those
// who ask for them.
func (s *nameSearch) add(name string) {
	if name == "" || s.known[name] || len(s.names) >= maxNames || parse.IsStep(name) {
		return
	}
	s.known[name] = true
	s.names = append(s.names, name)
}
