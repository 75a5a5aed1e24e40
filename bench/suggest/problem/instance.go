package problem

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// warpLeast is how far a warp may move what is at 0.5 of a parameter's scale: to between
// warpLeast and 1-warpLeast.
const warpLeast = 0.35

// Draw is the revision of Instance: games of another one are not comparable.
const Draw = 1

// Instance of a function for a seed, so that its optimum is not where a tuner may have been
// tuned to. Functions that are defined beyond their box get the optimum at a random place in
// the central 80 % of it, and those of BBOB other rotations too. In all, continuous parameters
// are mirrored by chance and warped a little, linear steps are mirrored by chance, and the
// order of choices is shuffled. What stays: parameters that conditions name; lists, and whole
// numbers on a logarithmic scale, whose steps mean something; the space, and the value of the
// optimum. Real tasks are returned as they are.
func (p *Problem) Instance(seed uint64) *Problem {
	if p.Truth == nil {
		return p
	}
	q := *p
	if p.drawn != nil {
		q = *p.drawn(rng.New(seed, "instance", 0, "place of "+p.Name))
	}
	space := q.Space()
	d := newDisguise(space, rng.New(seed, "instance", 0, q.Name))
	truth, noise := q.Truth, q.Noise
	q.Name, q.drawn = p.Name, nil
	q.instance = fmt.Sprintf("%s of seed %d", p.Name, seed)
	q.Truth = func(point suggest.Point) Outcome { return truth(d.reveal(point)) }
	if noise != nil {
		q.Noise = func(point suggest.Point, truth float64) float64 { return noise(d.reveal(point), truth) }
	}
	if q.Curve != nil {
		curve := *q.Curve
		at := curve.At
		curve.At = func(point suggest.Point, step int) float64 { return at(d.reveal(point), step) }
		q.Curve = &curve
	}
	if at, ok := space.Parse(q.At); ok {
		q.At = space.Assignments(d.hide(at))
	}
	return &q
}

// Drawn is Draw for an instance, and 0 for the problem itself.
func (p *Problem) Drawn() int {
	if p.instance == "" {
		return 0
	}
	return Draw
}

// disguise maps the points that a tuner sees to those of the function.
type disguise struct {
	space suggest.Space
	dims  []dim
}

// dim is what happens to a parameter. The zero value: nothing.
type dim struct {
	mirror bool
	// warp is k of u -> k u / (1 + (k-1) u), which keeps 0 and 1; 0: none.
	warp float64
	// order has the choice of the function for each that is seen; nil: the same.
	order []int64
}

func newDisguise(space suggest.Space, stream *rng.Stream) disguise {
	d := disguise{space: space, dims: make([]dim, space.Len())}
	parents := map[int]bool{}
	for i := range d.dims {
		if parent, ok := space.At(i).When(); ok {
			parents[parent] = true
		}
	}
	for i := range d.dims {
		mirror, place := stream.Float64() < 0.5, warpLeast+(1-2*warpLeast)*stream.Float64()
		p := space.At(i)
		_, finite := p.Count()
		switch {
		case parents[i] || p.Kind() == suggest.Discrete || finite && p.Distribution() == suggest.LogUniform:
		case p.Kind() == suggest.Categorical:
			d.dims[i].order = shuffled(len(p.Choices()), stream)
		case finite:
			d.dims[i].mirror = mirror
		default:
			d.dims[i] = dim{mirror: mirror, warp: (1 - place) / place}
		}
	}
	return d
}

// shuffled are the numbers below n in random order.
func shuffled(n int, stream *rng.Stream) []int64 {
	out := make([]int64, n)
	for i := range out {
		j := min(int(stream.Float64()*float64(i+1)), i)
		out[i], out[j] = out[j], int64(i)
	}
	return out
}

// reveal gives the function's point for one that a tuner sees.
func (d disguise) reveal(point suggest.Point) suggest.Point {
	return d.each(point, func(p suggest.Parameter, m dim, v suggest.Value) suggest.Value {
		u := p.Encode(v)
		if m.mirror {
			u = 1 - u
		}
		return p.Decode(m.warp * u / (1 + (m.warp-1)*u))
	}, func(order []int64, i int64) int64 { return order[i] })
}

// hide is the inverse of reveal.
func (d disguise) hide(point suggest.Point) suggest.Point {
	return d.each(point, func(p suggest.Parameter, m dim, v suggest.Value) suggest.Value {
		u := p.Encode(v)
		u /= m.warp - (m.warp-1)*u
		if m.mirror {
			u = 1 - u
		}
		return p.Decode(u)
	}, func(order []int64, i int64) int64 {
		for seen, own := range order {
			if own == i {
				return int64(seen)
			}
		}
		return i
	})
}

func (d disguise) each(point suggest.Point, warp func(suggest.Parameter, dim, suggest.Value) suggest.Value, choice func(order []int64, i int64) int64) suggest.Point {
	out := append(suggest.Point(nil), point...)
	for i, v := range point {
		p, m := d.space.At(i), d.dims[i]
		if !v.IsSet() {
			continue
		}
		switch n, _ := p.Count(); {
		case m.order != nil:
			index, _ := v.Index()
			out[i] = p.At(choice(m.order, index))
		case m.warp > 0:
			out[i] = warp(p, m, v)
		case m.mirror:
			index, _ := v.Index()
			out[i] = p.At(n - 1 - index)
		}
	}
	return out
}
