package play

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// Ours opens games of one of our algorithms in this process.
type Ours struct {
	New      suggest.New
	Settings suggest.Settings
	// Stopper ends trials early; nil: none does.
	Stopper suggest.Stopper
	// Alone says that nothing else runs in this process, so that its CPU time
	// is the algorithm's in whatever goroutine. Otherwise only the time of the
	// calling thread is counted.
	Alone bool
	// Prepared says that the algorithm learns from results before the next
	// question, if it can, and that this is not counted: it is done while trials
	// run.
	Prepared bool
}

// NewOurs understands a name, with settings and a stopping rule if you like:
// tpe:n_EI_candidates=48,gamma=0.2+asha.
func NewOurs(method string) (*Ours, error) {
	o := &Ours{}
	if i := strings.LastIndex(method, "+"); i >= 0 {
		if r, ok := stop.Get(method[i+1:]); ok {
			rule, err := r.New(nil)
			if err != nil {
				return nil, fmt.Errorf("stopping rule %s: %w", r.Name, err)
			}
			o.Stopper, method = rule, method[:i]
		}
	}
	name, rest, _ := strings.Cut(method, ":")
	r, ok := algorithm.Get(name)
	if !ok {
		return nil, fmt.Errorf("there is no algorithm %q; there are %s, and the stopping rules %s for behind a plus sign",
			name, strings.Join(algorithm.Names(), ", "), strings.Join(stop.Names(), ", "))
	}
	o.New = r.New
	if rest == "" {
		return o, nil
	}
	for _, pair := range strings.Split(rest, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("setting %q of method %s: write name=value", pair, name)
		}
		o.Settings = append(o.Settings, suggest.Setting{Name: key, Value: value})
	}
	return o, nil
}

// Open implements Opener.
func (o *Ours) Open(_ context.Context, g Game) (Player, error) {
	a, err := o.New(g.Space, o.Settings)
	if err != nil {
		return nil, err
	}
	p := &ourPlayer{
		algorithm: a, stopper: o.Stopper, clock: Clock(o.Alone),
		study: suggest.Study{Space: g.Space, Seed: g.Seed, Budget: g.Budget, Parallel: g.Parallel},
	}
	if o.Prepared {
		p.preparer, _ = a.(suggest.Preparer)
	}
	for i := range g.Objectives {
		p.study.Objectives = append(p.study.Objectives, suggest.Objective{Name: fmt.Sprintf("f%d", i)})
	}
	for i := range g.Constraints {
		p.study.Constraints = append(p.study.Constraints, suggest.Constraint{Name: fmt.Sprintf("g%d", i)})
	}
	return p, nil
}

// Close implements Opener.
func (o *Ours) Close() error { return nil }

type ourPlayer struct {
	Meter
	algorithm suggest.Algorithm
	preparer  suggest.Preparer // nil: none
	stopper   suggest.Stopper
	study     suggest.Study
	clock     func() time.Duration
}

// Ask implements Player.
func (p *ourPlayer) Ask(ctx context.Context, n int) ([]Candidate, error) {
	s := p.study
	number := s.NextNumber()
	stop := p.Start(p.clock)
	proposals, err := p.algorithm.Suggest(ctx, s, n)
	stop()
	if err != nil {
		return nil, err
	}
	out := make([]Candidate, 0, len(proposals))
	for i, q := range proposals {
		p.study.Put(&suggest.Trial{Number: number + i, Point: q.Point, State: suggest.Running, Meta: q.Meta, Resource: q.Resource})
		out = append(out, Candidate{Number: number + i, Point: q.Point, Resource: q.Resource})
	}
	p.Share(len(out))
	return out, nil
}

// Tell implements Player.
func (p *ourPlayer) Tell(ctx context.Context, results []Result) error {
	for _, r := range results {
		known := p.study.Update(r.Number, func(t *suggest.Trial) {
			t.State, t.Values, t.Constraints = r.State, r.Values, r.Constraints
			if r.Curve != nil {
				t.Curve = r.Curve
			}
		})
		if !known {
			return fmt.Errorf("there is no trial %d", r.Number)
		}
	}
	if p.preparer != nil {
		p.preparer.Prepare(ctx, p.study)
	}
	return nil
}

// Load implements Loader.
func (p *ourPlayer) Load(_ context.Context, points []suggest.Point, values []float64) error {
	trials := make([]*suggest.Trial, len(points))
	for i, point := range points {
		trials[i] = &suggest.Trial{Number: i, Point: point, State: suggest.Succeeded, Values: values[i : i+1]}
	}
	p.study.Put(trials...)
	return nil
}

// Report implements Player.
func (p *ourPlayer) Report(_ context.Context, number int, sample suggest.Sample) (bool, error) {
	if !p.study.Update(number, func(t *suggest.Trial) { t.Curve = append(t.Curve, sample) }) {
		return false, fmt.Errorf("there is no trial %d", number)
	}
	if p.stopper == nil {
		return false, nil
	}
	stop, _ := p.stopper.Stop(p.study, p.study.Trial(number))
	return stop, nil
}

// Close implements Player.
func (p *ourPlayer) Close() error { return nil }

// The clocks of Linux's clock_gettime, which package syscall does not name.
const (
	processCPU = 2
	threadCPU  = 3
)

// Clock is the CPU time of this process if the game is alone in it, and otherwise
// of the calling thread.
func Clock(alone bool) func() time.Duration {
	if alone {
		return func() time.Duration { return clock(processCPU) }
	}
	return func() time.Duration { return clock(threadCPU) }
}

// clock reads a CPU clock. getrusage would do, but counts in ticks.
func clock(id uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
