package propose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// Attempts is how many draws may hit points that were tried before the
	// search for an untried one becomes systematic.
	Attempts = 64
	// attemptsConstrained is the same where draws may also hit points that
	// constraints forbid.
	attemptsConstrained = 256
	// attemptsBlind is how many draws are made when there is no allowed point
	// to begin from.
	attemptsBlind = 1 << 17
	// ways is how many ways from an allowed point, or from a corner of the space, to a
	// random point are looked for one that is new and allowed.
	ways = 128
	// sweeps is how often each coordinate of the first point found on a way is moved.
	sweeps = 4
	// Enumerable is how many points a space may have for the systematic search
	// to weigh each of them.
	Enumerable = 4096
	// stepsLate is how many steps a search takes although its time is up, as an
	// answer is worth some milliseconds.
	stepsLate = 1 << 14
	// MaxSteps bounds the systematic search in larger spaces with constraints.
	MaxSteps = 1 << 20
)

// ModelAttempts is how many samples may hit points that were tried, or that
// constraints forbid, before the prior is drawn from.
const ModelAttempts = Attempts / 2

// Tried knows which points of a space were proposed before, and which may not
// be proposed.
type Tried struct {
	space  suggest.Space
	finite bool
	size   uint64
	// keys of the tried points; nil when they are not tracked, as independent
	// draws from a space without end, constraints and conditions do not meet.
	Keys map[string]struct{}
	// rows are where to begin when constraints leave little of the space, and added
	// the points of this question.
	rows  []*history.Row
	added []suggest.Point
}

// NewTried knows the points of trials in all states: what failed is not tried
// again.
func NewTried(space suggest.Space, rows []*history.Row) *Tried {
	// Next to allowed points, others may be the same in all digits; and a branch may have few.
	if _, finite := space.Size(); finite || space.Constrained() || space.Conditional() {
		return NewTriedAlways(space, rows)
	}
	return &Tried{space: space, rows: rows}
}

// NewTriedAlways is for algorithms that may propose the same point twice also in
// a space that is not finite.
func NewTriedAlways(space suggest.Space, rows []*history.Row) *Tried {
	t := &Tried{space: space, rows: rows, Keys: make(map[string]struct{}, len(rows))}
	t.size, t.finite = space.Size()
	for _, r := range rows {
		if r.X != nil {
			t.Keys[r.Key] = struct{}{}
		}
	}
	return t
}

// Add notes a point and says whether it is new and allowed.
func (t *Tried) Add(p suggest.Point) bool {
	if t.Keys == nil {
		if !t.space.Contains(p) {
			return false
		}
	} else {
		key, ok := t.space.Key(p)
		if !ok || t.Has(key) {
			return false
		}
		t.Keys[key] = struct{}{}
	}
	if t.space.Constrained() {
		t.added = append(t.added, p)
	}
	return true
}

// Has says whether the point with a key was tried or added.
func (t *Tried) Has(key string) bool {
	_, ok := t.Keys[key]
	return ok
}

// Exhausted says whether no point of a finite space is left.
func (t *Tried) Exhausted() bool { return t.finite && uint64(len(t.Keys)) >= t.size }

// Untried draws until a point is new and allowed, and notes it. The error is
// suggest.ErrExhausted when there is none left, and that of ctx when it ended
// before there was a point; a deadline is a little late then.
func (t *Tried) Untried(ctx context.Context, draw func() suggest.Point, stream *rng.Stream) (suggest.Point, error) {
	if t.Exhausted() {
		return nil, suggest.ErrExhausted
	}
	most := Attempts
	if t.space.Constrained() {
		most = attemptsConstrained
	}
	var p suggest.Point
	for range most {
		if p = draw(); t.Add(p) {
			return p, nil
		}
	}
	if t.finite && t.size <= Enumerable {
		return t.weigh(stream.Float64())
	}
	if t.space.Constrained() || !t.finite {
		if p, err := t.near(ctx, stream); p != nil || err != nil {
			return p, err
		}
	}
	if t.finite {
		return t.walk(ctx, p)
	}
	u := make([]float64, t.space.Len())
	for i := range attemptsBlind {
		if err := t.enough(ctx, i); err != nil {
			return nil, err
		}
		stream.Fill(u)
		if p := t.space.Decode(u); t.Add(p) {
			return p, nil
		}
	}
	if !t.space.Constrained() {
		return nil, suggest.ErrExhausted // its doubles are so narrow that they have hardly any values
	}
	return nil, fmt.Errorf("none of %d points drawn satisfies the constraints on the parameters; loosen them, narrow the ranges to where they hold, or give an initial point that satisfies them", attemptsBlind)
}

// enough is the error of ctx, looked at now and then, when a search that has
// made so many steps is to end: at once when it was cancelled, and when its
// deadline has passed after as many steps as most searches take.
func (t *Tried) enough(ctx context.Context, steps int) error {
	if steps%256 != 0 {
		return nil
	}
	if err := ctx.Err(); err != nil && (steps >= stepsLate || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("no point that is new and allowed was found in %d steps: %w", steps, err)
	}
	return nil
}

