package forest

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Effects are the parts of the variance of a forest's predictions over the prior.
type Effects struct {
	// Main is, for each dimension, the fraction of the variance that it explains
	// by itself: its Sobol index of the first order.
	Main []float64
	// Interactions is the rest, which only several dimensions together explain.
	Interactions float64
}

// probes is how many random points the variance is measured at. Its relative
// error is about the square root of 2/probes.
const probes = 4096

// Effects decomposes the variance of the forest's predictions (functional ANOVA:
// Hutter, Hoos and Leyton-Brown, "An efficient approach for assessing
// hyperparameter importance", ICML 2014). The marginals are exact, by the boxes
// of the leaves. They are averaged over the trees before their variance is
// taken, and not after as in algorithm 2 there, since what a tree has of its own
// is noise. The variance of all is measured at points that the key draws.
//
// That a dimension is not active counts as one more value of it, with its prior
// probability and independent of the others. All is 0 when the predictions are
// constant.
func (f *Forest) Effects(key rng.Key) Effects {
	e := Effects{Main: make([]float64, len(f.dims))}
	mean := 0.0
	marginals := make([]marginal, len(f.dims))
	for _, t := range f.trees {
		leaves := leavesOf(f.dims, t)
		for _, l := range leaves {
			mean += l.mass * l.value / float64(len(f.trees))
		}
		for d := range marginals {
			marginals[d].add(f.dims[d], d, leaves, 1/float64(len(f.trees)))
		}
	}
	variance := f.variance(mean, key)
	sum := 0.0
	for d := range marginals {
		e.Main[d] = marginals[d].variance(f.dims[d], mean)
		sum += e.Main[d]
	}
	variance = math.Max(variance, sum)
	if !(variance > 1e-20*mean*mean) {
		return Effects{Main: make([]float64, len(f.dims))}
	}
	for d := range e.Main {
		e.Main[d] /= variance
	}
	e.Interactions = 1 - sum/variance
	return e
}

// variance of the predictions around the mean under the prior.
func (f *Forest) variance(mean float64, key rng.Key) float64 {
	stream, row, sum := key.Stream(0), make([]float64, len(f.dims)), 0.0
	for range probes {
		for d, dim := range f.dims {
			row[d] = stream.Float64()
			if dim.Kind == box.Choice {
				row[d] = math.Floor(row[d] * float64(dim.Count))
			}
			if stream.Float64() >= dim.Active {
				row[d] = math.NaN()
			}
		}
		value, _ := f.Predict(row)
		sum += (value - mean) * (value - mean)
	}
	return sum / probes
}

// region is the part of a dimension that a leaf covers: from low to high, or a
// set of choices, and its probability.
type region struct {
	low, high float64
	set       []bool
	mass      float64
}

// leaf is a box with a value.
type leaf struct {
	regions []region
	value   float64
	mass    float64
}

// leavesOf are the boxes on which a tree is constant, with their probabilities.
func leavesOf(dims []Dim, t tree) []leaf {
	whole := make([]region, len(dims))
	for d, dim := range dims {
		whole[d] = region{low: 2 * inactive, high: 1, mass: 1}
		if dim.Kind == box.Choice {
			whole[d].set = slices.Repeat([]bool{true}, dim.Count+1)
		}
	}
	w := walker{dims: dims, tree: t}
	w.walk(0, whole)
	return w.leaves
}

// walker collects leaves.
type walker struct {
	dims   []Dim
	tree   tree
	leaves []leaf
}

// walk collects the leaves below a node, whose rows lie in the regions.
func (w *walker) walk(at int, regions []region) {
	n := w.tree[at]
	if n.left == 0 {
		l := leaf{regions: slices.Clone(regions), value: n.value, mass: 1}
		for _, r := range regions {
			l.mass *= r.mass
		}
		w.leaves = append(w.leaves, l)
		return
	}
	was := regions[n.dim]
	for _, left := range []bool{true, false} {
		r := was
		switch {
		case n.set != nil:
			r.set = slices.Clone(was.set)
			for c := range r.set {
				r.set[c] = r.set[c] && n.set[c] == left
			}
		case left:
			r.high = math.Min(r.high, n.threshold)
		default:
			r.low = math.Max(r.low, n.threshold)
		}
		r.mass = w.dims[n.dim].probability(r)
		regions[n.dim] = r
		if left {
			w.walk(n.left, regions)
		} else {
			w.walk(n.right, regions)
		}
	}
	regions[n.dim] = was
}

// probability of a region under the prior, which is uniform where the dimension
// is active.
func (d Dim) probability(r region) float64 {
	mass := 0.0
	if d.Kind == box.Choice {
		for c, in := range r.set {
			if in {
				mass += d.chance(c)
			}
		}
		return mass
	}
	if r.low <= inactive && inactive <= r.high {
		mass = 1 - d.Active
	}
	return mass + d.Active*math.Max(math.Min(r.high, 1)-math.Max(r.low, 0), 0)
}

// chance of a choice; the last one is that of not being active.
func (d Dim) chance(c int) float64 {
	if c == d.Count {
		return 1 - d.Active
	}
	return d.Active / float64(d.Count)
}

// marginal is the mean prediction as a function of one dimension: its level for
// each choice, or the places where it rises, and by how much.
type marginal struct {
	levels []float64
	rises  []rise
}

type rise struct{ at, by float64 }

// add adds a tree with a weight.
func (m *marginal) add(dim Dim, d int, leaves []leaf, weight float64) {
	if m.levels == nil && dim.Kind == box.Choice {
		m.levels = make([]float64, dim.Count+1)
	}
	for _, l := range leaves {
		r, others := l.regions[d], weight*l.value*l.othersMass(d)
		if r.set == nil {
			m.rises = append(m.rises, rise{r.low, others}, rise{r.high, -others})
		}
		for c, in := range r.set {
			if in {
				m.levels[c] += others
			}
		}
	}
}

// variance around the mean under the prior.
func (m *marginal) variance(dim Dim, mean float64) float64 {
	sum := 0.0
	for c, level := range m.levels {
		sum += dim.chance(c) * (level - mean) * (level - mean)
	}
	slices.SortFunc(m.rises, func(a, b rise) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	level := 0.0
	for k := range len(m.rises) - 1 {
		level += m.rises[k].by
		cell := region{low: m.rises[k].at, high: m.rises[k+1].at}
		if cell.high > cell.low {
			sum += dim.probability(cell) * (level - mean) * (level - mean)
		}
	}
	return sum
}

// othersMass is the probability of a leaf's box in all dimensions but one.
func (l leaf) othersMass(d int) float64 {
	mass := 1.0
	for k, r := range l.regions {
		if k != d {
			mass *= r.mass
		}
	}
	return mass
}
