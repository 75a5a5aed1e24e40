package bayes

import (
	"context"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/forest"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// forestTrees is how many trees a forest has.
	forestTrees = 32
	// forestStep is the unit of distance of searches under a forest.
	forestStep = 0.3
	// forestVariance is the least variance of a forest's prediction: all trees agree where
	// a trial was.
	forestVariance = 1e-6
)

// Forestable says whether a forest can model a study. It learns from whole trials of the
// study itself, of one loss: not from curves, nor from other studies.
func Forestable(s suggest.Study) bool {
	return len(s.Objectives) == 1 && len(s.Warm) == 0 && !levelsOf(s).joint()
}

// grove is a forest in the place of a Gaussian process.
type grove struct{ *forest.Forest }

// Predict implements gp.Predictor; there is no slope.
func (g grove) Predict(rows [][]float64, gradient bool) (p gp.Prediction) {
	for _, row := range rows {
		mean, variance := g.Forest.Predict(row)
		p.Mean, p.Variance = append(p.Mean, mean), append(p.Variance, variance+forestVariance)
	}
	if gradient && len(rows) > 0 {
		n := len(rows) * len(rows[0])
		p.MeanGradient, p.VarianceGradient = make([]float64, n), make([]float64, n)
	}
	return p
}

// forest makes the target of a forest that learns from a sample. Trials that failed or
// still run count as the worst one, so that parallel trials spread.
func (g *surrogates) forest(ctx context.Context, t *target, s sample, way arm, number int) {
	best := g.anchor(t, s.Rows, s.Outcomes)
	data := forest.Data{X: slices.Clip(s.Rows), Y: slices.Clip(s.Outcomes), Trees: forestTrees, Thresholds: 1}
	for _, dim := range g.layout.Dims() {
		data.Dims = append(data.Dims, forest.Dim{Dim: dim, Active: 1})
	}
	worst := slices.Max(s.Outcomes)
	failed, running := g.failed[max(0, len(g.failed)-modelled/2):], g.running[max(0, len(g.running)-pendingModelled):]
	for _, row := range slices.Concat(rowsOf(failed), running) {
		data.X, data.Y = append(data.X, row), append(data.Y, worst)
	}
	t.acquisition.Models, t.acquisition.Utility = []gp.Predictor{grove{g.models.grow(ctx, data, number)}}, way.utility(best)
}

// cachedForest is a forest and what it was grown from.
type cachedForest struct {
	data   forest.Data
	seed   streams
	number int
	forest *forest.Forest
}

// grow gives the forest for a trial, unless it is the last one that was grown.
func (m *models) grow(ctx context.Context, data forest.Data, number int) *forest.Forest {
	c := &m.cache.forest
	if c.forest == nil || c.seed != m.seed || c.number != number || !slices.Equal(c.data.Y, data.Y) || !slices.EqualFunc(c.data.X, data.X, history.SameRow) {
		f := forest.Fit(ctx, data, rng.NewKey(uint64(m.seed), Name, "forest").At(uint64(number)))
		if ctx.Err() != nil {
			return f // it may have fewer trees
		}
		*c = cachedForest{data: data, seed: m.seed, number: number, forest: f}
	}
	return c.forest
}
