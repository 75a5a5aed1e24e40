package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
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

// table is a table of the page; its first line is the head.
type table [][]string

func (t *table) add(cells ...string) { *t = append(*t, cells) }

func (t table) markdown() string {
	var b strings.Builder
	for i, cells := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

func (t table) writeCSV(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(t), f.Close())
}
