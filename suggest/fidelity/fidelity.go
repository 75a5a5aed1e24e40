// Package fidelity has the algorithms that give most trials a part of the resource
// only: successive halving, Hyperband, ASHA, PASHA, BOHB, DEHB and MOBSTER.
package fidelity

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/tpe"
)

// fidelity is what the multi-fidelity algorithms have in common: the resources
// of the rungs, the parameter that receives them, and who draws new points.
type fidelity struct {
	space  suggest.Space
	reader *history.Reader
	// min and max resource of a trial, whole numbers; eta is the factor between
	// rungs; depth the number of the highest rung, floor(log_eta(max/min)).
	min, max, eta int64
	depth         int
	// parameter receives the resource; -1: none.
	parameter int

	seeding propose.Seeding
	sampler suggest.Algorithm
	learns  bool // the sampler learns from results
	joint   bool // and from those of all resources at once; see curves
	whole   bool // the sampler knows points with all of the resource only
}

// defaultMax is the largest resource when no setting says what it is: with eta = 3,
// it gives rungs of whole numbers.
const defaultMax = 81

// maxResource bounds resources, so that they are exact.
const maxResource = 1 << 53

// samplers are who may draw new points.
func samplers() []propose.Registration {
	return []propose.Registration{design.Random(), design.Sobol(), tpe.Registration(), tpe.Multivariate(), bayes.Registration()}
}

// registration of an algorithm with settings of its own beside the common ones.
// read gets what is common, and says who draws; instead is the algorithm to use for
// another sampler, where the algorithm draws points itself.
func registration(name, summary, instead string, own []propose.Setting, read func(*fidelity, *suggest.SettingsReader) suggest.Algorithm) propose.Registration {
	samplerNames := suggest.Names(samplers())
	last := len(samplerNames) - 1
	all := append([]propose.Setting{
		{Name: "eta", Default: "3", Help: "One in eta points goes on to the next rung, which has eta times the resource: a whole number of at least 2."},
		{Name: "r_l", Default: "r_max", Help: "Katib's name of r_max; what is behind the point is cut off."},
		{Name: "r_max", Default: "the largest value of the parameter resource_name, or 81", Help: "The resource of a whole trial (epochs, steps, ...), a whole number of at least 1."},
		{Name: "r_min", Default: "the smallest value of the parameter resource_name, or 1", Help: "The smallest resource that a trial gets, a whole number of at least 1."},
		propose.RandomStateSetting(),
		{Name: "resource_name", Default: "none", Help: "The parameter, a number, that is set to the resource that a trial gets. An experiment needs it. Without it the programs of vernier optimize read the resource from the field of that name in each answer."},
	}, own...)
	if instead == "" {
		names := strings.Join(samplerNames[:last], ", ") + " or " + samplerNames[last]
		all = append(all, propose.Setting{Name: "sampler", Default: "random", Help: "What draws new points: " + names + "."})
	}
	slices.SortFunc(all, func(a, b propose.Setting) int { return strings.Compare(a.Name, b.Name) })
	return propose.Registration{
		Name: name, Summary: summary, Settings: all,
		New: suggest.Reading(func(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
			if instead != "" && r.Has("sampler") {
				r.Fail("sampler", "is not for %s, which draws points itself; remove it or use %s", name, instead)
			}
			f := readFidelity(space, r, instead == "")
			a := read(f, r)
			f.sampler = propose.PriorFirst(f.sampler, space, f.seeding, f.learns)
			return a
		}),
		Adaptive: true, Exhaustive: true, MultiFidelity: true, FirstObjective: true,
	}
}

func readFidelity(space suggest.Space, r *suggest.SettingsReader, sampled bool) *fidelity {
	whole := suggest.Range{Min: 1, Max: maxResource}
	f := &fidelity{
		space: space, reader: history.NewReader(space), parameter: -1, seeding: propose.ReadSeeding(r),
		eta: r.Int("eta", 3, suggest.Range{Min: 2, Max: maxResource}),
	}
	low, high := int64(1), int64(defaultMax)
	if r.Has("resource_name") {
		low, high = f.receive(r, r.Text("resource_name", ""))
	}
	f.max = r.Int("r_max", high, whole)
	if given := r.Float("r_l", 0, whole); given > 0 {
		f.max = int64(given)
	}
	f.min = r.Int("r_min", min(low, f.max), whole)
	if f.min > f.max {
		r.Fail("r_min", "is %d, above r_max, %d; lower it", f.min, f.max)
	}
	if f.parameter >= 0 { // beyond its range, one rung would train as long as the next
		f.max = min(max(f.max, low), high)
		f.min = min(max(f.min, low), f.max)
	}
	for r := f.min; r <= f.max/f.eta; r *= f.eta {
		f.depth++
	}
	if sampled {
		f.readSampler(r)
	}
	return f
}

