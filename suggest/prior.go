package suggest

import (
	"math"
	"slices"
)

// Prior is where a user believes that good values of a parameter are. A search begins
// there, and believes its results more and more.
type Prior struct {
	// Value that is believed to be good.
	Value string
	// Spread is how far from Value good values are likely to be: a standard deviation, as
	// a share of the range on the scale of the parameter's distribution, of a discrete by
	// rank. Above 0, at most 1; empty: 0.1. It is not for a categorical, where Value is as
	// likely as all others together, or three times as likely as the only other one.
	Spread string
	// Weights of the values of a discrete or categorical, in the order of its list, in
	// place of Value: none below 0, and not all 0.
	Weights []string
}

const (
	// believedSpread is the default of Prior.Spread.
	believedSpread = 0.1
	// doubt is the share of a prior that stays uniform: no value is impossible.
	doubt = 0.05
)

// belief is a Prior after its numbers were read.
type belief struct {
	mean, spread float64 // of a normal, in the unit interval
	below, all   float64 // what it has below 0, and from 0 to 1
	weights      []float64
}

// believe reads the prior of a parameter that is valid otherwise.
func (r *reader) believe(p *Parameter) {
	spec := r.spec.Prior
	if spec == nil || p.count == 1 {
		return
	}
	if len(spec.Weights) > 0 {
		r.weigh(p, spec)
		return
	}
	v, ok := p.Parse(spec.Value)
	switch {
	case spec.Value == "":
		r.fail("prior", "has neither a value nor weights; say which value is believed to be good, or remove it")
		return
	case !ok:
		r.fail("prior", "has the value %q, which must be %s", spec.Value, p.Allowed())
		return
	case p.kind == Categorical && spec.Spread != "":
		r.fail("prior", "has a spread, which a categorical has no use for; remove it, or give weights")
		return
	case p.kind == Categorical:
		share := 0.5
		if p.count == 2 { // half would say nothing
			share = 0.75
		}
		weights := slices.Repeat([]float64{(1 - share) / float64(p.count-1)}, int(p.count))
		weights[v.index] = share
		p.prior = &belief{weights: weights}
		return
	}
	b := &belief{mean: p.Encode(v), spread: believedSpread}
	if spec.Spread != "" {
		n, err := parseNumber(spec.Spread)
		if err != nil || !(n.value > 0 && n.value <= 1) {
			r.fail("prior", "has the spread %q; it must be a share of the range, above 0 and at most 1", spec.Spread)
			return
		}
		b.spread = n.value
	}
	b.below = normalBelow(-b.mean / b.spread)
	b.all = 1 - b.below - normalBelow((b.mean-1)/b.spread)
	p.prior = b
}

// weigh reads weights in the order in which the list was written; a discrete parameter
// keeps its list sorted.
func (r *reader) weigh(p *Parameter, spec *Prior) {
	switch {
	case p.choices == nil:
		r.fail("prior", "has weights, which are for a list; give a value")
		return
	case spec.Value != "" || spec.Spread != "":
		r.fail("prior", "has weights beside a value or spread; give one of them")
		return
	case len(spec.Weights) != len(r.spec.List):
		r.fail("prior", "has %d weights for %d values; give one for each", len(spec.Weights), len(r.spec.List))
		return
	}
	weights, sum := make([]float64, p.count), 0.0
	for i, text := range spec.Weights {
		n, err := parseNumber(text)
		if err != nil || n.value < 0 || n.value > 1e9 {
			r.fail("prior", "has the weight %q; it must be a number from 0 to 1e9", text)
			return
		}
		v, _ := p.Parse(r.spec.List[i])
		weights[v.index] = n.value
		sum += n.value
	}
	if sum == 0 {
		r.fail("prior", "has weights that are all 0; raise one")
		return
	}
	for i := range weights {
		weights[i] /= sum
	}
	p.prior = &belief{weights: weights}
}

// Believed says whether the parameter has a prior.
func (p Parameter) Believed() bool { return p.prior != nil }

// LogPrior is the logarithm of the prior's density at a coordinate of the unit interval
// (Parameter.Encode), 0 where it is as probable as without a prior, and its derivative.
func (p Parameter) LogPrior(u float64) (log, slope float64) {
	b := p.prior
	switch {
	case b == nil:
		return 0, 0
	case b.weights != nil:
		i := min(int64(clampUnit(u)*float64(p.count)), p.count-1)
		return math.Log(doubt + (1-doubt)*b.weights[i]*float64(p.count)), 0
	}
	z := (u - b.mean) / b.spread
	normal := (1 - doubt) * math.Exp(-z*z/2) / (math.Sqrt(2*math.Pi) * b.spread * b.all)
	return math.Log(doubt + normal), -normal / (doubt + normal) * z / b.spread
}

// fromPrior is the coordinate that has the share u of the prior below it.
func (p Parameter) fromPrior(u float64) float64 {
	b := p.prior
	switch {
	case b == nil:
		return u
	case u < doubt:
		return u / doubt
	}
	u = (u - doubt) / (1 - doubt)
	if b.weights == nil {
		return clampUnit(b.mean - b.spread*math.Sqrt2*math.Erfcinv(2*(b.below+u*b.all)))
	}
	last := int64(0)
	for i, w := range b.weights {
		if w == 0 {
			continue
		}
		if last = int64(i); u < w {
			break
		}
		u -= w
	}
	return (float64(last) + 0.5) / float64(p.count)
}

// Believed says whether a parameter of the space has a prior.
func (s Space) Believed() bool { return slices.ContainsFunc(s.parameters, Parameter.Believed) }

// FromPrior maps coordinates in the unit box to a point, such that uniform coordinates
// give points of the prior. Parameters without one are drawn as Decode does.
func (s Space) FromPrior(u []float64) Point {
	at := make([]float64, len(u))
	for i, p := range s.parameters {
		at[i] = p.fromPrior(u[i])
	}
	return s.Decode(at)
}

// MostBelieved is the point with the most probable value of each parameter that has a
// prior, and the middle of the others.
func (s Space) MostBelieved() Point {
	at := slices.Repeat([]float64{0.5}, len(s.parameters))
	for i, p := range s.parameters {
		switch b := p.prior; {
		case b == nil:
		case b.weights == nil:
			at[i] = b.mean
		default:
			at[i] = (float64(slices.Index(b.weights, slices.Max(b.weights))) + 0.5) / float64(p.count)
		}
	}
	return s.Decode(at)
}
