package parse

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxSearchedLine bounds a line that is searched for names, in bytes.
	maxSearchedLine = 1 << 20
	// maxSearchedName bounds a name that is remembered, in bytes.
	maxSearchedName = 200
)

// colonFilter finds "name: value".
const colonFilter = `([\w|/-]+)\s*:\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`

// NamesConfig describes Names.
type NamesConfig struct {
	// Format and Filters are those that the text is read with; see NewLine.
	Format  string
	Filters []string
	// MaxBytes bounds how much of the text is searched, and MaxNames how many
	// names are remembered.
	MaxBytes int64
	MaxNames int
	// Use is the word before a format or a filter in a hint: "use the" or "add
	// --". Default: "use the ".
	Use string
}

// Names searches the text that is written to it, line by line, for the names of
// metrics, whether or not anybody wants them, and for what else may be the reason
// that one is not found. Writing to it never fails.
type Names struct {
	cfg     NamesConfig
	filters []*regexp.Regexp
	json    *JSON
	samples []Sample

	partial []byte
	read    int64
	cut     bool
	shape   shape

	names []string
	known map[string]bool
	// hints are of names that this format does not find, in the order of hinted.
	hints  map[string]string
	hinted []string
}

// NewNames returns a search that has seen nothing. Its error says which filter
// cannot be used.
func NewNames(cfg NamesConfig) (*Names, error) {
	if cfg.Use == "" {
		cfg.Use = "use the "
	}
	s := &Names{cfg: cfg, json: NewAnyJSON(), known: map[string]bool{}, hints: map[string]string{}}
	for _, f := range cfg.Filters {
		re, err := newFilter(f)
		if err != nil {
			return nil, err
		}
		s.filters = append(s.filters, re.Regexp)
	}
	return s, nil
}

// Write implements io.Writer.
func (s *Names) Write(b []byte) (int, error) {
	n := len(b)
	b = b[:max(0, min(int64(n), s.cfg.MaxBytes-s.read))]
	s.read += int64(n)
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
		s.partial, s.cut = nil, true
	}
	if !s.cut {
		s.partial = append(s.partial, b...)
	}
	return n, nil
}

// End searches a last line that has no end.
func (s *Names) End() {
	if len(s.partial) > 0 && s.read <= s.cfg.MaxBytes {
		s.line(s.partial)
	}
	s.partial = nil
}

// Read returns how many bytes were written to it.
func (s *Names) Read() int64 { return s.read }

// Merge adds what another search has found.
func (s *Names) Merge(other *Names) {
	for _, name := range other.names {
		s.add(name)
	}
	for _, name := range other.hinted {
		s.hint(name, other.hints[name])
	}
}

// Names are those that were found, in order of appearance.
func (s *Names) Names() []string { return s.names }

// Hints say, for names that the format does not find, how they are written and
// what to do.
func (s *Names) Hints() map[string]string {
	for _, name := range s.names {
		delete(s.hints, name) // found in another line
	}
	return s.hints
}

// Advice says what the text as a whole looks like, when that is not what the
// format reads; else it is empty.
func (s *Names) Advice() string {
	switch {
	case s.shape.spans && s.cfg.Format == FormatJSON:
		return "the JSON spans several lines: write one object a line"
	case s.shape.spans:
		return "this looks like JSON over several lines: write one object a line, and " + s.format(FormatJSON)
	case s.shape.table == ',':
		return "this looks like CSV: " + s.format("CSV")
	case s.shape.table != 0:
		return fmt.Sprintf("this looks like a table that is separated by %s: only commas are read, as CSV", separatorName(s.shape.table))
	}
	return ""
}

// format is the advice to use a format.
func (s *Names) format(name string) string {
	if strings.HasSuffix(s.cfg.Use, "--") {
		return s.cfg.Use + "format " + name
	}
	return strings.TrimSuffix(s.cfg.Use, "the ") + "format " + name
}

func (s *Names) filter() string { return s.cfg.Use + "filter '" + colonFilter + "'" }

func (s *Names) line(line []byte) {
	s.shape.look(line)
	switch {
	case len(s.names) >= s.cfg.MaxNames:
	case len(s.filters) > 0:
		s.filtered(line)
	case s.cfg.Format == FormatJSON:
		samples, err := s.json.Parse(s.samples[:0], line)
		s.samples = samples
		if err != nil {
			s.assignments(line)
			return
		}
		for _, one := range samples {
			s.add(one.Metric)
		}
	default:
		s.assignments(line)
	}
}

