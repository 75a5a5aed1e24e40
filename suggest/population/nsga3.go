package population

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// surviveByDirections keeps whole fronts and, of the first one that does not
// fit, those that lie along directions with few survivors (Deb and Jain, "An
// evolutionary many-objective optimization algorithm using reference-point-based
// nondominated sorting approach, part I", 2014, algorithms 1 to 4).
func surviveByDirections(ranked []survivor, population int, key rng.Key) []survivor {
	var out []survivor
	for _, front := range frontsOf(ranked) {
		if len(out)+len(front) <= population {
			out = append(out, front...)
			continue
		}
		room := population - len(out)
		if front[0].Class != history.Measured && front[0].Class != history.Pruned || room == 0 {
			return append(out, front[:room]...)
		}
		return append(out, niche(out, front, room, key.Stream(0))...)
	}
	return out
}

// niche picks as many members of the front as there is room for.
func niche(kept, front []survivor, room int, stream *rng.Stream) []survivor {
	var losses [][]float64
	for _, s := range kept {
		if s.Class == front[0].Class {
			losses = append(losses, s.Losses)
		}
	}
	before := len(losses)
	losses = append(losses, lossesOfMembers(front)...)
	m := len(front[0].Losses)
	directions := [][]float64{{1}}
	if m > 1 {
		directions = pareto.Directions(m, pareto.Divisions(m, len(kept)+room))
	}
	points := normalised(losses)
	counts := make([]int, len(directions))
	candidates := make([][]niched, len(directions))
	for i, p := range points {
		d, far := nearestDirection(p, directions)
		if i < before {
			counts[d]++
		} else {
			candidates[d] = append(candidates[d], niched{at: i - before, far: far})
		}
	}
	out := make([]survivor, 0, room)
	for len(out) < room {
		d := fewest(counts, candidates, stream)
		pick := 0 // the nearest one of an empty niche, any of another
		if counts[d] == 0 {
			for k, c := range candidates[d] {
				if c.far < candidates[d][pick].far {
					pick = k
				}
			}
		} else {
			pick = int(stream.Uint64N(uint64(len(candidates[d]))))
		}
		out = append(out, front[candidates[d][pick].at])
		candidates[d] = slices.Delete(candidates[d], pick, pick+1)
		counts[d]++
	}
	return out
}

// niched is a candidate and its distance from its direction.
type niched struct {
	at  int
	far float64
}

// fewest is a direction, any of those with the fewest survivors, that has
// candidates.
func fewest(counts []int, candidates [][]niched, stream *rng.Stream) int {
	var ties []int
	for d := range counts {
		if len(candidates[d]) == 0 {
			continue
		}
		if len(ties) > 0 && counts[d] < counts[ties[0]] {
			ties = ties[:0]
		}
		if len(ties) == 0 || counts[d] == counts[ties[0]] {
			ties = append(ties, d)
		}
	}
	return ties[stream.Uint64N(uint64(len(ties)))]
}

// nearestDirection of a point, by the perpendicular distance.
func nearestDirection(p []float64, directions [][]float64) (nearest int, far float64) {
	far = math.Inf(1)
	for d, w := range directions {
		along, length := 0.0, 0.0
		for j := range p {
			along += p[j] * w[j]
			length += w[j] * w[j]
		}
		squares := 0.0
		for j := range p {
			off := p[j] - along/length*w[j]
			squares += off * off
		}
		if squares < far {
			nearest, far = d, squares
		}
	}
	return nearest, far
}

// normalised has the ideal point at 0 and the hyperplane through the extreme
// points at a sum of 1; where there is no such plane, the worst value at 1.
func normalised(losses [][]float64) [][]float64 {
	m := len(losses[0])
	low, high := slices.Clone(losses[0]), slices.Clone(losses[0])
	for _, p := range losses {
		for j, v := range p {
			low[j], high[j] = math.Min(low[j], v), math.Max(high[j], v)
		}
	}
	out := make([][]float64, len(losses))
	for i, p := range losses {
		out[i] = make([]float64, m)
		for j, v := range p {
			if extent := high[j]/2 - low[j]/2; extent > 0 { // halves, so that it is finite
				out[i][j] = (v/2 - low[j]/2) / extent
			}
		}
	}
	intercepts := interceptsOf(out)
	for _, p := range out {
		for j := range p {
			p[j] /= intercepts[j]
		}
	}
	return out
}

// interceptsOf is where the plane through the extreme points, those with the
// smallest achievement scalarisation along an axis, meets the axes; all 1 where
// that makes no sense.
func interceptsOf(points [][]float64) []float64 {
	m := len(points[0])
	ones := slices.Repeat([]float64{1}, m)
	plane := mat.NewDense(m, m, nil)
	for axis := range m {
		var extreme []float64
		least := math.Inf(1)
		for _, p := range points {
			most := 0.0
			for j, v := range p {
				if j != axis {
					v *= 1e6
				}
				most = math.Max(most, v)
			}
			if most < least {
				least, extreme = most, p
			}
		}
		plane.SetRow(axis, extreme)
	}
	var inverse mat.VecDense
	if err := inverse.SolveVec(plane, mat.NewVecDense(m, ones)); err != nil {
		return ones
	}
	out := make([]float64, m)
	for j := range out {
		out[j] = 1 / inverse.AtVec(j)
		if !(out[j] > 1e-6 && out[j] <= 1+1e-6) {
			return slices.Repeat([]float64{1}, m)
		}
	}
	return out
}
