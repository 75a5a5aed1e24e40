package nas

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/lstm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// enasBlock bounds how many trials the network learns from: those of the
	// current block of that many and of the one before. It begins anew with each
	// block, so that rebuilding it takes a bounded time.
	enasBlock = 256
	// enasBatch is how many trials it learns from at once.
	enasBatch = 8
	// enasElite is how many of the best trials it learns from again and again.
	enasElite = 10
	// enasSnapshots is how many states are kept, enasEvery trials apart.
	enasSnapshots, enasEvery = 8, 8
)

// controllers are the states of the network after some of the finished trials.
type controllers struct {
	mu    sync.Mutex
	kept  []*controllerState // by number of trials learned from
	train []learned          // what the newest has learned from
	seed  uint64
}

// learned is a finished trial as the network sees it.
type learned struct {
	number          int
	choices         []int
	class           int     // of observations; a failed trial is behind all
	violation, loss float64 // +Inf for one that failed
}

func (l learned) equal(m learned) bool {
	return l.number == m.number && l.class == m.class && l.violation == m.violation && l.loss == m.loss && slices.Equal(l.choices, m.choices)
}

// controllerState is the network after the first trials of a block.
type controllerState struct {
	trials   int
	net      *lstm.Network
	adam     *lstm.Adam
	baseline float64 // expected reward
}

func (c *controllerState) clone() *controllerState {
	return &controllerState{trials: c.trials, net: c.net.Clone(), adam: c.adam.Clone(), baseline: c.baseline}
}

// learn gives the network after all finished trials. complete is false when ctx
// was done before; what was learned is kept for the next time.
func (a *enas) learn(ctx context.Context, s suggest.Study) (net *lstm.Network, complete bool) {
	seed := a.seeding.Seed(s)
	trials := a.finished(s)
	start := max(0, (len(trials)/enasBlock-1)*enasBlock)
	trials = trials[start:]
	c := &a.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if seed != c.seed { // the weights at the beginning depend on it
		c.kept, c.train = nil, nil
	}
	same := 0
	for same < min(len(trials), len(c.train)) && trials[same].equal(c.train[same]) {
		same++
	}
	c.kept = slices.DeleteFunc(c.kept, func(k *controllerState) bool { return k.trials > same })
	c.train, c.seed = trials, seed
	if len(c.kept) == 0 {
		c.kept = append(c.kept, a.newController(seed))
	}
	state := c.kept[len(c.kept)-1].clone()
	for state.trials < len(trials) {
		if ctx.Err() != nil {
			break
		}
		a.update(state, trials[:state.trials+1], seed)
		if state.trials%enasEvery == 0 || state.trials == len(trials) {
			c.keep(state.clone())
		}
	}
	return state.net, state.trials == len(trials)
}

// keep adds a state, and forgets the oldest but the first.
func (c *controllers) keep(state *controllerState) {
	if last := len(c.kept) - 1; last > 0 && c.kept[last].trials%enasEvery != 0 {
		c.kept = c.kept[:last]
	}
	if c.kept = append(c.kept, state); len(c.kept) > enasSnapshots {
		c.kept = slices.Delete(c.kept, 1, 2)
	}
}

// finished are the trials to learn from, by number.
func (a *enas) finished(s suggest.Study) []learned {
	h := a.Read(s)
	var out []learned
	for _, o := range h.Measured {
		l := learned{number: o.Number, choices: a.choices(o.Point), class: int(o.Class), violation: o.Violation, loss: o.Losses[0]}
		out = append(out, l)
	}
	for _, o := range h.Failed {
		out = append(out, learned{number: o.Number, choices: a.choices(o.Point), class: math.MaxInt, violation: math.Inf(1), loss: math.Inf(1)})
	}
	slices.SortFunc(out, func(a, b learned) int { return cmp.Compare(a.number, b.number) })
	return out
}

func (a *enas) newController(seed uint64) *controllerState {
	stream := rng.New(seed, "enas", 0, "weights")
	return &controllerState{
		net: lstm.New(lstm.Config{
			Counts: a.counts, Hidden: a.hidden, Temperature: a.temperature, TanhConst: a.tanhConst,
		}, stream.Float64),
		adam: &lstm.Adam{Rate: a.learningRate, Clip: 5},
	}
}

// update learns from the last of the trials, and again from some of those
// before: every other one is among the best, as in the priority queue training
// of Abolafia et al. ("Neural program synthesis with priority queue training",
// 2018), without which the network forgets what it found.
func (a *enas) update(c *controllerState, trials []learned, seed uint64) {
	rewards := rewardsOf(trials)
	last := len(trials) - 1
	c.baseline += (1 - a.baselineDecay) * (rewards[last] - c.baseline)
	stream := rng.New(seed, "enas", last, "replay")
	loss := lstm.Loss{Entropy: a.entropyWeight, Skip: a.skipWeight, Target: a.skipTargets()}
	gradient := make([]float64, len(c.net.Weights))
	best := bestOfRewards(rewards)
	for range a.trainSteps {
		batch := make([]lstm.Sample, 0, enasBatch)
		for k := range min(enasBatch, len(trials)) {
			i := last
			if k > 0 && k%2 == 0 {
				i = int(stream.Uint64N(uint64(len(trials))))
			} else if k > 0 {
				i = best[stream.Uint64N(uint64(len(best)))]
			}
			batch = append(batch, lstm.Sample{Choices: trials[i].choices, Advantage: rewards[i] - c.baseline})
		}
		clear(gradient)
		c.net.Gradient(loss, batch, gradient)
		for i := range gradient {
			gradient[i] /= float64(len(batch))
		}
		c.adam.Step(c.net.Weights, gradient)
	}
	c.trials++
}

// rewardsOf are the ranks of the trials, those that were stopped early behind
// those that came to their end, as their values are of less training: from -1 for the worst to 1 for the
// best; equal trials have equal rewards, and a single one has 0.
func rewardsOf(trials []learned) []float64 {
	order := make([]int, len(trials))
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int {
		a, b := &trials[i], &trials[j]
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.violation, b.violation), cmp.Compare(a.loss, b.loss))
	}
	slices.SortStableFunc(order, compare)
	rewards := make([]float64, len(trials))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && compare(order[from], order[to]) == 0 {
			to++
		}
		for _, i := range order[from:to] {
			rewards[i] = 1 - float64(from+to)/float64(len(order))
		}
		from = to
	}
	return rewards
}

// bestOfRewards are the trials with the highest rewards: a tenth, and at least
// enasElite if there are as many; among equals the newest.
func bestOfRewards(rewards []float64) []int {
	order := make([]int, len(rewards))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(rewards[j], rewards[i]), cmp.Compare(j, i)) })
	return order[:min(len(order), max(enasElite, len(order)/10))]
}
