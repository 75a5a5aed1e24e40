package parse

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns at most n of the names that name may have been meant to be,
// the likeliest first: those that differ by few characters, and those of which
// it is a part, or that are a part of it.
func Nearest(name string, names []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	low := strings.ToLower(name)
	for _, other := range names {
		d := distance(low, strings.ToLower(other))
		limit := max(1, min(utf8.RuneCountInString(name), utf8.RuneCountInString(other))/3)
		switch {
		case other == "":
		case d <= limit:
			found = append(found, candidate{other, d})
		case len(low) > 2 && strings.Contains(strings.ToLower(other), low), len(other) > 2 && strings.Contains(low, strings.ToLower(other)):
			found = append(found, candidate{other, 1000 + d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range found[:min(n, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// distance is how many characters must be changed, added, left out or swapped
// with their neighbour to make b from a (optimal string alignment). Names of
// more than 64 characters are compared by their beginnings.
func distance(a, b string) int {
	x, y := firstRunes(a), firstRunes(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			change := last[j]
			if x[i] != y[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

func firstRunes(s string) []rune {
	r := []rune(s)
	return r[:min(len(r), 64)]
}
