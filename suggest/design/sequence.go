package design

import (
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// sequenceLater is where the later part of a sequence begins, beyond the numbers
// of trials. sequenceEnd is where the shorter ones repeat themselves.
const (
	sequenceLater = 1 << 20
	sequenceEnd   = 1 << 32
)

// sequence gives the point with the trial's number, and then others from anywhere
// in the later part of the sequence: at a fixed distance there would be points
// with the same first digits, which break the same constraint.
func sequence(name string, seed uint64, at func(index uint64, u []float64)) points {
	again := rng.NewKey(seed, name, "again")
	return func(number uint64) func(u []float64) {
		index, stream := number, again.Stream(number)
		return func(u []float64) {
			at(index, u)
			index = sequenceLater + stream.Uint64N(sequenceEnd-sequenceLater)
		}
	}
}
