package collector

import (
	"errors"
	"math"
	"strconv"
)

// Written returns the value as text: as the source wrote it, unless that is a
// number in a notation for people, such as 97.5% or 1,234.5, which those who
// read an observation would not take for one; then in the shortest form.
func (p Point) Written() string {
	if p.Text != "" {
		_, err := strconv.ParseFloat(p.Text, 64)
		if err == nil || errors.Is(err, strconv.ErrRange) || math.IsNaN(p.Value) {
			return p.Text
		}
	}
	return strconv.FormatFloat(p.Value, 'g', -1, 64)
}
