// Package box describes the space that the numeric models see: a row of
// float64, one for each dimension.
package box

// Kind says how the values of a dimension relate to each other.
type Kind int

// The kinds.
const (
	// Continuous: any number in [0, 1].
	Continuous Kind = iota
	// Ordered: some numbers in [0, 1], listed in Levels.
	Ordered
	// Choice: an index in [0, Count), without order.
	Choice
)

// MaxLevels bounds Levels. A dimension with more values is Continuous to the
// models, and what they propose is moved to the nearest value.
const MaxLevels = 1024

// Dim is one dimension.
type Dim struct {
	// Kind of the dimension.
	Kind Kind
	// Levels of an Ordered dimension, ascending, within [0, 1]; at most MaxLevels.
	Levels []float64
	// Count of choices of a Choice dimension.
	Count int
}

// Nearest is the position in Levels, which must not be empty, of the level
// that is nearest to u; the lower one when two are equally near.
func (d Dim) Nearest(u float64) int {
	low, high := 0, len(d.Levels)-1
	for low < high {
		middle := (low + high) / 2
		if u-d.Levels[middle] > d.Levels[middle+1]-u {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
