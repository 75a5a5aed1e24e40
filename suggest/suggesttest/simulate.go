package suggesttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// CurveProblem is a function to minimise of which each evaluation is a training
// with a learning curve.
type CurveProblem struct {
	// Name of the problem.
	Name string
	// Parameters of its space.
	Parameters []suggest.ParameterSpec
	// Steps of a whole training.
	Steps int64
	// Value at a point after so many steps, from 1, without noise. NaN where
	// the training has diverged.
	Value func(p suggest.Point, step int64) float64
	// Noise is the standard deviation of what is added to each measurement.
	Noise float64
	// Minimum of the limit of the values, for an endless training.
	Minimum float64
}

// CurveProblems are those of the suite. The curves are y(x, t) = f(x) +
// (y0-f(x)) (t0/(t+t0))^alpha(x); f is a problem of Problems, brought to a range
// from 0 to about 1.
func CurveProblems() []CurveProblem {
	byName := map[string]Problem{}
	for _, p := range Problems() {
		byName[p.Name] = p
	}
	branin, hartmann, mixed := byName["branin"], byName["hartmann6"], byName["mixed"]
	return []CurveProblem{
		// All curves fall equally fast, so that their order is seen early.
		curveProblem("parallel", branin, 60, func(float64) float64 { return 0.8 }),
		// Good points are slow: their curves cross those of bad ones.
		curveProblem("crossing", hartmann, 2.5, func(f float64) float64 { return 0.5 + f }),
		// A part of the space diverges after a while.
		diverging(curveProblem("diverging", mixed, 3, func(f float64) float64 { return 0.8 + f/2 })),
	}
}

// curveProblem makes curves of a problem whose loss is divided by the scale, with
// a rate that depends on what remains of it.
func curveProblem(name string, p Problem, scale float64, rate func(f float64) float64) CurveProblem {
	const start, t0 = 1.5, 2
	return CurveProblem{
		Name: name, Parameters: p.Parameters, Steps: 81, Noise: 0.005,
		Value: func(x suggest.Point, step int64) float64 {
			f := 1 - math.Exp(-(p.Loss(x)-p.Minimum)/scale) // 0 is the best, 1 the worst
			return f + (start-f)*math.Pow(t0/(float64(step)+t0), rate(f))
		},
	}
}

// diverging lets a part of the space diverge: where the first parameter is in its
// upper fifth, sooner the higher it is. Just below, there are good points.
func diverging(p CurveProblem) CurveProblem {
	value := p.Value
	space, err := suggest.NewSpace(p.Parameters)
	if err != nil {
		panic(err)
	}
	p.Value = func(x suggest.Point, step int64) float64 {
		over := space.At(0).Encode(x[0]) - 0.8
		if over > 0 && float64(step) > float64(p.Steps)*(0.2-over)/0.4 {
			return math.NaN()
		}
		return value(x, step)
	}
	return p
}

// Simulation plays an algorithm, and a stopping rule, with several workers that
// train as CurveProblem says, on a simulated clock. A step costs 1. The same
// simulation gives the same outcome, bit by bit.
type Simulation struct {
	// Problem that is trained.
	Problem CurveProblem
	// Algorithm that is asked whenever a worker is free.
	Algorithm suggest.Algorithm
	// Stopper that is asked at each report. Nil: none.
	Stopper suggest.Stopper
	// Workers is how many trials run at once; 0 means 1. Each has a speed of
	// its own.
	Workers int
	// Seed of the study, of the noise and of the speeds.
	Seed uint64
	// Cost is how many steps may be spent; what runs then is killed. 0 means no
	// bound.
	Cost int64
	// Trials is how many there are at most; 0 means no bound.
	Trials int
	// Resume lets a trial that continues another (its metadata name a parent)
	// begin where that one ended, as with a checkpoint. Otherwise it begins with
	// the first step.
	Resume bool
	// Direction of the study; for maximize, all values are
	// negated.
	Direction suggest.Direction
}

// Incumbent is the best training so far.
type Incumbent struct {
	// Cost is how many steps were spent in all, and Time what the clock says.
	Cost int64
	Time float64
	// Trial is its number, and Step how far it was.
	Trial int
	Step  int64
	// Value of the training, without noise.
	Value float64
}

// Outcome of a simulation.
type Outcome struct {
	// Study at the end.
	Study suggest.Study
	// Path has each training that was measured to be better than those before.
	Path []Incumbent
	// Cost is how many steps were spent, and Time what the clock says.
	Cost int64
	Time float64
}

// At is the value, without noise, of the incumbent after so many steps; +Inf
// before the first one.
func (o Outcome) At(cost int64) float64 {
	value := math.Inf(1)
	for _, i := range o.Path {
		if i.Cost <= cost {
			value = i.Value
		}
	}
	return value
}

// simulator is a simulation while it runs.
type simulator struct {
	Simulation
	out     Outcome
	running []job
	best    float64 // as measured
	noise   rng.Key
	idle    []int // workers
}

