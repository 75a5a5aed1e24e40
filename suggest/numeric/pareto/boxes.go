package pareto

import (
	"cmp"
	"math"
	"slices"
)

// Box is the set of the vectors between two corners.
type Box struct {
	// Low and High corner; Low may have -Inf.
	Low, High []float64
}

// Boxes cuts the vectors that no point dominates and that are better than ref
// into disjoint boxes: n+1 for two objectives, at most 2n+1 for three, for n
// points that are on the front and better than ref (Yang, Emmerich, Deutz and
// Bäck, "Efficient computation of expected hypervolume improvement using box
// decomposition algorithms", 2019, section 4). ref must be finite and of one,
// two or three objectives.
func Boxes(points [][]float64, ref []float64) []Box {
	if len(ref) < 1 || len(ref) > 3 {
		panic("pareto: Boxes is for one, two or three objectives")
	}
	points = within(points, ref)
	if len(ref) == 1 {
		best := ref[0]
		if len(points) > 0 {
			best = points[0][0]
		}
		return []Box{{Low: []float64{math.Inf(-1)}, High: []float64{best}}}
	}
	from, to := math.Inf(-1), ref[len(ref)-1]
	if len(ref) == 2 {
		from, to = 0, 1 // a third objective that is the same everywhere
	}
	s := &strips{open: []strip{{left: math.Inf(-1), right: ref[0], height: ref[1], from: from}}}
	for _, p := range points {
		s.add(p)
	}
	for _, t := range s.open {
		s.close(t, to)
	}
	for i := range s.out {
		s.out[i].Low, s.out[i].High = s.out[i].Low[:len(ref)], s.out[i].High[:len(ref)]
	}
	return s.out
}

// within is the different points on the front that are better than ref, each
// with three objectives, ascending in the last one, and 0 for those that are
// not there.
func within(points [][]float64, ref []float64) [][]float64 {
	var inside [][]float64
	for _, p := range points {
		better := true
		for j := range ref {
			better = better && p[j] < ref[j]
		}
		if better {
			inside = append(inside, p)
		}
	}
	var out [][]float64
	for _, i := range Front(inside) {
		p := make([]float64, 3)
		for j := range ref {
			p[j] = math.Max(inside[i][j], -math.MaxFloat64)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b []float64) int {
		return cmp.Or(cmp.Compare(a[2], b[2]), slices.Compare(a, b))
	})
	return slices.CompactFunc(out, slices.Equal)
}

// strip is a part of the plane of the first two objectives that no point so far
// dominates: from left to right, and from height down.
type strip struct {
	left, right, height float64
	from                float64 // of the third objective
}

// strips sweeps up the third objective. A strip is closed when a point cuts it.
type strips struct {
	open []strip // from left to right, each lower than the one before
	out  []Box
}

func (s *strips) close(t strip, to float64) {
	if t.from < to {
		s.out = append(s.out, Box{
			Low:  []float64{t.left, math.Inf(-1), t.from},
			High: []float64{t.right, t.height, to},
		})
	}
}

func (s *strips) add(p []float64) {
	begin := 0
	for s.open[begin].right <= p[0] {
		begin++
	}
	end := begin
	for end < len(s.open) && s.open[end].height > p[1] {
		end++
	}
	if begin == end {
		return // another point with the same third objective dominates it
	}
	var now []strip
	right := s.open[end-1].right
	if t := &s.open[begin]; t.left < p[0] {
		now = append(now, strip{left: t.left, right: p[0], height: t.height, from: t.from})
		t.left = p[0]
	}
	for _, t := range s.open[begin:end] {
		s.close(t, p[2])
	}
	now = append(now, strip{left: p[0], right: right, height: p[1], from: p[2]})
	s.open = slices.Replace(s.open, begin, end, now...)
}
