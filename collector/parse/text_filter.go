package parse

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

// newFilter reads a user's regular expression.
func newFilter(expression string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("metrics filter %q: %w", expression, err)
	}
	if re.NumSubexp() < 2 {
		return nil, fmt.Errorf("metrics filter %q has %d groups: the first must hold the metric's name and the second its value", expression, re.NumSubexp())
	}
	return re, nil
}

// filtered applies the user's filters. A capture without the exponent that follows
// it is an error, since it would be another number.
func (t *Text) filtered(dst []collector.Point, line []byte) (_ []collector.Point, err error) {
	if !slices.ContainsFunc(t.names, func(n string) bool { return bytes.Contains(line, []byte(n)) }) {
		return dst, nil
	}
	start := len(dst)
	for _, f := range t.filters {
		for _, m := range f.FindAllSubmatchIndex(line, -1) {
			if m[2] < 0 || m[4] < 0 {
				continue
			}
			name, value := bytes.TrimSpace(line[m[2]:m[3]]), bytes.TrimSpace(line[m[4]:m[5]])
			k := slices.IndexFunc(t.names, func(n string) bool { return n == string(name) })
			if k < 0 || len(value) == 0 {
				continue
			}
			if rest := line[m[5]:]; isDigit(value[len(value)-1]) && exponent(rest) > 0 {
				err = fmt.Errorf("the filter %q captures %q of %s and leaves out its exponent %q: let it capture ([eE][-+]?\\d+)? too", f, value, name, rest[:exponent(rest)])
				continue
			}
			s := wholeSample(t.names[k], value)
			s.Seq = int64(m[2])
			dst = append(dst, s)
		}
	}
	return distinct(dst, start), err
}

// distinct orders dst[start:] by Seq, drops what two filters found alike,
// and moves those that share one apart.
func distinct(dst []collector.Point, start int) []collector.Point {
	found := dst[start:]
	if len(found) < 2 {
		return dst
	}
	slices.SortStableFunc(found, func(a, b collector.Point) int { return cmp.Compare(a.Seq, b.Seq) })
	found = slices.CompactFunc(found, func(a, b collector.Point) bool {
		return a.Seq == b.Seq && a.Metric == b.Metric && a.Text == b.Text && (a.Value == b.Value || a.Text != "")
	})
	for i := 1; i < len(found); i++ {
		found[i].Seq = max(found[i].Seq, found[i-1].Seq+1)
	}
	return dst[:start+len(found)]
}
