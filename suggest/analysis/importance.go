package analysis

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/forest"
	"github.com/vernier-ml/vernier/suggest/numeric/normal"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Importance says how much the parameters matter.
type Importance struct {
	// Parameters in the order of the space.
	Parameters []Share
	// Interactions is the part that only several parameters together explain. It
	// is 0 where it is not known.
	Interactions float64
}

// Share is a parameter's part of the whole, from 0 to 1.
type Share struct {
	Parameter string
	Share     float64
}

const (
	// leastResults is how few results say nothing about importance.
	leastResults = 8
	// mostResults bounds what the forest learns from, for its time.
	mostResults = 1000
)

func shares(space suggest.Space, values []float64, interactions float64) Importance {
	out := Importance{Interactions: interactions}
	for i, v := range values {
		out.Parameters = append(out.Parameters, Share{Parameter: space.At(i).Name(), Share: v})
	}
	return out
}

// lossesOf are the losses of one objective.
func lossesOf(all []*history.Row, objective int) []float64 {
	out := make([]float64, len(all))
	for i, r := range all {
		out[i] = r.Losses[objective]
	}
	return out
}

func enough(s suggest.Study, objective, least int, by Rule) ([]*history.Row, *history.Encoding, error) {
	if err := checkObjective(s, objective); err != nil {
		return nil, nil, err
	}
	all, encoding := compared(s, by)
	all = averaged(all)
	if len(all) < least {
		return nil, nil, fmt.Errorf("%w: %d of %d", ErrTooFew, len(all), least)
	}
	return all, encoding, nil
}

// averaged has one row for each point, with the means of its losses: a point that was
// tried often says no more about the others.
func averaged(all []*history.Row) []*history.Row {
	at, counts := map[string]int{}, []float64{}
	var out []*history.Row
	for _, r := range all {
		key := history.RowKey(r.X)
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out, counts = append(out, r), append(counts, 1)
			continue
		}
		counts[i]++
		mean := *out[i]
		mean.Losses = slices.Clone(mean.Losses)
		for k, loss := range r.Losses {
			mean.Losses[k] += (loss - mean.Losses[k]) / counts[i]
		}
		out[i] = &mean
	}
	return out
}

// FunctionalANOVA is how much of the variance of an objective over the whole
// space each parameter explains by itself, by a forest that is fitted to the
// results: see forest.Effects. The shares and the interactions sum to 1, and are
// all 0 when the objective is constant. That a conditional parameter is not
// active counts as a value of it. It takes a second or so for a thousand trials;
// when ctx is done the answer is less exact.
func FunctionalANOVA(ctx context.Context, s suggest.Study, objective int) (Importance, error) {
	all, encoding, err := enough(s, objective, leastResults, Broadest)
	if err != nil {
		return Importance{}, err
	}
	all = thin(all, mostResults)
	data := forest.Data{Y: withinReach(lossesOf(all, objective))}
	for i, active := range activity(s.Space) {
		data.Dims = append(data.Dims, forest.Dim{Dim: encoding.Dims[i], Active: active})
	}
	for _, r := range all {
		data.X = append(data.X, r.X)
	}
	key := rng.NewKey(s.Seed, "analysis", "functional anova")
	effects := forest.Fit(ctx, data, key).Effects(key.At(1))
	return shares(s.Space, effects.Main, effects.Interactions), nil
}