// filtered finds what the filters find, and notes what they do not.
func (s *Names) filtered(line []byte) {
	for _, f := range s.filters {
		for _, m := range f.FindAllSubmatch(line, -1) {
			if len(bytes.TrimSpace(m[2])) > 0 {
				s.add(string(bytes.TrimSpace(m[1])))
			}
		}
	}
	for name, sign := range assigned(line) {
		if !s.known[name] {
			s.hint(name, `it is written "`+name+sign+`...", where the filter does not find it`)
		}
	}
	s.wrapped(line)
}

// wrapped notes what is written as no number.
func (s *Names) wrapped(line []byte) {
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		return // lists of JSON
	}
	for name, written := range wrapped(line) {
		if !s.known[name] {
			s.hint(name, fmt.Sprintf("it is written %q, which is not a number: print the number alone, as .item() gives it", written))
		}
	}
}

// assignments finds name=value, and notes what is written in another way.
func (s *Names) assignments(line []byte) {
	for name, sign := range assigned(line) {
		inJSON := bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
		switch {
		case s.cfg.Format == FormatJSON && s.shape.spans:
			s.hint(name, s.Advice())
		case s.cfg.Format == FormatJSON && sign == "=":
			s.hint(name, `it is written "`+name+`=...": `+s.format(FormatText))
		case s.cfg.Format == FormatJSON:
			s.hint(name, `it is written "`+name+`: ...", which is not in a JSON object`)
		case sign == "=" && s.cfg.Format == FormatLogfmt && isTime(name):
		case sign == "=":
			s.add(name)
		case s.shape.spans:
			s.hint(name, s.Advice())
		case inJSON:
			s.hint(name, "the lines are JSON: "+s.format(FormatJSON))
		case s.cfg.Format == FormatLogfmt:
			s.hint(name, `it is written "`+name+`: ...": print `+name+"=...")
		default:
			s.hint(name, `it is written "`+name+`: ...": print `+name+"=..., or "+s.filter())
		}
	}
	s.wrapped(line)
}

func (s *Names) hint(name, text string) {
	if len(s.hints) < s.cfg.MaxNames && s.hints[name] == "" && len(name) <= maxSearchedName && !IsStep(name) {
		s.hints[name] = text
		s.hinted = append(s.hinted, name)
	}
}

// add takes a name that is not that of a step: steps are metrics only for those
// who ask for them.
func (s *Names) add(name string) {
	if name == "" || len(name) > maxSearchedName || s.known[name] || len(s.names) >= s.cfg.MaxNames || IsStep(name) {
		return
	}
	s.known[name] = true
	s.names = append(s.names, name)
}

// Missing says why metrics that were asked for were not found, in one sentence
// for each, and what there is, also of what was asked for; asked are all that
// were asked for. It is empty when none is missing.
func (s *Names) Missing(asked, missing []string) string {
	var others []string
	hints := s.Hints()
	// What was asked for and found may stand where nobody searched for names.
	for _, name := range slices.Concat(s.names, s.hinted, asked) {
		if !slices.Contains(missing, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	var parts []string
	told := map[string]bool{}
	for _, name := range missing {
		text := hints[name]
		if text == "" && len(s.names) == 0 {
			text = s.Advice()
		}
		switch {
		case text == "":
			text = resembling(name, others, hints)
		case told[text]:
			text = "as above"
		default:
			told[text] = true
		}
		if text != "" {
			text = ": " + text
		}
		parts = append(parts, name+" was not found"+text)
	}
	return withOthers(parts, others)
}

// NotFound says which metrics were not found where there are others; names may
// hold the missing ones too. It is empty when none is missing.
func NotFound(missing, names []string) string {
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(missing, n) })
	var parts []string
	for _, name := range missing {
		text := resembling(name, others, nil)
		if text != "" {
			text = ": " + text
		}
		parts = append(parts, name+" was not found"+text)
	}
	return withOthers(parts, others)
}

// resembling says what a name may be meant to be.
func resembling(name string, others []string, hints map[string]string) string {
	found := Nearest(name, others, 1)
	if len(found) == 0 {
		return ""
	}
	text := "did you mean " + found[0] + "?"
	if hint := hints[found[0]]; hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// maxListed bounds the names that a sentence lists.
const maxListed = 12

func withOthers(parts, others []string) string {
	if len(parts) == 0 {
		return ""
	}
	list := "there is nothing like it"
	if len(others) > 0 {
		list = "there is " + strings.Join(others[:min(len(others), maxListed)], ", ")
	}
	if n := len(others) - maxListed; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	said := strings.Join(parts, "; ")
	if len(others) == 0 && strings.Contains(said, ": ") {
		return said // which has the reason
	}
	return said + "; " + list
}
