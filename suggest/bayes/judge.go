package bayes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

const (
	// judgedLeast is how many results there are before a model judges them.
	judgedLeast = 8
	// judgedMost is how many points it sees at most: the best.
	judgedMost = 300
)

// Judge says what the points of a study are worth where measurements are noisy: by a
// Gaussian process over all of them, which knows that a value that is better than its
// neighbours' was good luck in part. It keeps what it fitted last, and may be used by
// several goroutines at once.
type Judge struct {
	reader *history.Reader
	mu     sync.Mutex
	cache  *modelCache
}

// NewJudge makes a judge of studies of the space.
func NewJudge(space suggest.Space) *Judge {
	return &Judge{reader: history.NewReader(space), cache: newModelCache()}
}

// Verdict is what the model makes of all points that were measured.
type Verdict struct {
	// Points, the one with the best mean first.
	Points []Judged
	// Noise is the standard deviation of one measurement around the mean of its point,
	// in units of the objective.
	Noise float64
	// Noisy says whether the noise is large enough to hide which point is best.
	Noisy bool
}

// Judged is one point.
type Judged struct {
	// Trial is the first one that measured it, Results how many did, Count how many have
	// ended, and Running how many run.
	Trial                   *suggest.Trial
	Results, Count, Running int
	// Value is what further measurements of the point would come to on average, as the
	// user measures it, and Deviation the standard deviation of that belief.
	Value, Deviation float64
	// Loss is Value as a loss: smaller is better.
	Loss float64
}