// near looks for a new point on the way from an allowed one to a random one: as
// slice sampling does, it shrinks the way until it comes to an allowed point
// (Neal, "Slice sampling", Annals of Statistics 31, 2003). Where that finds none, it
// begins from corners of the space, at which most constraints hold.
func (t *Tried) near(ctx context.Context, stream *rng.Stream) (suggest.Point, error) {
	var begin []suggest.Point
	for _, r := range t.rows {
		if r.X != nil {
			begin = append(begin, r.Point)
		}
	}
	begin = append(begin, t.added...)
	u, corner := make([]float64, t.space.Len()), make([]float64, t.space.Len())
	for i := range ways {
		if err := t.enough(ctx, i*256); err != nil { // a way takes hundreds of steps
			return nil, err
		}
		from := corner
		if len(begin) > 0 && i < ways/2 {
			from, _ = t.space.Encode(begin[stream.Uint64N(uint64(len(begin)))])
		} else {
			setCorner(corner, i, stream)
		}
		stream.Fill(u)
		for spread := false; apart(u, from); {
			p := t.space.Decode(u)
			if !spread && t.space.Contains(p) {
				spread = true
				if moved := t.spread(u, stream); t.Add(moved) {
					return moved, nil
				}
			}
			if t.Add(p) {
				return p, nil
			}
			part := stream.Float64()
			for i := range u {
				u[i] = from[i] + part*(u[i]-from[i])
			}
		}
	}
	return nil, nil
}

// spread moves an allowed point along each of its coordinates, as slice sampling does, so
// that what is found does not crowd around where the search began.
func (t *Tried) spread(from []float64, stream *rng.Stream) suggest.Point {
	u := slices.Clone(from)
	for n := range sweeps * len(u) {
		i := n % len(u)
		at := u[i]
		for low, high := 0.0, 1.0; ; {
			if u[i] = low + stream.Float64()*(high-low); t.space.Contains(t.space.Decode(u)) {
				break
			}
			if u[i] < at {
				low = u[i]
			} else {
				high = u[i]
			}
			if high-low <= 1e-6 {
				u[i] = at
				break
			}
		}
	}
	return t.space.Decode(u)
}

// setCorner takes the corner where all is least, that where all is most, or a random one.
func setCorner(u []float64, number int, stream *rng.Stream) {
	for i := range u {
		switch number % 4 {
		case 0:
			u[i] = 0
		case 1:
			u[i] = 1
		default:
			u[i] = float64(stream.Uint64N(2))
		}
	}
}

// apart says whether there is a difference that is worth a trial.
func apart(u, v []float64) bool {
	for i := range u {
		if math.Abs(u[i]-v[i]) > 1e-6 {
			return true
		}
	}
	return false
}

// weigh picks among all points that are left, each with its prior probability;
// u is uniform between 0 and 1.
func (t *Tried) weigh(u float64) (suggest.Point, error) {
	type candidate struct {
		point  suggest.Point
		weight float64
	}
	var left []candidate
	sum := 0.0
	p := t.space.First()
	for range t.size {
		if key, ok := t.space.Key(p); ok && !t.Has(key) {
			weight := t.probability(p)
			sum += weight
			left = append(left, candidate{point: p, weight: weight})
		}
		p = t.space.Successor(p)
	}
	if len(left) == 0 {
		return nil, suggest.ErrExhausted
	}
	chosen := left[len(left)-1].point
	u *= sum
	for _, c := range left {
		if u -= c.weight; u < 0 {
			chosen = c.point
			break
		}
	}
	t.Add(chosen)
	return chosen, nil
}

// probability of a point under the prior.
func (t *Tried) probability(p suggest.Point) float64 {
	weight := 1.0
	for i, v := range p {
		if index, ok := v.Index(); ok {
			low, high := t.space.At(i).Cell(index)
			weight *= high - low
		}
	}
	return weight
}

// walk goes on from p to the first point that is left. Without constraints that
// takes no more steps than there are tried points.
func (t *Tried) walk(ctx context.Context, p suggest.Point) (suggest.Point, error) {
	for i := range min(t.size, uint64(len(t.Keys)+MaxSteps)) {
		if err := t.enough(ctx, int(i)); err != nil {
			return nil, err
		}
		p = t.space.Successor(p)
		if t.Add(p) {
			return p, nil
		}
	}
	if t.size <= uint64(len(t.Keys)+MaxSteps) {
		return nil, suggest.ErrExhausted
	}
	return nil, fmt.Errorf("no new point among %d satisfies the constraints on the parameters; loosen them, or narrow the ranges to where they hold", MaxSteps)
}

// Unknown says whether a point of the space was not proposed yet.
func (t *Tried) Unknown(p suggest.Point) bool {
	key, ok := t.space.Key(p)
	return ok && !t.Has(key)
}
