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

// ColonFilter finds "name: value", also in JSON behind something else, and DictFilter
// the items of a Python dictionary, also where numpy 2 writes np.float64(0.5); \x27 is the quote that cannot stand in a shell's quotes or YAML's.
const (
	ColonFilter = `([\w/.@-]+)"?\s*:\s*"?([-+]?(?:[\d.,]*\d(?:[eE][-+]?\d+)?%?|(?:nan|inf)\b))`
	DictFilter  = `\x27([\w|/.@-]+)\x27\s*:\s*(?:\x27|[\w.]+\()?([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|(?:nan|inf)\b))`
)

// written is a name, a sign, and a number, which is perhaps within brackets, as
// programs print what holds numbers: loss=tensor(0.5), loss: [0.5]. Names and numbers
// may be quoted.
var written = func() *regexp.Regexp {
	const number = `["']?[+-]?(?:\.?\d|(?i:nan|inf)\b)`
	return regexp.MustCompile(`([\pL_][\w\pL\pM|/.@:#-]*)(["']?)[ \t]*([=:])[ \t]*(?:` + number +
		`|([\w.]{0,40}[(\[]{1,8}[ \t]*` + number + `[^)\]]{0,20}([)\]]?)))`)
}()

// NamesConfig describes Names.
type NamesConfig struct {
	// Format and Filters are those that the text is read with; see NewLine.
	Format  string
	Filters []string
	// MaxBytes bounds how much of the text is searched, and MaxNames how many
	// names are remembered.
	MaxBytes int64
	MaxNames int
	// Flags: hints name the flags of the command line.
	Flags bool
}

// Names searches the text that is written to it, line by line, for the names of
// metrics, wanted or not, and for what else may be the reason that one is not
// found. Writing to it never fails.
type Names struct {
	cfg     NamesConfig
	filters []*regexp.Regexp
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
	for end := bytes.IndexAny(b, "\r\n"); end >= 0; end = bytes.IndexAny(b, "\r\n") {
		if !s.cut {
			s.line(append(s.partial, b[:end]...))
		}
		s.partial, s.cut, b = s.partial[:0], false, b[end+1:]
	}
	if s.cut = s.cut || len(s.partial)+len(b) > maxSearchedLine; s.cut {
		s.partial = nil
	} else {
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
	case s.shape.spans && s.cfg.Format == FormatJSON:
		return "the JSON spans several lines: write one object a line"
	case s.shape.spans:
		return "this looks like JSON over several lines: write one object a line, and " + s.use("format", FormatJSON)
	case s.shape.table == ',':
		return "this looks like CSV: " + s.use("format", "CSV")
	case s.shape.table != 0:
		return fmt.Sprintf("this looks like a table that is separated by %s: only commas are read, as CSV", separatorName(s.shape.table))
	}
	return ""
}

// use is the advice to use a format or a filter.
func (s *Names) use(what, value string) string {
	switch {
	case s.cfg.Flags:
		return "add --" + what + " " + value
	case what == "filter":
		return "use the filter " + value
	}
	return "use " + what + " " + value
}

func (s *Names) line(line []byte) {
	if s.cfg.Format == FormatText && bytes.IndexByte(line, escape) >= 0 {
		line = escapes.ReplaceAll(line, nil) // as Text does
	}
	s.shape.look(line)
	if len(s.names) >= s.cfg.MaxNames {
		return
	}
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
	inJSON := bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
	for _, m := range written.FindAllSubmatch(line[len(logPrefix.Find(line)):], maxSearchedPairs) {
		name, quote, sign := string(m[1]), string(m[2]), string(m[3])
		if sign == ":" {
			sign = ": "
		}
		switch {
		case len(m[4]) == 0:
			s.pair(name, quote, sign, inJSON)
		case quote == "'" && len(s.filters) == 0 && bytes.IndexByte(m[4], '(') > 0:
			s.pair(name, quote, sign, inJSON)
		case !inJSON && !s.known[name]: // the lists of JSON are no mistake
			end := ""
			if len(m[5]) == 0 {
				end = "..."
			}
			s.hint(name, fmt.Sprintf("it is written %q, which is not a number: print the number alone, as .item() gives it", name+sign+string(m[4])+end))
		}
	}
}

// pair takes a name that a sign and a number follow, or notes why it is not found.
func (s *Names) pair(name, quote, sign string, inJSON bool) {
	format, equals := s.cfg.Format, sign == "="
	here := `it is written "` + name + sign + `..."`
	switch {
	case len(s.filters) > 0:
		if !s.known[name] {
			s.hint(name, here+", where the filter does not find it")
		}
	case s.shape.spans && (format == FormatJSON || !equals):
		s.hint(name, s.Advice())
	case format == FormatJSON && equals:
		s.hint(name, here+": "+s.use("format", FormatText))
	case format == FormatJSON:
		s.hint(name, here+", which is not in a JSON object")
	case equals && (format != FormatLogfmt || !isTime(name)):
		s.add(name)
	case equals:
	case quote == "'":
		s.hint(name, `it is written "'`+name+`': ...", as Python prints a dictionary: `+s.use("filter", "'"+DictFilter+"'"))
	case inJSON:
		s.hint(name, "the lines are JSON: "+s.use("format", FormatJSON))
	case format == FormatLogfmt:
		s.hint(name, here+": print "+name+"=...")
	default:
		s.hint(name, here+": print "+name+"=..., or "+s.use("filter", "'"+ColonFilter+"'"))
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
	if name != "" && len(name) <= maxSearchedName && !s.known[name] && len(s.names) < s.cfg.MaxNames && !IsStep(name) {
		s.known[name] = true
		s.names = append(s.names, name)
	}
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
	var others, parts []string
	for _, name := range names {
		if !slices.Contains(missing, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
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
	switch more := ""; {
	case said == "" || len(others) == 0 && explained:
		return said
	case len(others) == 0:
		return said + "; there is nothing like it"
	default:
		if n := len(others) - maxListed; n > 0 {
			others, more = others[:maxListed], fmt.Sprintf(" and %d more", n)
		}
		return said + "; there is " + strings.Join(others, ", ") + more
	}
}
