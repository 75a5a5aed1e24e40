package parse

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Text reads lines such as `epoch=3 loss=0.25 accuracy = 9.1e-1`.
//
// Without filters the grammar is Katib's default filter,
//
//	([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)
//
// with these differences, all deliberate: nan, inf and infinity are values; a
// slash belongs to a name, so that `val/loss=0.3` is a value of the metric
// val/loss and none of loss; any metric name is found, also one with characters
// that the grammar does not have; `1,234.5` is 1234.5; `loss=0,31` is an error
// instead of 0; a name without a number after it is passed over.
//
// With filters, each is a Go regular expression whose first group is the name
// and whose second is the value, as in Katib. A value that is not a number is
// kept as text.
//
// The step of a line is what it states as global_step, step, iteration or
// epoch (the first of these that it has), as `step=3` or `"step": 3`. The time
// is the first word, if that is an RFC 3339 time.
type Text struct {
	names   []string // longest first
	last    [256]bool
	filters []*regexp.Regexp
}

var _ Line = (*Text)(nil)

// NewText returns a parser of the named metrics. Its error says which filter
// cannot be used and why.
func NewText(metrics, filters []string) (*Text, error) {
	names, err := wanted(metrics)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	t := &Text{names: names}
	for _, n := range names {
		t.last[n[len(n)-1]] = true
	}
	for _, f := range filters {
		re, err := regexp.Compile(f)
		if err != nil {
			return nil, fmt.Errorf("metrics filter %q: %w", f, err)
		}
		if re.NumSubexp() < 2 {
			return nil, fmt.Errorf("metrics filter %q has %d groups: the first must hold the metric's name and the second its value", f, re.NumSubexp())
		}
		t.filters = append(t.filters, re)
	}
	return t, nil
}

// wanted returns the metrics without repeats.
func wanted(metrics []string) ([]string, error) {
	if len(metrics) == 0 {
		return nil, errors.New("no metric is named")
	}
	if slices.Contains(metrics, "") {
		return nil, errors.New("a metric has an empty name")
	}
	names := slices.Sorted(slices.Values(metrics))
	return slices.Compact(names), nil
}

// Parse implements Line.
func (t *Text) Parse(dst []Sample, line []byte) ([]Sample, error) {
	start := len(dst)
	steps := newStepFinder()
	var err error
	if t.filters != nil {
		dst = t.filtered(dst, line)
	}
	for i := 0; i < len(line); {
		k := bytes.IndexByte(line[i:], '=')
		if k < 0 {
			break
		}
		eq := i + k
		i = eq + 1
		steps.at(line, eq)
		if t.filters == nil {
			var bad error
			if dst, bad = t.assignment(dst, line, eq); err == nil {
				err = bad
			}
		}
	}
	if len(dst) == start {
		return dst, err
	}
	for i := 0; i < len(line); {
		k := bytes.IndexByte(line[i:], ':')
		if k < 0 {
			break
		}
		steps.at(line, i+k)
		i += k + 1
	}
	at := leadingTime(line)
	for i := start; i < len(dst); i++ {
		dst[i].Step, dst[i].Time = steps.step, at
	}
	return dst, err
}

// assignment appends the sample around the '=' at line[eq], if there is one.
func (t *Text) assignment(dst []Sample, line []byte, eq int) ([]Sample, error) {
	end := eq
	for end > 0 && isSpace(line[end-1]) {
		end--
	}
	if end == 0 || !t.last[line[end-1]] {
		return dst, nil
	}
	name, ok := t.nameBefore(line[:end])
	if !ok {
		return dst, nil
	}
	rest := trimLeft(line[eq+1:])
	v, n, ok := scanGrouped(rest)
	if n == 0 {
		return dst, nil
	}
	if !ok {
		return dst, fmt.Errorf("the value %q of %s is ambiguous: write a decimal point", rest[:min(n, 40)], name)
	}
	return append(dst, Sample{Metric: name, Value: v, Text: textOf(rest[:n], v), Offset: end - len(name)}), nil
}

// nameBefore returns the longest wanted name that b ends with and that is not
// the end of a longer name.
func (t *Text) nameBefore(b []byte) (string, bool) {
	for _, n := range t.names {
		at := len(b) - len(n)
		if at >= 0 && string(b[at:]) == n && (at == 0 || !isName(b[at-1])) {
			return n, true
		}
	}
	return "", false
}

func isName(c byte) bool { return isWord(c) || c == '|' || c == '-' || c == '/' }

// filtered applies the user's filters.
func (t *Text) filtered(dst []Sample, line []byte) []Sample {
	if !slices.ContainsFunc(t.names, func(n string) bool { return bytes.Contains(line, []byte(n)) }) {
		return dst
	}
	start := len(dst)
	for _, re := range t.filters {
		for _, m := range re.FindAllSubmatchIndex(line, -1) {
			if m[2] < 0 || m[4] < 0 {
				continue
			}
			name, value := bytes.TrimSpace(line[m[2]:m[3]]), bytes.TrimSpace(line[m[4]:m[5]])
			k := slices.IndexFunc(t.names, func(n string) bool { return n == string(name) })
			if k < 0 || len(value) == 0 {
				continue
			}
			dst = append(dst, valueSample(t.names[k], value, m[2]))
		}
	}
	return distinct(dst, start)
}

// valueSample reads a whole text as a value.
func valueSample(metric string, text []byte, offset int) Sample {
	s := Sample{Metric: metric, Step: NoStep, Offset: offset}
	v, n, ok := scanGrouped(text)
	if ok && n == len(text) {
		s.Value, s.Text = v, textOf(text, v)
		return s
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		v = math.NaN()
	}
	s.Value, s.Text = v, string(text[:min(len(text), maxText)])
	return s
}

// distinct orders dst[start:] by offset, drops what two filters found alike,
// and moves those that share an offset apart.
func distinct(dst []Sample, start int) []Sample {
	found := dst[start:]
	slices.SortStableFunc(found, func(a, b Sample) int { return cmp.Compare(a.Offset, b.Offset) })
	found = slices.CompactFunc(found, func(a, b Sample) bool {
		return a.Offset == b.Offset && a.Metric == b.Metric && a.Text == b.Text && (a.Value == b.Value || a.Text != "")
	})
	for i := 1; i < len(found); i++ {
		found[i].Offset = max(found[i].Offset, found[i-1].Offset+1)
	}
	return dst[:start+len(found)]
}

// leadingTime reads the first word as an RFC 3339 time.
func leadingTime(line []byte) time.Time {
	if len(line) < 20 || line[4] != '-' || line[10] != 'T' {
		return time.Time{}
	}
	if end := bytes.IndexByte(line, ' '); end >= 0 {
		line = line[:end]
	}
	var at time.Time
	if at.UnmarshalText(line) != nil {
		return time.Time{}
	}
	return at
}
