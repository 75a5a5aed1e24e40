package algorithm

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// attempts is how many draws may hit points that were tried before the search
// for an untried one becomes systematic.
const attempts = 64

// enumerable is how many points a space may have for the systematic search to
// weigh each of them.
const enumerable = 4096

// tried knows which points of a finite space were proposed before. In a space
// that is not finite it knows nothing: there, no point comes twice.
type tried struct {
	space  suggest.Space
	finite bool
	size   uint64
	keys   map[string]struct{}
}

// newTried reads the trials of all states: what failed is not tried again.
func newTried(space suggest.Space, trials []suggest.Trial) *tried {
	size, finite := space.Size()
	t := &tried{space: space, finite: finite, size: size}
	if !finite {
		return t
	}
	t.keys = make(map[string]struct{}, len(trials))
	for i := range trials {
		t.add(trials[i].Point)
	}
	return t
}

// add notes a point and says whether it is a new one.
func (t *tried) add(p suggest.Point) bool {
	if !t.finite {
		return true
	}
	key, ok := t.space.Key(p)
	if !ok {
		return false
	}
	if _, known := t.keys[key]; known {
		return false
	}
	t.keys[key] = struct{}{}
	return true
}

func (t *tried) exhausted() bool { return t.finite && uint64(len(t.keys)) >= t.size }

// drawer gives for the trial with the given number a function that draws a
// point, another one at each call. It is called more than once when points were
// tried already.
type drawer func(number int) (draw func() suggest.Point)

// propose fills n proposals with points that were not tried, as
// suggest.Algorithm wants it. key names the randomness of the systematic search.
func (t *tried) propose(ctx context.Context, s suggest.Study, n int, key rng.Key, points drawer) ([]suggest.Proposal, error) {
	if err := ctx.Err(); err != nil || n <= 0 {
		return nil, err
	}
	if t.exhausted() {
		return nil, suggest.ErrExhausted
	}
	var out []suggest.Proposal
	for number := s.NextNumber(); len(out) < n && !t.exhausted(); number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := t.untried(points(number), key.Stream(uint64(number)))
		out = append(out, suggest.Proposal{Point: p})
	}
	return out, nil
}

// untried draws until a point is new, and notes it. There must be one left.
func (t *tried) untried(draw func() suggest.Point, stream *rng.Stream) suggest.Point {
	var p suggest.Point
	for range attempts {
		if p = draw(); t.add(p) {
			return p
		}
	}
	if t.size <= enumerable {
		p = t.weigh(stream.Float64())
	} else {
		p = t.walk(p)
	}
	t.add(p)
	return p
}

// weigh picks among all untried points, each with its prior probability; u is
// uniform between 0 and 1.
func (t *tried) weigh(u float64) suggest.Point {
	type candidate struct {
		point  suggest.Point
		weight float64
	}
	var left []candidate
	sum := 0.0
	for rank := range t.size {
		p, weight := t.ranked(rank)
		if key, _ := t.space.Key(p); !t.has(key) {
			sum += weight
			left = append(left, candidate{point: p, weight: weight})
		}
	}
	u *= sum
	for _, c := range left {
		if u -= c.weight; u < 0 {
			return c.point
		}
	}
	return left[len(left)-1].point
}

func (t *tried) has(key string) bool {
	_, ok := t.keys[key]
	return ok
}

// ranked is the point with the given mixed-radix number and its prior
// probability.
func (t *tried) ranked(rank uint64) (suggest.Point, float64) {
	p := make(suggest.Point, t.space.Len())
	weight := 1.0
	for i := range p {
		parameter := t.space.At(i)
		count, _ := parameter.Count()
		index := int64(rank % uint64(count))
		rank /= uint64(count)
		p[i] = parameter.At(index)
		low, high := parameter.Cell(index)
		weight *= high - low
	}
	return p, weight
}

// walk counts on from p, as an odometer does, to the first untried point: no
// more steps than there are tried points.
func (t *tried) walk(p suggest.Point) suggest.Point {
	for {
		for i := range p {
			parameter := t.space.At(i)
			count, _ := parameter.Count()
			index, _ := p[i].Index()
			p[i] = parameter.At((index + 1) % count)
			if index+1 < count {
				break
			}
		}
		if key, _ := t.space.Key(p); !t.has(key) {
			return p
		}
	}
}
