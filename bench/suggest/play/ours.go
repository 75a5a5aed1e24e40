package play

import (
	"context"
	"fmt"
	"slices"
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
		algorithm: a, stopper: o.Stopper, clock: threadTime, byNumber: map[int]int{},
		study: suggest.Study{Space: g.Space, Seed: g.Seed, Budget: g.Budget, Parallel: g.Parallel},
	}
	if o.Alone {
		p.clock = processTime
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
	algorithm suggest.Algorithm
	preparer  suggest.Preparer // nil: none
	stopper   suggest.Stopper
	study     suggest.Study
	shown     [2][]suggest.Trial // copies of the trials, in turns
	byNumber  map[int]int
	clock     func() time.Duration
	spent     []Cost
}

// Ask implements Player.
func (p *ourPlayer) Ask(ctx context.Context, n int) ([]Candidate, error) {
	s := p.elsewhere()
	number := s.NextNumber()
	cpu, wall := p.clock(), time.Now()
	proposals, err := p.algorithm.Suggest(ctx, s, n)
	cpu, elapsed := p.clock()-cpu, time.Since(wall)
	if err != nil {
		return nil, err
	}
	out := make([]Candidate, 0, len(proposals))
	for i, q := range proposals {
		share := time.Duration(len(proposals))
		p.spent = append(p.spent, Cost{CPU: cpu / share, Wall: elapsed / share})
		p.byNumber[number+i] = len(p.study.Trials)
		p.study.Trials = append(p.study.Trials, suggest.Trial{
			Number: number + i, Point: q.Point, State: suggest.Running, Meta: q.Meta, Resource: q.Resource,
		})
		out = append(out, Candidate{Number: number + i, Point: q.Point, Resource: q.Resource})
	}
	return out, nil
}

// Tell implements Player.
func (p *ourPlayer) Tell(ctx context.Context, results []Result) error {
	for _, r := range results {
		i, ok := p.byNumber[r.Number]
		if !ok {
			return fmt.Errorf("there is no trial %d", r.Number)
		}
		t := p.change(i)
		t.State, t.Values, t.Constraints = r.State, r.Values, r.Constraints
		if r.Curve != nil {
			t.Curve = r.Curve
		}
	}
	p.study.Settle()
	if p.preparer != nil {
		p.preparer.Prepare(ctx, p.elsewhere())
	}
	return nil
}

// elsewhere is the study with its trials in other memory than the last time: an
// algorithm may not rely on where they lie. They are copied into memory that is
// there already, as its collection would be charged to the algorithm.
func (p *ourPlayer) elsewhere() suggest.Study {
	s := p.study
	p.shown[0], p.shown[1] = p.shown[1], append(p.shown[0][:0], s.Trials...)
	s.Trials = slices.Clip(p.shown[1])
	return s
}

// Load implements Loader.
func (p *ourPlayer) Load(_ context.Context, points []suggest.Point, values []float64) error {
	for i, point := range points {
		p.byNumber[i] = len(p.study.Trials)
		p.study.Trials = append(p.study.Trials, suggest.Trial{Number: i, Point: point, State: suggest.Succeeded, Values: values[i : i+1]})
	}
	p.study.Settle()
	return nil
}

// change gives a trial to change. One that is settled should not, and is so no
// longer.
func (p *ourPlayer) change(i int) *suggest.Trial {
	if i < p.study.Settled {
		p.study.Record = nil
	}
	return &p.study.Trials[i]
}

// Report implements Player.
func (p *ourPlayer) Report(_ context.Context, number int, sample suggest.Sample) (bool, error) {
	i, ok := p.byNumber[number]
	if !ok {
		return false, fmt.Errorf("there is no trial %d", number)
	}
	t := p.change(i)
	t.Curve = append(t.Curve, sample)
	if p.stopper == nil {
		return false, nil
	}
	stop, _ := p.stopper.Stop(p.study, *t)
	return stop, nil
}

// Spent implements Player.
func (p *ourPlayer) Spent() []Cost { return p.spent }

// Close implements Player.
func (p *ourPlayer) Close() error { return nil }

// The clocks of Linux's clock_gettime, which package syscall does not name.
const (
	processCPU = 2
	threadCPU  = 3
)

func threadTime() time.Duration { return clock(threadCPU) }

func processTime() time.Duration { return clock(processCPU) }

// clock reads a CPU clock. getrusage would do, but counts in ticks.
func clock(id uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
