package problem

import (
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// RandomMedian is the median loss of single random points, of which there are
// 1001: the zero of the normalised score. Failed ones count as the worst.
func RandomMedian(p *Problem) float64 {
	medians.Lock()
	defer medians.Unlock()
	if m, ok := medians.known[p.Name]; ok {
		return m
	}
	const draws = 1001
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
	m := list[min(draws/2, len(list)-1)]
	medians.known[p.Name] = m
	return m
}

// medians remembers what is the same in each process.
var medians = struct {
	sync.Mutex
	known map[string]float64
}{known: map[string]float64{}}
