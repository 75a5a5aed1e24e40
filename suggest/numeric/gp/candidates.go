package gp

import (
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// candidates are global and local ones, each best first.
func (s *Search) candidates(ctx context.Context) (global, local []Found) {
	var rows [][]float64
	count := s.Candidates / 2
	if len(s.Anchors) == 0 {
		count = s.Candidates
	}
	buf := make([]float64, s.Candidates*len(s.Dims))
	next := func() []float64 {
		row := buf[:len(s.Dims):len(s.Dims)]
		buf = buf[len(s.Dims):]
		return row
	}
	for i := range count {
		row := next()
		s.Uniform(i, row)
		for d := range row {
			if s.Low != nil && s.Dims[d].Kind != box.Choice {
				row[d] = s.Low[d] + row[d]*(s.High[d]-s.Low[d])
			}
			s.snap(d, row)
		}
		rows = append(rows, row)
	}
	global = s.evaluateMany(ctx, rows)
	rows = rows[:0]
	for range s.Candidates - count {
		row := next()
		s.perturb(row)
		rows = append(rows, row)
	}
	local = s.evaluateMany(ctx, rows)
	sortFound(global)
	sortFound(local)
	return global, local
}

// evaluateMany stops early with ctx, but never before the first few rows.
func (s *Search) evaluateMany(ctx context.Context, rows [][]float64) (found []Found) {
	const together = 64
	for part := range slices.Chunk(rows, together) {
		found = append(found, s.evaluate(part)...)
		if ctx.Err() != nil {
			break
		}
	}
	return found
}

// evaluate drops the rows that are impossible or whose value is NaN.
func (s *Search) evaluate(rows [][]float64) []Found {
	if s.Settle != nil {
		kept := make([][]float64, 0, len(rows))
		for _, row := range rows {
			if s.Settle(row) {
				kept = append(kept, row)
			}
		}
		rows = kept
	}
	if len(rows) == 0 {
		return nil
	}
	values, _ := s.Values(rows, false)
	found := make([]Found, 0, len(rows))
	for i, row := range rows {
		if values[i] == values[i] {
			found = append(found, Found{Row: row, Value: values[i]})
		}
	}
	return found
}

// snap brings a coordinate to a value of its dimension.
func (s *Search) snap(d int, row []float64) {
	dim := &s.Dims[d]
	switch {
	case row[d] != row[d]:
	case dim.Kind == box.Choice:
		row[d] = math.Min(math.Max(math.Floor(row[d]), 0), float64(dim.Count-1))
	case dim.Kind == box.Ordered:
		row[d] = dim.Levels[dim.Nearest(row[d])]
	default:
		low, high := s.bounds(d)
		row[d] = math.Min(math.Max(row[d], low), high)
	}
}

// scales are the sizes of local steps, on the unit scale.
var scales = [...]float64{0.3, 0.1, 0.03, 0.01, 0.003}

// perturb writes a neighbour of one of the best anchors: some of its
// coordinates moved by a random scale.
func (s *Search) perturb(row []float64) {
	anchors := min(5, len(s.Anchors))
	copy(row, s.Anchors[s.Stream.Uint64N(uint64(anchors))])
	scale := scales[s.Stream.Uint64N(uint64(len(scales)))]
	share := math.Max(s.Stream.Float64(), 1/float64(len(row)))
	must := int(s.Stream.Uint64N(uint64(len(row))))
	for d := range row {
		if s.Stream.Float64() > share && d != must || row[d] != row[d] {
			continue
		}
		dim := &s.Dims[d]
		switch dim.Kind {
		case box.Choice:
			row[d] = float64(s.Stream.Uint64N(uint64(dim.Count)))
		case box.Ordered:
			s.step(d, row, scale)
		default:
			row[d] += scale * s.Stream.NormFloat64()
			s.snap(d, row)
		}
	}
}

// step moves an ordered coordinate by one level at least.
func (s *Search) step(d int, row []float64, scale float64) {
	dim := &s.Dims[d]
	from := dim.Nearest(row[d])
	move := scale * s.Stream.NormFloat64()
	to := dim.Nearest(row[d] + move)
	if to == from && move < 0 {
		to--
	} else if to == from {
		to++
	}
	row[d] = dim.Levels[min(max(to, 0), len(dim.Levels)-1)]
}
