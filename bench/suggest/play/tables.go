package play

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Tables has the losses of grids of trainings.
type Tables map[string]grid

// grid has for each point, the last parameter the fastest, the losses of its
// trainings; NaN where there are fewer than elsewhere.
type grid struct {
	Name    string `json:"name"`
	Counts  []int  `json:"counts"` // values of each parameter
	Repeats int    `json:"repeats"`
	losses  []byte // float32, little endian
}

// ReadTables reads what peers/tables.py wrote: a line of JSON with the grids, and
// their losses. sum is the SHA-256 that the file must have.
func ReadTables(name, sum string) (Tables, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("tables %s: the checksum is %x, want %s; remove the file to have it made again", name, got, sum)
	}
	head, losses, _ := bytes.Cut(data, []byte("\n"))
	var grids []grid
	if err := json.Unmarshal(head, &grids); err != nil {
		return nil, fmt.Errorf("tables %s: %w", name, err)
	}
	out := Tables{}
	for _, g := range grids {
		size := 4 * g.Repeats
		for _, n := range g.Counts {
			size *= n
		}
		if size <= 0 || size > len(losses) {
			return nil, fmt.Errorf("tables %s: %s has %d bytes, and %d are left", name, g.Name, size, len(losses))
		}
		g.losses, losses = losses[:size], losses[size:]
		out[g.Name] = g
	}
	return out, nil
}

// Evaluator of a problem under a seed: a trial draws one of the trainings of its
// point.
func (t Tables) Evaluator(p *problem.Problem, seed uint64) (Evaluate, error) {
	g, ok := t[p.Table.Name]
	if !ok || len(g.Counts) != len(p.Parameters) {
		return nil, fmt.Errorf("there is no table %q for %d parameters", p.Table.Name, len(p.Parameters))
	}
	draws := rng.NewKey(seed, "repeat", p.Name)
	return func(_ context.Context, number int, point suggest.Point) (problem.Outcome, error) {
		losses, err := g.at(point)
		if err != nil {
			return problem.Outcome{}, err
		}
		mean := 0.0
		for _, v := range losses {
			mean += v / float64(len(losses))
		}
		drawn := losses[int(draws.Stream(uint64(number)).Float64()*float64(len(losses)))]
		return problem.Outcome{Values: []float64{drawn}, Mean: &mean}, nil
	}, nil
}

// at gives the losses of a point.
func (g grid) at(point suggest.Point) ([]float64, error) {
	index := 0
	for i, n := range g.Counts {
		k, ok := point[i].Index()
		if !ok || k >= int64(n) {
			return nil, fmt.Errorf("table %s: %s is not on its grid", g.Name, point[i])
		}
		index = index*n + int(k)
	}
	var out []float64
	for r := range g.Repeats {
		bits := binary.LittleEndian.Uint32(g.losses[4*(index*g.Repeats+r):])
		if v := float64(math.Float32frombits(bits)); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("table %s has no training of point %d", g.Name, index)
	}
	return out, nil
}
