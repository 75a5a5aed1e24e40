package population

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/numeric/tvgp"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const (
	// pb2Memory is how many of the newest results the model learns from.
	pb2Memory = 64
	// pb2Least is how few are too few for a model.
	pb2Least = 4
	// pb2Resample is the probability of a new draw where there is no model.
	pb2Resample = 0.25
	// beta is pb2Beta1*log(pb2Beta2*observations), as in the paper's code.
	pb2Beta1, pb2Beta2 = 0.2, 0.4
	// pb2Draws is how many points the search for the best one starts from, of
	// which the best pb2Climbs are improved.
	pb2Draws, pb2Climbs = 96, 3
)

// pb2 is population based bandits (Parker-Holder, Nguyen and Roberts, "Provably
// efficient online hyperparameter optimization with population-based bandits",
// NeurIPS 2020): pbt whose new parameters come from a model of how much the loss
// falls in a generation, given the generation, the loss before and the
// parameters: a Gaussian process that forgets. They maximise its upper
// confidence bound. Trials that are still running count with their expected
// result (GP-BUCB), so that the members of one generation spread.
//
// Unlike the paper the model knows choices, too, so all parameters are chosen
// together.
type pb2 struct {
	*history.Encoding
	choice []bool
}

// PB2 is the registration of the algorithm.
func PB2() propose.Registration {
	return propose.Registration{
		Name: "pb2",
		Summary: "Population-based training whose new parameters come from a model instead of chance. " +
			"Comes to better schedules than pbt with the same number of trials; the training must write and read checkpoints.",
		New:            suggest.Reading(newPB2),
		Settings:       populationSettingsDoc(),
		Adaptive:       true,
		FirstObjective: true,
		Repeats:        true,
	}
}

func newPB2(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	a := &pbt{space: space, reader: history.NewReader(space), name: "pb2", seeding: propose.ReadSeeding(r), populationSettings: readPopulation(r)}
	b := &pb2{Encoding: history.NewEncoding(space)}
	for _, d := range b.Dims {
		b.choice = append(b.choice, d.Kind == box.Choice)
	}
	a.explore = b.explore
	return a
}

// progress is what the model learns from: a trial, and how far its loss fell.
type progress struct {
	of    *interval
	input tvgp.Input
	fall  float64
}

// explore is the point with the highest upper confidence bound for a member that
// goes on from the donor.
func (b *pb2) explore(x exploration) (suggest.Point, string, error) {
	stream := rng.New(x.seed, "pb2", x.number, "explore")
	known, running := b.read(x.population)
	fallback := ""
	if len(known) >= pb2Least {
		m, kappa, err := b.model(x.ctx, known, running)
		if err == nil {
			goal := objective{b: b, model: m, kappa: kappa, input: tvgp.Input{
				Time: float64(x.donor.generation + 1), State: []float64{place(losses(known), x.donor.loss)},
			}}
			if p := goal.best(x, stream); p != nil {
				return p, deadlineWord(x.ctx), nil
			}
		}
		fallback = "no-model"
	}
	if err := x.ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, "", err
	}
	return exploreAllowed(b.Space, x.donor.point, pb2Resample, stream), fallback, nil
}

func deadlineWord(ctx context.Context) string {
	if ctx.Err() != nil {
		return "deadline"
	}
	return ""
}

// read gives the newest results, and the trials that run, each with its input.
// Trials that start training tell nothing: there is no loss before.
func (b *pb2) read(p *population) (known, running []progress) {
	for _, intervals := range p.members {
		for _, v := range intervals {
			parent := p.byNumber[v.parent]
			if parent == nil || parent.outcome != scored {
				continue
			}
			switch v.outcome {
			case scored:
				known = append(known, progress{of: v, fall: parent.loss/2 - v.loss/2}) // halves, as the difference may overflow
			case training:
				running = append(running, progress{of: v})
			}
		}
	}
	newest := func(a, b progress) int {
		return cmp.Or(cmp.Compare(b.of.generation, a.of.generation), cmp.Compare(b.of.number, a.of.number))
	}
	slices.SortFunc(known, newest)
	slices.SortFunc(running, newest)
	known, running = known[:min(len(known), pb2Memory)], running[:min(len(running), pb2Memory)]
	before := losses(known)
	for _, list := range [][]progress{known, running} {
		for i := range list {
			v := list[i].of
			list[i].input = tvgp.Input{
				Time: float64(v.generation), State: []float64{place(before, p.byNumber[v.parent].loss)}, X: b.Row(v.point),
			}
		}
	}
	return known, running
}

// losses of the results, ascending.
func losses(known []progress) []float64 {
	out := make([]float64, len(known))
	for i, k := range known {
		out[i] = k.of.loss
	}
	slices.Sort(out)
	return out
}

