package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
)

// sample is the figures of several rounds.
type sample []float64

func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is the median and the range.
func (s sample) spread(digits int) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, s.median(), digits, slices.Min(s), digits, slices.Max(s))
}

// over divides round by round.
func (s sample) over(t sample) sample {
	var ratios sample
	for i := range min(len(s), len(t)) {
		ratios = append(ratios, s[i]/t[i])
	}
	return ratios
}

// table is a table of the report.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) markdown(out io.Writer) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.header)
	b.WriteString(strings.Repeat("|---", len(t.header)) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t *table) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	if err := w.WriteAll(append([][]string{t.header}, t.rows...)); err != nil {
		return err
	}
	return w.Error()
}
