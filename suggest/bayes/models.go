package bayes

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

const (
	// fitRows is how many results a fit sees at most: more cost much, and change
	// the hyperparameters little.
	fitRows = 400
	// pendingModelled is how many pending trials, the newest, a model sees at most.
	pendingModelled = 400
)

// modelCache keeps, by role, the fit and the model that were made last, and the last
// forest. What they are made of stands beside them, so that they never change an answer.
type modelCache struct {
	fits   map[string]cachedFit
	models map[string]cachedModel
	forest cachedForest
}

type cachedFit struct {
	sample sample
	last   gp.Theta // where it began
	seed   streams
	number int
	theta  gp.Theta
}

type cachedModel struct {
	sample sample
	model  *gp.Model
}

func newModelCache() *modelCache {
	return &modelCache{fits: map[string]cachedFit{}, models: map[string]cachedModel{}}
}

// models makes the Gaussian processes of one call. Their hyperparameters are
// fitted when there are enough new results since the last fit, which the newest
// trial that carries one in its Meta tells.
type models struct {
	data   *data
	seed   streams
	cache  *modelCache
	thetas map[string]gp.Theta // fitted in this call, by role
	meta   suggest.Meta        // of the next proposal
}

// takeMeta is what the next proposal must carry.
func (m *models) takeMeta() suggest.Meta {
	meta := m.meta
	m.meta = nil
	return meta
}

// fit gives the model of a sample, with hyperparameters of its own.
func (m *models) fit(ctx context.Context, s sample, number int) (*gp.Model, bool) {
	return m.condition(s, m.theta(ctx, s, number), m.data.running)
}

// condition gives the model of a sample with pending rows. It is made anew unless
// the last one of the role is the same.
func (m *models) condition(s sample, theta gp.Theta, pending [][]float64) (*gp.Model, bool) {
	c, ok := m.cache.models[s.role]
	if !ok || !slices.Equal(c.model.Theta(), theta) || !c.sample.equal(s) {
		model, ok := gp.Condition(m.data.layout, theta, s.Data)
		if !ok {
			return nil, false
		}
		c = cachedModel{sample: s, model: model}
		m.cache.models[s.role] = c
	}
	c.model.Expect(pending[max(0, len(pending)-pendingModelled):])
	return c.model, true
}

// theta gives the hyperparameters of a model.
func (m *models) theta(ctx context.Context, s sample, number int) gp.Theta {
	if theta, ok := m.thetas[s.role]; ok {
		return theta
	}
	last, lastResults := m.newest(s.role)
	if last != nil && !m.stale(lastResults, s.results) {
		return last
	}
	theta := m.search(ctx, s, last, number)
	if m.thetas == nil {
		m.thetas = map[string]gp.Theta{}
	}
	if m.meta == nil {
		m.meta = suggest.Meta{}
	}
	m.thetas[s.role] = theta
	m.meta[metaKey(s.role)] = strconv.Itoa(s.results) + " " + theta.Text()
	return theta
}

// stale says whether there were enough results since the last fit. The rows of
// curves come several at a time, and tell less each.
func (m *models) stale(last, now int) bool {
	switch {
	case now < last:
		return true
	case m.data.levels.joint():
		return now-last > now/16
	case now < 100:
		return now != last
	}
	return now-last >= (now+39)/40
}

func metaKey(role string) string { return "gp." + role }

// newest finds the newest hyperparameters of a role, and how many results they
// were fitted to.
func (m *models) newest(role string) (theta gp.Theta, results int) {
	key, best := metaKey(role), -1
	for _, t := range m.data.study.Trials {
		text, ok := t.Meta[key]
		if !ok || t.Number <= best {
			continue
		}
		count, rest, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(count)
		parsed, ok := gp.ParseTheta(rest, len(m.data.layout.Dims()))
		if err == nil && ok {
			theta, results, best = parsed, n, t.Number
		}
	}
	return theta, results
}

// search finds the most probable hyperparameters, beginning at the last ones and
// at others by turns.
func (m *models) search(ctx context.Context, s sample, last gp.Theta, number int) gp.Theta {
	if c, ok := m.cache.fits[s.role]; ok && c.seed == m.seed && c.number == number && slices.Equal(c.last, last) && c.sample.equal(s) {
		return c.theta
	}
	prior := s.prior(m.data.layout.Dims())
	n := len(s.Rows)
	var starts []gp.Theta
	if last != nil {
		starts = append(starts, last)
	}
	if last == nil || n < 40 || n%10 == 0 {
		starts = append(starts, prior.Theta())
	}
	if n < 40 || n%10 == 5 {
		stream := m.seed.stream("fit "+s.role, number)
		start := prior.Theta()
		for i := range start {
			start[i] += stream.NormFloat64()
		}
		starts = append(starts, start)
	}
	half, done := halfOf(ctx)
	defer done()
	f := gp.Fit{Layout: m.data.layout, Prior: prior, Data: s.thinned(fitRows), Starts: starts}
	theta, _ := f.Best(half)
	theta = theta.Rounded()
	if half.Err() == nil {
		m.cache.fits[s.role] = cachedFit{sample: s, last: last, seed: m.seed, number: number, theta: theta}
	}
	return theta
}

// halfOf is a context with half of the time that is left, as the model is made
// and searched after the fit.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}
