package population

import (
	"math"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// perturbation is the fraction of a number's size by which it moves: the
	// factors 1.2 and 0.8 of Jaderberg et al., section 4.1.1.
	perturbation = 0.2
	// leastPerturbation is the fraction of the range by which a number moves at
	// least when the range holds 0, where a factor changes little or nothing.
	leastPerturbation = 0.02
	// perturbed is how many parameters change at once, on average.
	perturbed = 3
)

// perturbSome changes parameters of a point: each one when there are at most
// perturbed of them, otherwise that many on average and one at least, since
// with many changes at once hardly any result is better. With the given
// probability a parameter is drawn anew from its distribution. Otherwise a
// number moves up or down by a fifth of its size and by one step at least, a
// discrete value moves to its neighbour, and a categorical one is drawn anew.
// Inactive parameters are drawn, in case they become active.
func perturbSome(space suggest.Space, p suggest.Point, resample float64, stream *rng.Stream) suggest.Point {
	u, kept := make([]float64, space.Len()), make([]bool, space.Len())
	active := 0
	for _, v := range p {
		if v.InSpace() {
			active++
		}
	}
	chosen := int(stream.Uint64N(uint64(max(1, active))))
	for i, v := range p {
		parameter := space.At(i)
		change := stream.Float64()*float64(active) < perturbed
		fresh, anew, up := stream.Float64(), stream.Float64() < resample, stream.Float64() < 0.5
		if !v.InSpace() {
			u[i] = fresh
			continue
		}
		switch chosen--; {
		case !change && chosen != -1:
			u[i], kept[i] = parameter.Encode(v), true
		case anew || parameter.Kind() == suggest.Categorical:
			u[i] = fresh
		default:
			u[i] = parameter.Encode(perturb(parameter, v, up))
		}
	}
	q := space.Decode(u)
	for i, v := range q {
		if kept[i] && v.InSpace() {
			q[i] = p[i] // without rounding
		}
	}
	return q
}

// perturb moves a number up or down, within its range.
func perturb(p suggest.Parameter, v suggest.Value, up bool) suggest.Value {
	count, finite := p.Count()
	i, _ := v.Index()
	by, x := int64(1), v.Float()
	far := perturbation * math.Abs(x)
	if p.Min() <= 0 && p.Max() >= 0 {
		far = math.Max(far, leastPerturbation*(p.Max()-p.Min()))
	}
	switch {
	case count == 1:
		return v
	case p.Step() > 0:
		by = int64(math.Max(1, math.Min(math.Round(far/p.Step()), float64(count))))
	case !finite && !up:
		return moveTo(p, v, x-far)
	case !finite:
		return moveTo(p, v, x+far)
	}
	if up {
		return p.At(min(i+by, count-1))
	}
	return p.At(max(i-by, 0))
}

// moveTo is the value x of a continuous parameter, moved into its range; v if there
// is none.
func moveTo(p suggest.Parameter, v suggest.Value, x float64) suggest.Value {
	x = math.Min(math.Max(x, p.Min()), p.Max())
	if w, ok := p.Parse(strconv.FormatFloat(x, 'g', -1, 64)); ok {
		return w
	}
	return v
}
