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
	// Repeats lets the algorithm try points again, and recommend one.
	Repeats bool
	// Alone says that nothing else runs in this process, so that its CPU time
	// is the algorithm's in whatever goroutine. Otherwise only the time of the
	// calling thread is counted.
	Alone bool
	// Prepared says that the algorithm learns from results before the next
	// question, if it can, and that this is not counted: it is done while trials
	// run.
	Prepared bool
}

// repeats behind a method lets it try points again.
const repeats = "+repeats"

// NewOurs understands a name, with settings, a stopping rule with its own, and "repeats"
// last, if you like: tpe:n_EI_candidates=48,gamma=0.2+asha:r_max=27+repeats.
func NewOurs(method string) (*Ours, error) {
	o := &Ours{}
	method, o.Repeats = strings.CutSuffix(method, repeats)
	if i := strings.LastIndex(method, "+"); i >= 0 {
		name, _, _ := strings.Cut(method[i+1:], ":")
		if r, ok := stop.Get(name); ok {
			_, settings, err := named(method[i+1:])
			if err != nil {
				return nil, err
			}
			if o.Stopper, err = r.New(settings); err != nil {
				return nil, fmt.Errorf("stopping rule %s: %w", r.Name, err)
			}
			method = method[:i]
		}
	}
	name, settings, err := named(method)
	if err != nil {
		return nil, err
	}
	r, ok := algorithm.Get(name)
	if !ok {
		return nil, fmt.Errorf("there is no algorithm %q; there are %s, and the stopping rules %s for behind a plus sign",
			name, strings.Join(algorithm.Names(), ", "), strings.Join(stop.Names(), ", "))
	}
	o.New, o.Settings = r.New, settings
	return o, nil
}

// named reads name:setting=value,setting=value.
func named(text string) (name string, settings suggest.Settings, err error) {
	name, rest, _ := strings.Cut(text, ":")
	if rest == "" {
		return name, nil, nil
	}
	for _, pair := range strings.Split(rest, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return "", nil, fmt.Errorf("setting %q of %s: write name=value", pair, name)
		}
		settings = append(settings, suggest.Setting{Name: key, Value: value})
	}
	return name, settings, nil
}

// Open implements Opener.
func (o *Ours) Open(_ context.Context, g Game) (Player, error) {
	a, err := o.New(g.Space, o.Settings)
	if err != nil {
		return nil, err
	}
	p := &ourPlayer{prepared: o.Prepared, clock: Clock(o.Alone)}
	p.session = suggest.Session{
		Algorithm: a, Stopper: o.Stopper,
		Study: suggest.Study{Space: g.Space, Seed: g.Seed, Budget: g.Budget, Parallel: g.Parallel, Repeats: o.Repeats},
	}
	for i := range g.Objectives {
		p.session.Study.Objectives = append(p.session.Study.Objectives, suggest.Objective{Name: fmt.Sprintf("f%d", i)})
	}
	for i := range g.Constraints {
		p.session.Study.Constraints = append(p.session.Study.Constraints, suggest.Constraint{Name: fmt.Sprintf("g%d", i)})
	}
	return p, nil
}

// Close implements Opener.
func (o *Ours) Close() error { return nil }

type ourPlayer struct {
	Meter
	session  suggest.Session
	prepared bool
	clock    func() time.Duration
}

// Ask implements Player.
func (p *ourPlayer) Ask(ctx context.Context, n int) ([]Candidate, error) {
	stop := p.Start(p.clock)
	asked, err := p.session.Ask(ctx, n)
	stop()
	if err != nil {
		return nil, err
	}
	out := make([]Candidate, len(asked))
	for i, t := range asked {
		out[i] = Candidate{Number: t.Number, Point: t.Point, Resource: t.Resource}
	}
	p.Share(len(out))
	return out, nil
}

// Tell implements Player.
func (p *ourPlayer) Tell(ctx context.Context, results []Result) error {
	if err := p.session.Tell(results...); err != nil {
		return err
	}
	if p.prepared {
		p.session.Prepare(ctx)
	}
	return nil
}

// Recommend implements Recommender.
func (p *ourPlayer) Recommend(ctx context.Context) (number int, ok bool) {
	if !p.session.Study.Repeats {
		return 0, false
	}
	r, ok := p.session.Recommend(ctx)
	if !ok {
		return 0, false
	}
	return r.Trial.Number, true
}

// Load implements Loader.
func (p *ourPlayer) Load(_ context.Context, points []suggest.Point, values []float64) error {
	trials := make([]*suggest.Trial, len(points))
	for i, point := range points {
		trials[i] = &suggest.Trial{Number: i, Point: point, State: suggest.Succeeded, Values: values[i : i+1]}
	}
	p.session.Study.Put(trials...)
	return nil
}

// Report implements Player.
func (p *ourPlayer) Report(_ context.Context, number int, sample suggest.Sample) (bool, error) {
	stop, _, err := p.session.Report(number, sample)
	return stop, err
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
