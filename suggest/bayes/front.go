package bayes

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// exactObjectives is up to how many objectives, and exactResults up to how many
// results, the expected hypervolume improvement is computed; above, the
// objectives are scalarised.
const (
	exactObjectives = 3
	exactResults    = 400
)

// front models each objective by itself and looks for the largest expected
// hypervolume improvement.
func (g *surrogates) front(ctx context.Context, number int) (t target, problem string) {
	way := arm{transform: transforms[number%2], function: "EHVI"}
	var rows, values [][]float64 // the values of one objective in each row
	for k := range g.study.Objectives {
		s := newSample(string(way.transform)+" objective"+strconv.Itoa(k), rowsOf(g.measured), g.objective(k))
		s.results, s.prior, s.Outcomes = len(g.measured), gp.Smooth, way.transform.Apply(s.Outcomes)
		m, ok := g.models.fit(ctx, s, number)
		if !ok {
			return t, "singular"
		}
		t.acquisition.Models = append(t.acquisition.Models, m)
		rows, values = s.Rows, append(values, incumbents(m, s))
		t.theta = shorter(t.theta, m.Theta())
	}
	g.improveFront(&t, rows, values)
	g.bound(ctx, &t, number, rangeOf(len(g.measured)))
	t.why = way.why(false)
	return t, ""
}

// improveFront sets the anchors, which are the front, and the utility.
func (g *surrogates) improveFront(t *target, rows, values [][]float64) {
	violated := g.violated()
	var points, candidates [][]float64
	for i, row := range rows {
		if len(violated) > 0 && violated[history.RowKey(row)] {
			continue
		}
		point := make([]float64, len(values))
		for k := range values {
			point[k] = values[k][i]
		}
		points, candidates = append(points, point), append(candidates, row)
	}
	if len(points) == 0 {
		t.anchors = rows[:min(10, len(rows))]
		return
	}
	at := pareto.Front(points)
	front := selected(points, at)
	t.anchors = selected(candidates, at)
	t.acquisition.Utility = frontUtility{improvement: pareto.NewImprovement(front, beyond(front, values))}
}

// beyond is a reference point: the worst of the front in each objective, and a
// tenth of the range of all values further, which makes the ends of the front
// worth something. The front's own extent may be nothing: it may be one point.
// values has one objective in each row.
func beyond(front, values [][]float64) []float64 {
	ref := make([]float64, len(values))
	for k, all := range values {
		ref[k] = math.Inf(-1)
		for _, p := range front {
			ref[k] = math.Max(ref[k], p[k])
		}
		ref[k] += math.Max(0.1*(slices.Max(all)-slices.Min(all)), 1e-3)
	}
	return ref
}

// shorter takes the shorter lengthscales, for the search.
func shorter(a, b gp.Theta) gp.Theta {
	out := slices.Clone(b)
	for i, v := range a {
		out[i] = math.Min(out[i], v)
	}
	return out
}

// frontUtility adapts the expected hypervolume improvement.
type frontUtility struct{ improvement *pareto.Improvement }

// Value implements gp.Utility.
func (u frontUtility) Value(mean, variance, dMean, dVariance []float64) float64 {
	deviation := make([]float64, len(variance))
	for k, v := range variance {
		deviation[k] = math.Sqrt(v)
	}
	value := u.improvement.Log(mean, deviation, dMean, dVariance)
	for k, s := range deviation {
		dVariance[k] /= 2 * s
	}
	return value
}