func (f *fidelity) readSampler(r *suggest.SettingsReader) {
	all := samplers()
	name := r.Choice("sampler", all[0].Name, suggest.Names(all)...)
	var settings suggest.Settings
	if r.Has(propose.RandomState) {
		settings = suggest.Settings{{Name: propose.RandomState, Value: r.Text(propose.RandomState, "")}}
	}
	s, _ := suggest.Find(all, name)
	a, err := s.New(f.space, settings)
	if err != nil {
		r.Reject(fmt.Errorf("sampler %s: %w", name, err))
	}
	if name == bayes.Name && f.parameter >= 0 {
		// A process would go on to propose the point that it likes with each resource in turn.
		a, f.whole = bayes.NewOver(f.space, f.seeding, nil, f.entire), true
	}
	f.sampler, f.learns = a, s.Adaptive
}

// receive finds the parameter that receives the resource, and the whole numbers
// that it may have.
func (f *fidelity) receive(r *suggest.SettingsReader, name string) (low, high int64) {
	i, ok := f.space.Index(name)
	if !ok {
		r.Fail("resource_name", "is %q, which is no parameter; name one of the space", name)
		return 1, defaultMax
	}
	p := f.space.At(i)
	if _, conditional := p.When(); conditional || p.Kind() == suggest.Categorical {
		r.Fail("resource_name", "is %q, which is not a number in each trial; name an int, double or discrete without a condition", name)
	} else if !(p.Max() >= 1) {
		r.Fail("resource_name", "is %q, which is never 1 or more; raise its range", name)
	}
	f.parameter = i
	return int64(math.Ceil(max(p.Min(), 1))), int64(math.Floor(max(1, min(p.Max(), maxResource))))
}

// resource of a rung of a bracket that halves the given number of times: the
// last rung has the largest.
func (f *fidelity) resource(halvings, rung int) float64 {
	r := f.max
	for range halvings - rung {
		r /= f.eta
	}
	return float64(r)
}

// spend gives the point with the resource in the parameter for it.
func (f *fidelity) spend(p suggest.Point, resource float64) suggest.Point {
	if f.parameter < 0 {
		return p
	}
	out := append(suggest.Point(nil), p...)
	out[f.parameter] = nearestValue(f.space.At(f.parameter), resource)
	return out
}

// entire is the point with all of the resource.
func (f *fidelity) entire(p suggest.Point) suggest.Point { return f.spend(p, float64(f.max)) }

// spent is the resource of a trial: of one that was given none, such as a queued point, that in
// the parameter for it. 0: it is not known, and the trial counts as a whole one.
func (f *fidelity) spent(t *suggest.Trial) float64 {
	if t.Resource > 0 || f.parameter < 0 || f.parameter >= len(t.Point) {
		return t.Resource
	}
	return t.Point[f.parameter].Float()
}

// counts says whether the result of a trial that no rung gave its resource is one of a level, or
// of whole trials where there is no level yet.
func (f *fidelity) counts(t *suggest.Trial, level float64) bool {
	spent := f.spent(t)
	if spent > 0 && level > 0 && t.Resource == 0 { // the parameter may not have the level itself
		level = nearestValue(f.space.At(f.parameter), level).Float()
	}
	return spent == 0 || spent == level || level < 0 && spent >= float64(f.max)
}

