// Package forest has forests of randomized regression trees (Geurts, Ernst and
// Wehenkel, "Extremely randomized trees", 2006) over the rows of package box,
// and the functional analysis of variance of their predictions.
//
// Random thresholds, and all rows in each tree, serve that analysis better than
// the best thresholds on resampled rows: the mean of the trees is smoother, and
// interactions without main effects are found.
package forest

import (
	"cmp"
	"context"
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Dim is a dimension of the rows. A row holds NaN where it is not active.
type Dim struct {
	box.Dim
	// Active is the probability that the dimension is active under the prior; 1
	// for one that always is.
	Active float64
}

// Data is what a forest learns from.
type Data struct {
	Dims []Dim
	// X has a row for each value of Y.
	X [][]float64
	Y []float64
	// Trees is how many trees are grown, 64 where it is 0. Thresholds is how many random
	// thresholds of a number are tried at each split, from 1 to 3, and 3 where it is 0:
	// fewer make trees that differ more, in less time.
	Trees, Thresholds int
}

const (
	// treesGrown is how many trees a forest has.
	treesGrown = 64
	// maxDepth bounds the depth of a tree.
	maxDepth = 64
)

// inactive stands for NaN in the rows of numbers; numbers lie in [0, 1].
const inactive = -1

// mostThresholds is how many random thresholds of a number are tried at each split.
const mostThresholds = 3

// Forest is a mean of regression trees.
type Forest struct {
	dims  []Dim
	trees []tree
}

// tree is its nodes, the root first.
type tree []node

// node is a leaf when left is 0. Otherwise rows go left when they are at most
// the threshold, or when their choice is in the set.
type node struct {
	dim         int
	threshold   float64
	set         []bool // of a choice; the last one stands for not active
	left, right int
	value       float64 // mean of the rows
}

// grower grows one tree.
type grower struct {
	dims   []Dim
	x      [][]float64
	y      []float64
	stream *rng.Stream
	tree   tree

	thresholds int
	spare      []int // memory of part
}

// Fit grows a forest. It ends early, with fewer trees but at least one, when ctx
// is done.
func Fit(ctx context.Context, data Data, key rng.Key) *Forest {
	f := &Forest{dims: data.Dims}
	rows := make([][]float64, len(data.X))
	for i, row := range data.X {
		rows[i] = f.clean(row)
	}
	for k := range cmp.Or(data.Trees, treesGrown) {
		if k > 0 && ctx.Err() != nil {
			break
		}
		g := grower{dims: data.Dims, x: rows, y: data.Y, stream: key.Stream(uint64(k)), thresholds: cmp.Or(data.Thresholds, mostThresholds)}
		all := make([]int, len(rows))
		for i := range all {
			all[i] = i
		}
		g.grow(all, 0)
		f.trees = append(f.trees, g.tree)
	}
	return f
}

// clean replaces NaN.
func (f *Forest) clean(row []float64) []float64 {
	out := make([]float64, len(row))
	for d, v := range row {
		switch {
		case !math.IsNaN(v):
			out[d] = v
		case f.dims[d].Kind == box.Choice:
			out[d] = float64(f.dims[d].Count)
		default:
			out[d] = inactive
		}
	}
	return out
}

// Predict is the mean and the variance of the trees' predictions.
func (f *Forest) Predict(row []float64) (mean, variance float64) {
	row = f.clean(row)
	sum, squares := 0.0, 0.0
	for _, t := range f.trees {
		v := t.predict(row)
		sum += v
		squares += v * v
	}
	n := float64(len(f.trees))
	mean = sum / n
	return mean, math.Max(squares/n-mean*mean, 0)
}

func (t tree) predict(row []float64) float64 {
	n := &t[0]
	for n.left > 0 {
		if n.goesLeft(row[n.dim]) {
			n = &t[n.left]
		} else {
			n = &t[n.right]
		}
	}
	return n.value
}

func (n *node) goesLeft(v float64) bool {
	if n.set != nil {
		return n.set[int(v)]
	}
	return v <= n.threshold
}

// grow adds a node for the rows, and those below it, and gives its position.
func (g *grower) grow(rows []int, depth int) int {
	at := len(g.tree)
	sum := 0.0
	for _, i := range rows {
		sum += g.y[i]
	}
	g.tree = append(g.tree, node{value: sum / float64(len(rows))})
	if len(rows) < 2 || depth >= maxDepth {
		return at
	}
	best, ok := g.split(rows, sum)
	if !ok {
		return at
	}
	cut := g.part(rows, &best)
	best.value = g.tree[at].value
	best.left = g.grow(rows[:cut], depth+1)
	best.right = g.grow(rows[cut:], depth+1)
	g.tree[at] = best
	return at
}

// part moves the rows that go left before the others, and gives how many they are. Both
// keep their order, in which sums are made.
func (g *grower) part(rows []int, n *node) (cut int) {
	right := g.spare[:0]
	for _, i := range rows {
		if n.goesLeft(g.x[i][n.dim]) {
			rows[cut] = i
			cut++
		} else {
			right = append(right, i)
		}
	}
	copy(rows[cut:], right)
	g.spare = right
	return cut
}
