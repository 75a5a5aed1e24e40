package problem

import (
	"cmp"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// RandomMedian is the median loss of single random points, of which there are
// 1001: the zero of the normalised score. Failed ones count as the worst. For
// several objectives it is 1, the loss of no front at all.
func RandomMedian(p *Problem) float64 {
	if p.Front != nil {
		return 1
	}
	medians.Lock()
	defer medians.Unlock()
	name := cmp.Or(p.instance, p.Name)
	m, ok := medians.known[name]
	if !ok {
		list := randomLosses(p)
		m = list[min(draws/2, len(list)-1)]
		medians.known[name] = m
	}
	return m
}

const draws = 1001

// randomLosses are those of random points that do not fail, ascending.
func randomLosses(p *Problem) []float64 {
	space, key := p.Space(), rng.NewKey(0, "random median", p.Name)
	list := make([]float64, 0, draws)
	for i := range draws {
		stream := key.Stream(uint64(i))
		u := make([]float64, space.Len())
		for j := range u {
			u[j] = stream.Float64()
		}
		if o := p.Truth(space.Decode(u)); !o.Failed {
			list = append(list, o.Values[0])
		}
	}
	slices.Sort(list)
	return list
}

// medians remembers what is the same in each process.
var medians = struct {
	sync.Mutex
	known map[string]float64
}{known: map[string]float64{}}
