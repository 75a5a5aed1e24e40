package algorithm

import (
	"math"
	"slices"
	"strconv"

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

func (q *question) exact() bool {
	m := len(q.study.Objectives)
	return m >= 2 && m <= exactObjectives && len(q.history.measured) <= exactResults
}

// frontTarget models each objective by itself and looks for the largest
// expected hypervolume improvement.
func (q *question) frontTarget(number int) (t target, problem string) {
	way := arm{transform: [2]gp.Transform{gp.HalfRank, gp.Linear}[number%2], function: "EHVI"}
	rows := q.rows(q.history.measured)
	fitted := make([][]float64, 0, len(rows))
	var s sample
	for k := range q.study.Objectives {
		losses := make([]float64, len(rows))
		for i, o := range q.history.measured {
			losses[i] = o.losses[k]
		}
		var raw []float64
		s = sample{role: string(way.transform) + " objective" + strconv.Itoa(k), results: len(rows), trend: true}
		s.rows, raw, s.weights = distinct(rows, losses)
		s.outcomes = way.transform.Apply(raw)
		theta := q.theta(s, number)
		m, ok := q.model(s, theta, q.running)
		if !ok {
			return t, "singular"
		}
		t.acquisition.Models = append(t.acquisition.Models, m)
		values := s.outcomes
		if theta.Noise() > 1e-2*theta.Signal() {
			values = m.Fitted()
		}
		fitted = append(fitted, values)
		t.theta = shorter(t.theta, theta)
	}
	q.improveFront(&t, s.rows, fitted)
	q.bound(&t, number, rangeOf(len(rows)))
	t.why = "the front is expected to advance most here (Gaussian process, losses transformed: " + string(way.transform) + ")"
	return t, ""
}

// improveFront sets the anchors, which are the front, and the utility. fitted
// has the values of one objective in each row.
func (q *question) improveFront(t *target, rows, fitted [][]float64) {
	violated := q.violated()
	var points, candidates [][]float64
	for i, row := range rows {
		if len(violated) > 0 && violated[rowKey(row)] {
			continue
		}
		point := make([]float64, len(fitted))
		for k := range fitted {
			point[k] = fitted[k][i]
		}
		points, candidates = append(points, point), append(candidates, row)
	}
	if len(points) == 0 {
		t.anchors = rows[:min(10, len(rows))]
		return
	}
	var front [][]float64
	for _, i := range pareto.Front(points) {
		front = append(front, points[i])
		t.anchors = append(t.anchors, candidates[i])
	}
	t.acquisition.Utility = frontUtility{improvement: pareto.NewImprovement(front, beyond(front))}
}

// beyond is a reference point: the worst of the front in each objective, and a
// tenth of the front's extent further, which makes its ends worth something.
func beyond(front [][]float64) []float64 {
	ref := make([]float64, len(front[0]))
	for k := range ref {
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range front {
			low, high = math.Min(low, p[k]), math.Max(high, p[k])
		}
		ref[k] = high + math.Max(0.1*(high-low), 1e-3)
	}
	return ref
}

// shorter takes the shorter lengthscales, for the search.
func shorter(a, b gp.Theta) gp.Theta {
	if a == nil {
		return slices.Clone(b)
	}
	for i := range a {
		a[i] = math.Min(a[i], b[i])
	}
	return a
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
