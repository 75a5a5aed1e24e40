package parse

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns at most n of the names that name may have been meant to be,
// the likeliest first: those that differ by few characters, and those of which
// it is a part, or that are a part of it.
func Nearest(name string, names []string, n int) []string {
	low := strings.ToLower(name)
	distances := map[string]int{}
	for _, other := range names {
		like := strings.ToLower(other)
		d := distance(low, like)
		switch {
		case other == "":
		case d <= max(1, min(utf8.RuneCountInString(name), utf8.RuneCountInString(other))/3):
			distances[other] = d
		case len(low) > 2 && strings.Contains(like, low), len(like) > 2 && strings.Contains(low, like):
			distances[other] = 1000 + d
		}
	}
	found := slices.SortedFunc(maps.Keys(distances), func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	if len(found) == 0 {
		return nil
	}
	return found[:min(n, len(found))]
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