// job is a trial on a worker.
type job struct {
	trial, worker int // numbers
	step, end     int64
	at            float64 // when it reports the next step
	speed         float64 // time of a step
}

// Run plays the simulation.
func (s Simulation) Run(ctx context.Context) (Outcome, error) {
	space, err := suggest.NewSpace(s.Problem.Parameters)
	if err != nil {
		return Outcome{}, err
	}
	r := &simulator{Simulation: s, best: math.Inf(1), noise: rng.NewKey(s.Seed, "simulation", "noise")}
	r.out.Study = NewStudy(space, s.Seed)
	r.out.Study.Objectives[0].Direction = s.Direction
	r.out.Study.Parallel, r.out.Study.Budget = max(1, s.Workers), s.Trials
	for worker := range max(1, s.Workers) {
		r.idle = append(r.idle, worker)
	}
	for s.Cost == 0 || r.out.Cost < s.Cost {
		if err := r.start(ctx); err != nil {
			return r.out, err
		}
		if len(r.running) == 0 {
			break // the space is exhausted, or all trials have ended
		}
		r.report()
	}
	for _, j := range r.running {
		r.out.Study.Update(j.trial, func(t *suggest.Trial) { t.State = suggest.Killed })
	}
	return r.out, nil
}

// start gives the idle workers something to do.
func (r *simulator) start(ctx context.Context) error {
	want := len(r.idle)
	if r.Trials > 0 {
		want = min(want, r.Trials-len(r.out.Study.Trials))
	}
	if want <= 0 {
		return nil
	}
	got, err := r.Algorithm.Suggest(ctx, r.out.Study, want)
	if err != nil && !errors.Is(err, suggest.ErrExhausted) {
		return err
	}
	if len(got) > want {
		return fmt.Errorf("%d proposals when %d were asked for", len(got), want)
	}
	if len(got) == 0 && err == nil && len(r.running) == 0 {
		return errors.New("no proposal while nothing is running")
	}
	for _, t := range suggest.PendingTrials(r.out.Study.NextNumber(), got) {
		t.State = suggest.Running
		speeds := rng.NewKey(r.Seed, "simulation", "speed")
		j := job{trial: len(r.out.Study.Trials), worker: r.idle[0], end: r.Problem.Steps}
		j.speed = 0.8 + 0.4*speeds.Stream(uint64(t.Number)).Float64()
		if t.Resource > 0 {
			j.end = min(j.end, int64(math.Ceil(t.Resource)))
		}
		if r.Resume {
			j.step = r.parentSteps(t)
		}
		j.at = r.out.Time + j.speed
		r.idle = r.idle[1:]
		r.running = append(r.running, j)
		r.out.Study.Put(t)
	}
	return nil
}

// parentSteps is where the trial goes on: the last step of its parent.
func (r *simulator) parentSteps(t *suggest.Trial) int64 {
	number, err := strconv.Atoi(t.Meta[suggest.MetaParent])
	parent := r.out.Study.Trial(number)
	if err != nil || parent == nil || len(parent.Curve) == 0 {
		return 0
	}
	return parent.Curve[len(parent.Curve)-1].Step
}

// report lets the next report happen, and what follows from it.
func (r *simulator) report() {
	i := 0
	for k := range r.running {
		if c := cmp.Or(cmp.Compare(r.running[k].at, r.running[i].at), cmp.Compare(r.running[k].trial, r.running[i].trial)); c < 0 {
			i = k
		}
	}
	j := &r.running[i]
	t := *r.out.Study.Trials[j.trial]
	r.out.Time, r.out.Cost = j.at, r.out.Cost+1
	j.step++
	j.at += j.speed
	value := r.measure(&t, j.step)
	t.Curve = append(t.Curve, suggest.Sample{Step: j.step, Value: value})
	if j.step == j.end {
		t.State, t.Values = suggest.Succeeded, []float64{value}
	}
	r.out.Study.Put(&t)
	if j.step < j.end {
		if r.Stopper == nil {
			return
		}
		if stop, _ := r.Stopper.Stop(r.out.Study, &t); !stop {
			return
		}
		r.out.Study.Update(t.Number, func(t *suggest.Trial) { t.State, t.Values = suggest.Pruned, []float64{value} })
	}
	r.idle = append(r.idle, j.worker)
	slices.Sort(r.idle)
	r.running = slices.Delete(r.running, i, i+1)
}

// measure gives the noisy value of a trial, and keeps the incumbent.
func (r *simulator) measure(t *suggest.Trial, step int64) float64 {
	exact := r.Problem.Value(t.Point, step)
	noise := r.noise.At(uint64(t.Number)).Stream(uint64(step)).NormFloat64()
	measured := exact + r.Problem.Noise*noise
	if measured < r.best {
		r.best = measured
		r.out.Path = append(r.out.Path, Incumbent{Cost: r.out.Cost, Time: r.out.Time, Trial: t.Number, Step: step, Value: exact})
	}
	if r.Direction == suggest.Maximize {
		return -measured
	}
	return measured
}
