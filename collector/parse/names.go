package parse

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxSearchedLine bounds a line that is searched for names, in bytes, and
	// maxSearchedPairs the names in it.
	maxSearchedLine  = 1 << 20
	maxSearchedPairs = 1000
	// maxSearchedName bounds a name that is remembered, in bytes.
	maxSearchedName = 200
)

// ColonFilter finds "name: value", and DictFilter the items of a Python dictionary;
// \x27 is the quote that cannot stand in a shell's quotes or YAML's.
const (
	ColonFilter = `([\w|/.-]+)\s*:\s*([-+]?(?:[\d.,]*\d(?:[eE][-+]?\d+)?%?|nan|inf))`
	DictFilter  = `\x27([\w|/.-]+)\x27\s*:\s*\x27?([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))`
)

const (
	namePattern   = `([\pL_][\w\pL\pM|/.@:#-]*)(["']?)[ \t]*([=:])[ \t]*`
	numberPattern = `["']?[+-]?(?:\.?\d|(?i:nan|inf)\b)`
)

var (
	// assigned is what looks like a metric: a name, a sign, a number. Names and
	// numbers may be quoted.
	assigned = regexp.MustCompile(namePattern + numberPattern)
	// wrapped is a name whose value is a number within brackets, as programs print
	// what holds numbers: loss=tensor(0.5), loss: [0.5].
	wrapped = regexp.MustCompile(namePattern + `([\w.]{0,40}[(\[]{1,8}[ \t]*` + numberPattern + `[^)\]]{0,20}([)\]]?))`)
)

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
// metrics, wanted or not, and for what else may be the reason that one is not
// found. Writing to it never fails.
type Names struct {
	cfg     NamesConfig
	filters []filter
	json    *JSON

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
		compiled, err := newFilter(f)
		if err != nil {
			return nil, err
		}
		s.filters = append(s.filters, compiled)
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
	case s.shape.utf16:
		return "the text is UTF-16: write it as UTF-8"
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

func (s *Names) line(line []byte) {
	for _, column := range s.shape.look(line) {
		s.hint(column, "it is a column of a table that is separated by blanks, which is not read: print "+column+"=..., or read a CSV file that the program writes")
	}
	if len(s.names) >= s.cfg.MaxNames {
		return
	}
	inJSON := bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
	for _, f := range s.filters {
		for _, m := range f.FindAllSubmatch(line, maxSearchedPairs) {
			if len(bytes.TrimSpace(m[2])) > 0 {
				s.add(string(bytes.TrimSpace(m[1])))
			}
		}
	}
	if s.cfg.Format == FormatJSON && len(s.filters) == 0 {
		samples, err := s.json.Parse(nil, line)
		for _, one := range samples {
			s.add(one.Metric)
		}
		if err == nil {
			return
		}
	}
	line = line[len(logPrefix.Find(line)):]
	for _, m := range assigned.FindAllSubmatch(line, maxSearchedPairs) {
		s.assigned(string(m[1]), string(m[3]), inJSON, string(m[2]) == "'")
	}
	if inJSON {
		return // its lists are no mistake
	}
	for _, m := range wrapped.FindAllSubmatch(line, maxSearchedPairs) {
		sign, end := "=", ""
		if string(m[3]) == ":" {
			sign = ": "
		}
		if len(m[5]) == 0 {
			end = "..."
		}
		written := string(m[1]) + sign + string(m[4]) + end
		if name := string(m[1]); !s.known[name] {
			s.hint(name, fmt.Sprintf("it is written %q, which is not a number: print the number alone, as .item() gives it", written))
		}
	}
}

// assigned takes a name that a sign and a number follow, or notes why it is not
// found.
func (s *Names) assigned(name, sign string, inJSON, inDict bool) {
	format := s.cfg.Format
	quoted := `it is written "` + name + sign
	if sign == ":" {
		quoted += " "
	}
	quoted += `..."`
	switch {
	case len(s.filters) > 0:
		if !s.known[name] {
			s.hint(name, quoted+", where the filter does not find it")
		}
	case s.shape.spans && (format == FormatJSON || sign == ":"):
		s.hint(name, s.Advice())
	case format == FormatJSON && sign == "=":
		s.hint(name, quoted+": "+s.format(FormatText))
	case format == FormatJSON:
		s.hint(name, quoted+", which is not in a JSON object")
	case sign == "=" && format == FormatLogfmt && isTime(name):
	case sign == "=":
		s.add(name)
	case inDict:
		s.hint(name, `it is written "'`+name+`': ...", as Python prints a dictionary: `+s.cfg.Use+"filter '"+DictFilter+"'")
	case inJSON:
		s.hint(name, "the lines are JSON: "+s.format(FormatJSON))
	case format == FormatLogfmt:
		s.hint(name, quoted+": print "+name+"=...")
	default:
		s.hint(name, quoted+": print "+name+"=..., or "+s.cfg.Use+"filter '"+ColonFilter+"'")
	}
}

func (s *Names) hint(name, text string) {
	if len(s.hints) < s.cfg.MaxNames && s.hints[name] == "" && len(name) <= maxSearchedName && !IsStep(name) {
		s.hints[name] = text
		s.hinted = append(s.hinted, name)
	}
}

// add takes a name that is not that of a step, which is a metric only when it is
// asked for.
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
	hints := s.Hints()
	reasons := map[string]string{}
	told := map[string]bool{}
	for _, name := range missing {
		text := hints[name]
		if text == "" && len(s.names) == 0 {
			text = s.Advice()
		}
		if told[text] {
			text = "as above"
		}
		reasons[name], told[text] = text, text != ""
	}
	// What was asked for and found may be in a part that was not searched.
	return notFound(missing, slices.Concat(s.names, s.hinted, asked), reasons, hints)
}

// NotFound says which metrics were not found where there are others; names may
// hold the missing ones too. It is empty when none is missing.
func NotFound(missing, names []string) string { return notFound(missing, names, nil, nil) }

// maxListed bounds the names that a sentence lists.
const maxListed = 12

// notFound says which metrics were not found, with the reason of each, or else a
// name that it may be meant to be and the hint for that.
func notFound(missing, names []string, reasons, hints map[string]string) string {
	var others []string
	for _, name := range names {
		if !slices.Contains(missing, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	var parts []string
	explained := false
	for _, name := range missing {
		reason := reasons[name]
		if near := Nearest(name, others, 1); reason == "" && len(near) > 0 {
			reason = "did you mean " + near[0] + "?"
			if hint := hints[near[0]]; hint != "" {
				reason += " (" + hint + ")"
			}
		}
		part := name + " was not found"
		if reason != "" {
			part, explained = part+": "+reason, true
		}
		parts = append(parts, part)
	}
	said := strings.Join(parts, "; ")
	switch n := len(others) - maxListed; {
	case len(parts) == 0:
		return ""
	case len(others) == 0 && explained:
		return said
	case len(others) == 0:
		return said + "; there is nothing like it"
	case n > 0:
		return fmt.Sprintf("%s; there is %s and %d more", said, strings.Join(others[:maxListed], ", "), n)
	}
	return said + "; there is " + strings.Join(others, ", ")
}