// nearestValue is the value of a number's parameter that is nearest to x.
func nearestValue(p suggest.Parameter, x float64) suggest.Value {
	x = math.Min(math.Max(x, p.Min()), p.Max())
	if v, ok := p.Parse(strconv.FormatFloat(x, 'g', -1, 64)); ok {
		return v
	}
	count, finite := p.Count()
	if !finite {
		return p.Decode(0)
	}
	low, high := int64(0), count-1
	for low < high {
		middle := low + (high-low)/2
		if x-p.At(middle).Float() > p.At(middle+1).Float()-x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return p.At(low)
}

// collisions is how many points the sampler may draw that differ from known ones
// in nothing but the resource.
const collisions = 256

// collisionsOfLearners is the same for samplers that take their time. They may
// also draw known points, when all are known.
const collisionsOfLearners = 16

// draw gives a proposal of a new point for a trial with the resource. The error is
// suggest.ErrExhausted when there is none left.
func (f *fidelity) draw(ctx context.Context, s suggest.Study, b *rungBook, resource float64) (suggest.Proposal, error) {
	if f.parameter < 0 && !f.learns {
		return f.drawPlain(ctx, s, b)
	}
	view := f.viewed(s, b)
	known := map[string]bool{}
	for _, t := range view.Trials {
		if f.space.Contains(t.Point) {
			known[f.plainKey(t.Point)] = true
		}
	}
	most := collisions
	if f.learns {
		most = collisionsOfLearners
	}
	for range most {
		got, err := f.sampler.Suggest(ctx, view, 1)
		if err != nil {
			return suggest.Proposal{}, err
		}
		if len(got) == 0 {
			return suggest.Proposal{}, suggest.ErrExhausted
		}
		p := f.spend(got[0].Point, resource)
		if f.allowed(p) && !known[f.plainKey(p)] {
			got[0].Point = p
			return got[0], nil
		}
		view.Trials = append(view.Trials, &suggest.Trial{Number: view.NextNumber(), Point: got[0].Point, State: suggest.Killed})
	}
	return f.drawFromPrior(s, b, known, resource)
}

// prepare lets a sampler that takes its time learn what draw will ask of it
// first.
func (f *fidelity) prepare(ctx context.Context, s suggest.Study, b *rungBook) {
	if p, ok := f.sampler.(suggest.Preparer); ok {
		p.Prepare(ctx, f.viewed(s, b))
	}
}

// drawPlain is draw for a sampler that only wants to know which points there
// are.
func (f *fidelity) drawPlain(ctx context.Context, s suggest.Study, b *rungBook) (suggest.Proposal, error) {
	s.Initial, s.Budget = nil, 0
	s.Trials = b.points()
	got, err := f.sampler.Suggest(ctx, s, 1)
	if err != nil {
		return suggest.Proposal{}, err
	}
	if len(got) == 0 {
		return suggest.Proposal{}, suggest.ErrExhausted
	}
	return got[0], nil
}

// plainKey is equal for points that differ in nothing but the resource.
func (f *fidelity) plainKey(p suggest.Point) string {
	out := ""
	for i, v := range p {
		if i != f.parameter {
			out += strconv.Quote(v.String())
		}
	}
	return out
}

// viewed is the study as the sampler sees it.
func (f *fidelity) viewed(s suggest.Study, b *rungBook) suggest.Study {
	if f.joint {
		return f.curves(s, b)
	}
	return f.view(s, b)
}

// view is the study as a sampler of one resource sees it: the trials that brought new points,
// numbered without gaps. One that learns sees the results of the highest
// resource that has enough of them, and no others, which are not comparable.
func (f *fidelity) view(s suggest.Study, b *rungBook) suggest.Study {
	level := -1.0
	if f.learns {
		level = f.informative(b)
	}
	view := s
	view.Initial, view.Budget = nil, 0
	view.Trials = make([]*suggest.Trial, len(b.base))
	for i, base := range b.base {
		t := &suggest.Trial{Number: i, Point: base.trial.Point, State: suggest.Killed, Values: base.trial.Values, Constraints: base.trial.Constraints}
		if f.whole && len(t.Point) == f.space.Len() {
			t.Point = f.entire(t.Point)
		}
		if base.last == nil && (!f.learns || f.counts(base.trial, level)) {
			t.State = base.trial.State
		}
		for e := base.last; e != nil; e = e.sibling {
			switch {
			case !e.finished():
				t.State, t.Values, t.Constraints = suggest.Running, nil, nil
			case !e.usable() && t.State == suggest.Killed:
				t.State = suggest.Failed
			}
		}
		for e := base.last; e != nil; e = e.sibling {
			if e.usable() && e.trial.Resource == level {
				t.State, t.Values, t.Constraints = suggest.Succeeded, e.trial.Values, e.trial.Constraints
			}
		}
		view.Trials[i] = t
	}
	return view
}

// informative is the highest resource with enough results; the lowest one
// otherwise. Enough is twice what BOHB takes (Falkner, Klein and Hutter, ICML
// 2018), two more than there are parameters: with that, models learn from too
// few, and forget what smaller resources told.
func (f *fidelity) informative(b *rungBook) float64 {
	usable := map[float64]int{} // by resource
	for _, e := range b.entries {
		n := usable[e.trial.Resource]
		if e.usable() {
			n++
		}
		usable[e.trial.Resource] = n
	}
	for i, resource := range slices.Backward(slices.Sorted(maps.Keys(usable))) {
		if i == 0 || usable[resource] >= 2*(f.space.Len()+2) {
			return resource
		}
	}
	return -1
}

// leftover is what to promote when no new point is left: the best one of the
// highest rung below the top. halvings says how many rungs a bracket has above
// its first.
func (b *rungBook) leftover(halvings func(bracket int) int) *rungEntry {
	var best *rungEntry
	for _, bracket := range b.brackets {
		for k, r := range bracket.rungs[:min(len(bracket.rungs), halvings(bracket.number))] {
			for _, e := range r.entries {
				if !e.usable() || e.promoted {
					continue
				}
				if best == nil || k > best.rung || k == best.rung && e.compare(best) < 0 {
					best = e
				}
			}
		}
	}
	return best
}
