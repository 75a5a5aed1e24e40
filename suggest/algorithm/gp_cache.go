package algorithm

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// pendingModelled is how many pending trials, the newest, a model sees at most.
const pendingModelled = 400

// cachedModel is a model and the sample that it was made of.
type cachedModel struct {
	model  *gp.Model
	sample sample
}

// model gives the model of a sample with pending rows. It is made anew when the
// sample or its hyperparameters are not those of the last one of the role.
func (q *question) model(s sample, theta gp.Theta, pending [][]float64) (m *gp.Model, ok bool) {
	c := q.models[s.role]
	if c == nil || !slices.Equal(c.model.Theta(), theta) || !c.sample.equal(s) {
		if m, ok = gp.Condition(q.layoutOf(s), theta, s.data()); !ok {
			return nil, false
		}
		c = &cachedModel{model: m, sample: s}
		q.models[s.role] = c
	}
	c.model.Expect(pending[max(0, len(pending)-pendingModelled):])
	return c.model, true
}