// Judge judges the points that a trial has measured, by the first objective: those that
// hold all constraints, and of whose trials at least half have measured them. Trials
// that run count as results where the model expects them, so that the deviations are
// those that there will be. ok is false when there is too little to tell.
func (j *Judge) Judge(ctx context.Context, s suggest.Study) (v Verdict, ok bool) {
	if len(s.Objectives) == 0 {
		return v, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	objective := s.Objectives[0]
	s.Objectives, s.Warm = s.Objectives[:1], nil
	s, running := j.ended(s)
	d := judgedData(j.reader, s)
	if d.results < judgedLeast {
		return v, false
	}
	for _, t := range running {
		d.running = append(d.running, d.row(t.Point))
	}
	sample, losses := d.judged()
	if len(losses) < judgedLeast || sample.constant() {
		return v, false
	}
	unit := judgedScale(&sample)
	theta := j.fit(ctx, s)
	noise, free := d.within()
	theta = theta.WithNoise((judgedTrust*math.Max(theta.Noise(), judgedNoise) + free*noise/(unit*unit)) / (judgedTrust + free))
	m := &models{data: d, seed: streams(s.Seed), cache: j.cache}
	model, ok := m.condition(sample, theta, d.running)
	if !ok || !(unit > 0) {
		return v, false
	}
	prediction := model.Predict(sample.Rows, false)
	fitted := model.Fitted()
	v.Noise = unit * math.Sqrt(theta.Noise())
	v.Noisy = free < judgedSure || theta.Noise() > noisy*theta.Signal()
	counts := d.counted()
	expected := map[string]int{}
	for _, row := range d.running {
		expected[history.RowKey(row)]++
	}
	for i, row := range sample.Rows {
		of := counts[history.RowKey(row)]
		if of.violated || 2*of.missed > of.count {
			continue
		}
		p := Judged{Trial: of.first, Results: of.count - of.missed, Count: of.count, Running: expected[history.RowKey(row)], Loss: losses[i] + unit*(fitted[i]-sample.Outcomes[i]), Deviation: unit * math.Sqrt(prediction.Variance[i])}
		p.Value = objective.Loss(p.Loss)
		v.Points = append(v.Points, p)
	}
	slices.SortStableFunc(v.Points, func(a, b Judged) int { return cmp.Compare(a.Loss, b.Loss) })
	return v, len(v.Points) > 0
}

// ended leaves the trials of the study that tell of points which have a result, and
// gives those that run.
func (j *Judge) ended(s suggest.Study) (out suggest.Study, running []*suggest.Trial) {
	measures := func(t *suggest.Trial) bool {
		return t.State == suggest.Succeeded && history.LossesOf(s.Objectives, t.Values) != nil
	}
	whole := map[string]bool{}
	for _, t := range s.Trials {
		if key, ok := j.reader.Space.Key(t.Point); ok && measures(t) {
			whole[key] = true
		}
	}
	out = s
	out.Trials = nil
	for _, t := range s.Trials {
		switch key, ok := j.reader.Space.Key(t.Point); {
		case ok && !t.State.Finished():
			running = append(running, t)
		case ok && t.State != suggest.Killed && whole[key]:
			out.Trials = append(out.Trials, t)
		}
	}
	return out, running
}

// judgedData reads a study. A trial that failed, was stopped early, or gave no number is
// a result of its point too, as bad as the worst of all: else only the lucky trials of a
// point count.
func judgedData(reader *history.Reader, s suggest.Study) *data {
	d := newData(reader, s, levels{}, nil)
	worst, whole, results := math.Inf(-1), map[string]bool{}, 0
	for _, o := range d.measured {
		if o.State == suggest.Succeeded {
			worst, whole[o.Key] = math.Max(worst, o.Losses[0]), true
			results++
		}
	}
	d.measured, d.results = nil, results
	for _, o := range d.rows {
		switch {
		case !o.Class.Ended() || !whole[o.Key]:
		case o.Losses != nil && o.State == suggest.Succeeded:
			d.measured = append(d.measured, o)
		default:
			d.measured = append(d.measured, &history.Row{Trial: o.Trial, X: o.X, Key: o.Key, Class: history.Pruned, Losses: []float64{worst}})
		}
	}
	return d
}

// Noise is known from repeats: a model that is fitted to points that differ takes noise
// for signal, or signal for noise, in turns. Before there are any it is taken for
// judgedNoise of the variance of the outcomes at least, which counts as judgedTrust
// repeats. After judgedSure repeats that agree there is none.
const (
	judgedNoise = 0.05
	judgedTrust = 0.3
	judgedSure  = 4
)

// judged is what the model learns from, and the mean losses of the points.
func (d *data) judged() (s sample, losses []float64) {
	s = newSample("judge", rowsOf(d.measured), d.losses([]float64{1})).best(judgedMost, d.violated())
	return s, slices.Clone(s.Outcomes)
}

// within is the variance of the measurements around the mean of their point, and its
// degrees of freedom. What is worse than most counts as the median.
func (d *data) within() (variance, free float64) {
	losses := d.losses([]float64{1})
	sorted := slices.Sorted(slices.Values(losses))
	middle := sorted[len(sorted)/2]
	by := map[string][]float64{}
	for i, o := range d.measured {
		key := history.RowKey(o.X)
		by[key] = append(by[key], math.Min(losses[i], middle))
	}
	for _, o := range d.measured { // in order: maps have none
		key := history.RowKey(o.X)
		if of := by[key]; len(of) > 1 {
			mean := 0.0
			for _, y := range of {
				mean += y / float64(len(of))
			}
			for _, y := range of {
				variance += (y - mean) * (y - mean)
			}
			free += float64(len(of) - 1)
		}
		delete(by, key)
	}
	return variance / math.Max(1, free), free
}

// noisy is from which share of the signal's variance on noise hides which point is best.
const noisy = 1e-2

// judgedScale transforms the outcomes, and gives what a unit of them is in losses
// where they are good.
func judgedScale(s *sample) (unit float64) {
	losses := s.Outcomes
	s.Outcomes = gp.HalfRank.Apply(losses)
	order := ascending(losses)
	low, high := order[0], order[(len(order)-1)/2]
	if losses[high] == losses[low] {
		s.Outcomes, high = gp.Linear.Apply(losses), order[len(order)-1]
	}
	return (losses[high] - losses[low]) / (s.Outcomes[high] - s.Outcomes[low])
}

// fit gives the hyperparameters for a study: those of its beginning, so that not each
// result costs a fit.
func (j *Judge) fit(ctx context.Context, s suggest.Study) gp.Theta {
	n := len(s.Trials)
	s.Trials = s.Trials[:n-n%max(1, n/8)]
	d := judgedData(history.NewReader(s.Space), s)
	begin, _ := d.judged()
	judgedScale(&begin)
	begin.prior = gp.Smooth
	return (&models{data: d, seed: streams(s.Seed), cache: j.cache}).search(ctx, begin, nil, 0)
}

// best keeps the rows with the best outcomes, in their order; those that violate a
// constraint are behind all others.
func (s sample) best(most int, violated map[string]bool) sample {
	if len(s.Rows) <= most {
		return s
	}
	ranks := slices.Clone(s.Outcomes)
	for i, row := range s.Rows {
		if len(violated) > 0 && violated[history.RowKey(row)] {
			ranks[i] = math.MaxFloat64
		}
	}
	at := ascending(ranks)[:most]
	slices.Sort(at)
	s.Rows, s.Outcomes, s.Weights = selected(s.Rows, at), selected(s.Outcomes, at), selected(s.Weights, at)
	return s
}

// measurements of one point.
type measurements struct {
	first    *suggest.Trial
	count    int  // of the trials
	missed   int  // of them gave no result
	violated bool // a constraint, by one of them
}

func (d *data) counted() map[string]measurements {
	out := make(map[string]measurements, len(d.measured))
	for _, o := range d.measured {
		key := history.RowKey(o.X)
		m := out[key]
		m.count++
		switch {
		case o.Class == history.Pruned:
			m.missed++
		case m.first == nil:
			m.first = o.Trial
		}
		m.violated = m.violated || o.Violation > 0
		out[key] = m
	}
	return out
}