// place is which part of the sorted values lies below x: a scale for the state
// of training that does not depend on the metric's.
func place(sorted []float64, x float64) float64 {
	low, _ := slices.BinarySearch(sorted, x)
	high := low
	for high < len(sorted) && sorted[high] == x {
		high++
	}
	return float64(low+high) / 2 / float64(len(sorted))
}

// model learns from the results, and then from the running trials as if they
// had the expected result, which leaves the mean and shrinks the deviation.
func (b *pb2) model(ctx context.Context, known, running []progress) (m *tvgp.Model, kappa float64, err error) {
	inputs, falls := make([]tvgp.Input, len(known)), make([]float64, len(known))
	for i, k := range known {
		inputs[i], falls[i] = k.input, k.fall
	}
	y := standardise(falls)
	hyper := tvgp.Fit(ctx, b.choice, inputs, y)
	if m, err = tvgp.Condition(hyper, b.choice, inputs, y); err != nil {
		return nil, 0, err
	}
	kappa = math.Sqrt(pb2Beta1 * math.Log(math.Max(pb2Beta2*float64(len(known)), math.E)))
	if len(running) == 0 {
		return m, kappa, nil
	}
	for _, r := range running {
		mean, _ := m.Predict(r.input)
		inputs, y = append(inputs, r.input), append(y, mean)
	}
	m, err = tvgp.Condition(hyper, b.choice, inputs, y)
	return m, kappa, err
}

// standardise brings values to about mean 0 and deviation 1. Values far out,
// such as those of training that blew up, are moved in to three deviations.
func standardise(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	median := sorted[n/2]
	scale := (sorted[n-1-n/4] - sorted[n/4]) / 1.349
	if !(scale > 0) || math.IsInf(scale, 0) {
		scale = math.Max(sorted[n-1]/2-median/2, median/2-sorted[0]/2)
	}
	out := make([]float64, n)
	if !(scale > 0) {
		return out
	}
	sum := 0.0
	for i, v := range values {
		out[i] = math.Min(math.Max((v/2-median/2)/scale*2, -3), 3)
		sum += out[i]
	}
	for i := range out {
		out[i] -= sum / float64(n)
	}
	return out
}

// objective is the upper confidence bound of the fall, to maximise.
type objective struct {
	b     *pb2
	model *tvgp.Model
	kappa float64
	input tvgp.Input
}

func (o *objective) value(row []float64) float64 {
	at := o.input
	at.X = row
	mean, deviation := o.model.Predict(at)
	return mean + o.kappa*deviation
}

// best searches from random points, the donor's and its neighbours, and improves
// the best of them. It is nil when the constraints allow none.
func (o *objective) best(x exploration, stream *rng.Stream) suggest.Point {
	type candidate struct {
		row   []float64
		value float64
	}
	var all []candidate
	u := make([]float64, o.b.Space.Len())
	for i := range pb2Draws {
		p := x.donor.point
		if i%3 > 0 {
			stream.Fill(u)
			p = o.b.Space.Decode(u)
		} else if i > 0 {
			p = perturbSome(o.b.Space, p, pb2Resample, stream)
		}
		if o.b.Space.Contains(p) {
			row := o.b.Row(p)
			all = append(all, candidate{row, o.value(row)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.value, a.value) })
	var best suggest.Point
	highest := math.Inf(-1)
	for _, c := range all[:min(len(all), pb2Climbs)] {
		row := c.row
		if x.ctx.Err() == nil {
			row = o.climb(c.row, c.value)
		}
		for _, r := range [][]float64{row, c.row} {
			p := o.b.Point(r)
			if value := o.value(o.b.Row(p)); value > highest && o.b.Space.Contains(p) {
				best, highest = p, value
			}
		}
	}
	return best
}

// climb goes up along the gradient within the unit box.
func (o *objective) climb(row []float64, value float64) []float64 {
	step := 0.1
	next := make([]float64, len(row))
	for range 20 {
		at := o.input
		at.X = row
		_, _, dMean, dDeviation := o.model.PredictGradient(at)
		size := 0.0
		for i := range dMean {
			dMean[i] += o.kappa * dDeviation[i]
			size = math.Max(size, math.Abs(dMean[i]))
		}
		if size < 1e-6 || step < 1e-3 {
			return row
		}
		for i, v := range row {
			next[i] = v
			if !o.b.choice[i] && !math.IsNaN(v) {
				next[i] = math.Min(math.Max(v+step*dMean[i]/size, 0), 1)
			}
		}
		if v := o.value(next); v > value {
			row, value, step = slices.Clone(next), v, step*1.5
		} else {
			step /= 2
		}
	}
	return row
}
