package algorithm

import (
	"context"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// pendingModelled is how many pending trials, the newest, a model sees at most.
const pendingModelled = 400

// cachedModel is a model and what it was made of.
type cachedModel struct {
	model    *gp.Model
	rows     [][]float64
	weights  []float64
	outcomes []float64
	pending  [][]float64
	lengths  []int // of the model after each pending row
}

// model gives the model of a sample with pending rows. What the last one of the
// role has in common with it is used again, which changes no bit.
func (q *question) model(s sample, theta gp.Theta, pending [][]float64) (m *gp.Model, ok bool) {
	c := q.models[s.role]
	if c == nil || !slices.Equal(c.model.Theta(), theta) {
		c = &cachedModel{model: gp.NewModel(q.layoutOf(s), theta)}
		q.models[s.role] = c
	}
	if !c.observe(q.ctx, s) {
		delete(q.models, s.role)
		return nil, false
	}
	c.expect(pending[max(0, len(pending)-pendingModelled):])
	return c.model, true
}

// observe brings the rows with outcomes up to date, unless ctx ends before.
func (c *cachedModel) observe(ctx context.Context, s sample) (ok bool) {
	same := 0
	for same < min(len(c.rows), len(s.rows)) && c.weights[same] == s.weights[same] && sameFloats(c.rows[same], s.rows[same]) {
		same++
	}
	if same == len(c.rows) && same == len(s.rows) && slices.Equal(c.outcomes, s.outcomes) {
		return true
	}
	c.model.Truncate(same)
	c.pending, c.lengths = nil, nil
	c.rows, c.weights = append(c.rows[:same], s.rows[same:]...), append(c.weights[:same], s.weights[same:]...)
	c.outcomes = slices.Clone(s.outcomes)
	if !c.model.AppendUntil(ctx, s.rows[same:], s.weights[same:]) {
		return false
	}
	c.model.SetOutcomes(s.outcomes)
	return true
}

// expect brings the pending rows up to date.
func (c *cachedModel) expect(pending [][]float64) {
	same := 0
	for same < min(len(c.pending), len(pending)) && sameFloats(c.pending[same], pending[same]) {
		same++
	}
	length := len(c.rows)
	if same > 0 {
		length = c.lengths[same-1]
	}
	c.model.Truncate(length)
	c.pending, c.lengths = c.pending[:same:same], c.lengths[:same]
	for _, row := range pending[same:] {
		c.model.AppendPending(row) // a row that the model cannot tell apart adds nothing
		c.pending, c.lengths = append(c.pending, row), append(c.lengths, c.model.Len())
	}
}
