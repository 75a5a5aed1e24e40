package fidelity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// dehb is differential evolution on the schedule of Hyperband (Awad, Mallik and
// Hutter, "DEHB: evolutionary hyperband for scalable, robust and efficient
// hyperparameter optimization", IJCAI 2021). Each resource has a population of
// its own, as large as the largest rung with that resource. The first round of
// brackets is Hyperband's and fills the populations. From then on, the trials of
// a rung are mutants (rand/1/bin) of the population of its resource, with
// parents among the best of the next smaller resource.
//
// The state is in the trials: each notes which place of the population it
// competes for, and who has the best value of a place is its member.
type dehb struct {
	hyperband
	*history.Encoding
	factor, crossover float64
	sizes             map[float64]int // of the populations by resource
}

// metaSlot is the place in the population that a trial competes for.
const metaSlot = "slot"

// evolutions is how often a mutant that was tried before is drawn anew.
const evolutions = 32

// DEHB is the registration of the algorithm.
func DEHB() propose.Registration {
	summary := "Hyperband whose later points come from differential evolution, with good points of small resources as parents of those with larger ones. For many parameters and many short trials."
	return registration("dehb", summary, "", []propose.Setting{
		{Name: "crossover", Default: "0.5", Help: "The probability of each parameter to come from the mutant, from 0 to 1."},
		{Name: "mutation_factor", Default: "0.5", Help: "How far differences between parents carry, above 0 and at most 2."},
	}, newDEHB)
}

func newDEHB(f *fidelity, r *suggest.SettingsReader) suggest.Algorithm {
	d := &dehb{
		factor:    r.Float("mutation_factor", 0.5, suggest.Range{Min: 0, OpenMin: true, Max: 2}),
		crossover: r.Float("crossover", 0.5, suggest.Range{Min: 0, Max: 1}),
		Encoding:  f.reader.Encoding, sizes: map[float64]int{}, hyperband: *f.hyperband(),
	}
	for _, kind := range d.kinds {
		points := kind.points
		for rung := range kind.halvings + 1 {
			resource := f.resource(kind.halvings, rung)
			d.sizes[resource] = max(d.sizes[resource], int(min(points, math.MaxInt32)))
			points /= f.eta
		}
	}
	return d
}

// Suggest implements suggest.Algorithm.
func (d *dehb) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	b := readRungs(d.reader.Read(s))
	known := propose.NewTriedAlways(d.fidelity.space, nil)
	for _, t := range s.Trials {
		if d.fidelity.space.Contains(t.Point) {
			known.Add(d.spend(t.Point, float64(d.min)))
		}
	}
	return b.fill(ctx, n, func() (suggest.Proposal, error) {
		number, rung, e, ok := d.place(b, s.Budget)
		if !ok {
			return suggest.Proposal{}, suggest.ErrExhausted
		}
		resource := d.resource(d.halvings(number), rung)
		population := d.population(b, resource)
		slot := population.entries % d.sizes[resource]
		p, err := d.next(ctx, s, b, known, vacancy{number, rung, slot, resource, e, population})
		if errors.Is(err, suggest.ErrExhausted) {
			return d.promoteLeftover(b, d.halvings)
		}
		if err != nil {
			return suggest.Proposal{}, err
		}
		p.Meta[metaSlot] = strconv.Itoa(slot)
		known.Add(d.spend(p.Point, float64(d.min)))
		return p, nil
	})
}

// vacancy is what a trial is wanted for.
type vacancy struct {
	bracket, rung, slot int
	resource            float64
	promoted            *rungEntry // nil: none
	population          subpopulation
}

// next gives the proposal for a vacancy.
func (d *dehb) next(ctx context.Context, s suggest.Study, b *rungBook, known *propose.Tried, t vacancy) (suggest.Proposal, error) {
	if t.promoted != nil {
		p := b.promote(t.promoted, d.spend(t.promoted.trial.Point, t.resource), t.resource)
		p.Why = fmt.Sprintf("point of trial %d, one of the best of bracket %d with resource %g, goes on with %g", t.promoted.trial.Number, t.bracket, t.promoted.trial.Resource, t.resource)
		return p, nil
	}
	if member := t.population.members[t.slot]; member != nil {
		stream := rng.NewKey(d.seeding.Seed(s), "dehb", "evolve").Stream(uint64(b.next))
		parents := d.parents(b, t)
		for range evolutions {
			if len(parents) < 3 {
				break
			}
			point := d.spend(d.evolve(member, parents, stream), t.resource)
			if !d.fidelity.allowed(point) || !known.Unknown(d.spend(point, float64(d.min))) {
				continue
			}
			p := b.start(t.bracket, t.rung, point, t.resource)
			p.Why = fmt.Sprintf("a mutant with resource %g that competes with trial %d", t.resource, member.trial.Number)
			return p, nil
		}
	}
	drawn, err := d.draw(ctx, s, b, t.resource)
	if err != nil {
		return suggest.Proposal{}, err
	}
	p := b.start(t.bracket, t.rung, drawn.Point, t.resource)
	p.Why = fmt.Sprintf("a new point for bracket %d, with resource %g", t.bracket, t.resource)
	return p, nil
}

