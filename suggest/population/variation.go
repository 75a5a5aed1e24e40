package population

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// variation makes children of rows.
type variation struct {
	dims []box.Dim
	// crossover is the probability of two parents in place of one.
	crossover float64
	// mutation is the probability of a change in each dimension.
	mutation float64
	// near is the distribution index of both operators: larger keeps children
	// nearer to their parents.
	near float64
}

// child of two rows: simulated binary crossover for numbers (Deb and Agrawal,
// "Simulated binary crossover for continuous search space", 1995), one or the
// other choice for categories, then mutation. At least one dimension is not
// that of the first parent, where that is possible.
func (v *variation) child(mother, father []float64, stream *rng.Stream) []float64 {
	row := make([]float64, len(mother))
	copy(row, mother)
	if stream.Float64() < v.crossover {
		for i, dim := range v.dims {
			row[i] = v.cross(dim, mother[i], father[i], stream)
		}
	}
	changed := false
	for i, dim := range v.dims {
		if math.IsNaN(row[i]) {
			row[i] = anywhere(dim, stream) // counts if the parameter turns out to be active
		} else if stream.Float64() < v.mutation {
			row[i] = v.mutate(dim, row[i], stream)
		}
		changed = changed || row[i] != mother[i] && !math.IsNaN(mother[i])
	}
	if !changed {
		i := int(stream.Uint64N(uint64(len(row))))
		if !math.IsNaN(mother[i]) {
			row[i] = v.mutate(v.dims[i], row[i], stream)
		}
	}
	return row
}

func anywhere(dim box.Dim, stream *rng.Stream) float64 {
	u := stream.Float64()
	if dim.Kind == box.Choice {
		return math.Floor(u * float64(dim.Count))
	}
	return u
}

func (v *variation) cross(dim box.Dim, a, b float64, stream *rng.Stream) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b) || a == b:
		return a
	}
	swap := stream.Float64() < 0.5
	if dim.Kind == box.Choice {
		if swap {
			return b
		}
		return a
	}
	if swap {
		a, b = b, a
	}
	u := stream.Float64()
	beta := math.Pow(2*u, 1/(v.near+1))
	if u > 0.5 {
		beta = math.Pow(1/(2*(1-u)), 1/(v.near+1))
	}
	return min(max(((1+beta)*a+(1-beta)*b)/2, 0), 1)
}

// mutate is a change of one value: polynomial mutation for numbers (Deb and
// Goyal, "A combined genetic adaptive search for engineering design", 1996), by
// a level at least, and another choice for categories.
func (v *variation) mutate(dim box.Dim, x float64, stream *rng.Stream) float64 {
	if dim.Kind == box.Choice {
		if dim.Count < 2 {
			return x
		}
		return math.Mod(x+1+float64(stream.Uint64N(uint64(dim.Count-1))), float64(dim.Count))
	}
	u := stream.Float64()
	var delta float64
	if u < 0.5 {
		delta = math.Pow(2*u+(1-2*u)*math.Pow(1-x, v.near+1), 1/(v.near+1)) - 1
	} else {
		delta = 1 - math.Pow(2*(1-u)+2*(u-0.5)*math.Pow(x, v.near+1), 1/(v.near+1))
	}
	y := min(max(x+delta, 0), 1)
	if dim.Kind != box.Ordered || dim.Nearest(y) != dim.Nearest(x) {
		return y
	}
	at := dim.Nearest(x) + 1
	if delta < 0 {
		at -= 2
	}
	if at < 0 {
		at = 1
	} else if at == len(dim.Levels) {
		at = len(dim.Levels) - 2
	}
	return dim.Levels[max(0, min(at, len(dim.Levels)-1))]
}