// thin leaves at most n results, evenly over the study.
func thin(all []*history.Row, n int) []*history.Row {
	if len(all) <= n {
		return all
	}
	out := make([]*history.Row, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

const (
	// topFraction of the results are the good ones, as Watanabe et al. propose.
	topFraction = 0.1
	// leastTop is how many good ones there are at least: of fewer, chance decides. They must be
	// a third of the results at most, or they are no selection.
	leastTop = 8
	// cells is how finely a number's range is divided.
	cells = 32
	// shuffles is how many random sets of results tell what chance does.
	shuffles = 32
)

// PEDANOVA is how much each parameter decides whether a result is among the best
// tenth: the Pearson divergence of its distribution there from that in all
// results (Watanabe, Bansal and Hutter, "PED-ANOVA", IJCAI 2023, equation 16).
// What a random set of as many results shows is subtracted, so that parameters
// that do not matter have about 0. The shares sum to 1, or are all 0 when no
// parameter matters. That a conditional parameter is not active counts as a
// value of it. It is fast, and looks at good results only: a parameter that
// makes bad ones worse does not matter to it. It needs 24 results, of which it takes 8.
func PEDANOVA(s suggest.Study, objective int) (Importance, error) {
	all, _, err := enough(s, objective, 3*leastTop, Broadest)
	if err != nil {
		return Importance{}, err
	}
	losses := lossesOf(all, objective)
	values := make([]float64, s.Space.Len())
	if slices.Min(losses) == slices.Max(losses) {
		return shares(s.Space, values, 0), nil
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(losses[i], losses[j]), cmp.Compare(i, j)) })
	top := max(leastTop, int(math.Ceil(topFraction*float64(len(all)))))
	key := rng.NewKey(s.Seed, "analysis", "ped-anova")
	sum := 0.0
	for i := range values {
		kernels := kernelsOf(s.Space.At(i), i, all, top)
		base := density(kernels, order)
		values[i] = divergence(density(kernels, order[:top]), base)
		byChance := 0.0
		for k := range shuffles {
			byChance += divergence(density(kernels, draw(len(all), top, key.Stream(uint64(k)))), base)
		}
		values[i] = math.Max(values[i]-byChance/shuffles, 0)
		sum += values[i]
	}
	for i := range values {
		if sum > 0 {
			values[i] /= sum
		}
	}
	return shares(s.Space, values, 0), nil
}

// draw picks k of the numbers below n.
func draw(n, k int, stream *rng.Stream) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for i := range k {
		j := i + int(stream.Uint64N(uint64(n-i)))
		all[i], all[j] = all[j], all[i]
	}
	return all[:k]
}

// kernelsOf spreads each result over the cells of a parameter: over its choices
// or the parts of its range, and one for where it is not active. The width for
// numbers is Scott's for top values.
func kernelsOf(p suggest.Parameter, i int, all []*history.Row, top int) [][]float64 {
	count, finite := p.Count()
	choice := p.Kind() == suggest.Categorical
	parts := cells
	if finite && (choice || count < cells) {
		parts = int(count)
	}
	width := 0.0
	if !choice && parts == cells {
		width = scott(i, p, all, top)
	}
	out := make([][]float64, len(all))
	for k, r := range all {
		out[k] = make([]float64, parts+1)
		v := r.Point[i]
		switch index, _ := v.Index(); {
		case !v.InSpace():
			out[k][parts] = 1
		case parts < cells || choice:
			out[k][index] = 1
		case width == 0:
			out[k][min(int(p.Encode(v)*cells), cells-1)] = 1
		default:
			spread(out[k][:parts], p.Encode(v), width)
		}
	}
	return out
}

// scott is Scott's rule for a set of top values that spread as all do.
func scott(i int, p suggest.Parameter, all []*history.Row, top int) float64 {
	n, mean, square := 0.0, 0.0, 0.0
	for _, r := range all {
		if v := r.Point[i]; v.InSpace() {
			u := p.Encode(v)
			n++
			mean += u
			square += u * u
		}
	}
	if n == 0 {
		return 0
	}
	mean /= n
	return 1.059 * math.Sqrt(math.Max(square/n-mean*mean, 0)) * math.Pow(float64(top), -0.2) / 2
}

// spread puts a normal, cut off at the ends of the range, into cells.
func spread(out []float64, u, width float64) {
	n := float64(len(out))
	whole := normal.Below((1-u)/width) - normal.Below(-u/width)
	before := normal.Below(-u / width)
	for c := range out {
		below := normal.Below((float64(c+1)/n - u) / width)
		out[c] = (below - before) / whole
		before = below
	}
}

// density is the mean of some kernels, with a prior that weighs as one result.
func density(kernels [][]float64, of []int) []float64 {
	out := make([]float64, len(kernels[0]))
	for _, k := range of {
		for c, v := range kernels[k] {
			out[c] += v
		}
	}
	for c := range out {
		out[c] = (out[c] + 1/float64(len(out))) / float64(len(of)+1)
	}
	return out
}

// divergence is Pearson's.
func divergence(p, base []float64) float64 {
	sum := 0.0
	for c, b := range base {
		sum += b * (p[c]/b - 1) * (p[c]/b - 1)
	}
	return sum
}