// place is the first bracket and rung with room. In the first round e is the
// point to promote there; later ones evolve a rung once the one below has ended.
// It is not ok when a result that is still to come must be waited for.
func (d *dehb) place(b *rungBook, budget int) (number, rung int, e *rungEntry, ok bool) {
	left := b.left(budget)
	for _, bracket := range b.brackets {
		kind, promotes := d.kind(bracket.number), bracket.number < len(d.kinds)
		if promotes {
			if e := bracket.promotable(kind, d.eta); e != nil {
				return bracket.number, e.rung + 1, e, true
			}
			ok = int64(len(bracket.rung(0).entries)) < kind.points
		} else {
			rung, ok = bracket.open(kind, d.eta)
		}
		if ok && b.mayBegin(left) {
			return bracket.number, rung, nil, true
		}
		left -= bracket.left(kind, d.eta, promotes)
	}
	return d.following(b, left), 0, nil, b.mayBegin(left)
}

// open is the lowest rung with room, if the rung below has ended.
func (r *bracketBook) open(kind bracketKind, eta int64) (rung int, ok bool) {
	points := kind.points
	for rung := range kind.halvings + 1 {
		level := r.rung(rung)
		if int64(len(level.entries)) < points {
			return rung, true
		}
		if int64(level.finished()) < points {
			return 0, false
		}
		points /= eta
	}
	return 0, false
}

// subpopulation is the state of the evolution at one resource.
type subpopulation struct {
	members []*rungEntry // by slot; nil: none yet
	entries int          // trials that competed so far
}

// population reads who won each place.
func (d *dehb) population(b *rungBook, resource float64) subpopulation {
	p := subpopulation{members: make([]*rungEntry, min(d.sizes[resource], len(b.entries)+1))}
	for _, e := range b.entries {
		if e.trial.Resource != resource {
			continue
		}
		p.entries++
		slot, ok := metaNumber(e.trial.Meta, metaSlot)
		if !ok || slot >= len(p.members) || !e.usable() {
			continue
		}
		if p.members[slot] == nil || e.compare(p.members[slot]) < 0 {
			p.members[slot] = e
		}
	}
	return p
}

// parents of a mutant: the best members at the next smaller resource, as many as
// the rung has room for; where these are fewer than three, the members at all
// resources.
func (d *dehb) parents(b *rungBook, t vacancy) []*rungEntry {
	below := d.population(b, math.Floor(t.resource/float64(d.eta)))
	if t.resource == d.resource(d.depth, 0) {
		below = t.population
	}
	room := d.kind(t.bracket).points
	for range t.rung {
		room /= d.eta
	}
	out := below.best(int(min(max(3, room), math.MaxInt32)))
	if len(out) >= 3 {
		return out
	}
	out = nil
	for rung := range d.depth + 1 {
		p := d.population(b, d.resource(d.depth, rung))
		out = append(out, p.best(len(p.members))...)
	}
	return out
}

// best are up to n members, the best first.
func (p subpopulation) best(n int) []*rungEntry {
	level := rungLevel{}
	for _, m := range p.members {
		if m != nil {
			level.entries = append(level.entries, m)
		}
	}
	ranked := level.ranked()
	return ranked[:min(n, len(ranked))]
}

// evolve crosses the member with the mutant x1 + F (x2 - x3) of three parents.
// What leaves the unit box is drawn anew. All four take the same place within
// their part of the box, for a choice has as much of it as any other: from the
// middle of its part, half of a difference would reach the choice above and
// never the one below.
func (d *dehb) evolve(member *rungEntry, parents []*rungEntry, stream *rng.Stream) suggest.Point {
	within := make([]float64, len(d.Dims))
	for i := range within {
		within[i] = stream.Float64()
	}
	var x [3][]float64
	var chosen [3]int
	for i := range x {
		for again := true; again; {
			chosen[i] = int(stream.Uint64N(uint64(len(parents))))
			again = i > 0 && chosen[i] == chosen[0] || i > 1 && chosen[i] == chosen[1]
		}
		x[i] = d.unit(parents[chosen[i]].trial.Point, within, stream)
	}
	u := d.unit(member.trial.Point, within, stream)
	if len(u) == 0 {
		return d.fidelity.space.Decode(u)
	}
	always := int(stream.Uint64N(uint64(len(u))))
	for i := range u {
		cross, fresh := stream.Float64() < d.crossover, stream.Float64()
		if !cross && i != always {
			continue
		}
		if u[i] = x[0][i] + d.factor*(x[1][i]-x[2][i]); u[i] < 0 || u[i] > 1 {
			u[i] = fresh
		}
	}
	return d.fidelity.space.Decode(u)
}

// unit is a point in the unit box, where a choice is at the given place within
// its part; what is not active is anywhere.
func (d *dehb) unit(p suggest.Point, within []float64, stream *rng.Stream) []float64 {
	u := d.Row(p)
	for i, v := range u {
		switch {
		case math.IsNaN(v):
			u[i] = stream.Float64()
		case d.Dims[i].Kind == box.Choice:
			u[i] = (v + within[i]) / float64(d.Dims[i].Count)
		}
	}
	return u
}
