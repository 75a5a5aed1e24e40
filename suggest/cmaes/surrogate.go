package cmaes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const (
	// surrogateSamples is how many samples of the distribution the most
	// promising one is picked from. A replay finds a sample again among the first
	// modelAttempts.
	surrogateSamples = propose.ModelAttempts * 3 / 4
	// surrogateNear and surrogateMost bound how many results the process sees:
	// those nearest to the mean, so many for each dimension.
	surrogateNear, surrogateMost = 12, 240
	// surrogateLeast is how many results for each dimension it needs.
	surrogateLeast = 2
	// surrogateFar is beyond which distance, in lengths of a usual sample, results
	// say nothing about samples.
	surrogateFar = 4
	// surrogateChunk is how many results are brought into the coordinates of the
	// distribution between two looks at the time.
	surrogateChunk = 256
)

// surrogate predicts which samples of a distribution are worth trying, from the
// results nearby: a Gaussian process in the coordinates of the distribution,
// where the loss looks alike in all directions (Bajer, Pitra, Repický and
// Holeňa, "Gaussian process surrogate models for the CMA evolution strategy",
// 2019). It picks among samples, as in Ulmer, Streichert and Zell, "Evolution
// strategies assisted by Gaussian processes with improved preselection
// criterion", 2003; what is picked is a sample still, and can be learned from as
// such.
type surrogate struct {
	state *cmaState
	model *gp.Model
}

// surrogateOf is nil where there is too little to learn from nearby, which is so
// in many dimensions, where samples have choices, whose distances the
// distribution does not know, and when ctx ended.
func surrogateOf(ctx context.Context, l *history.Follower, s *cmaState) *surrogate {
	d := s.model.Numbers()
	if d == 0 || surrogateLeast*d > surrogateMost || d < s.model.Free() || len(l.Constraints) > 0 {
		return nil
	}
	rows, losses := nearMean(ctx, l, s)
	if len(rows) < surrogateLeast*d || slices.Min(losses) == slices.Max(losses) {
		return nil
	}
	outcomes := gp.HalfRank.Apply(losses)
	layout := gp.NewLayout(make([]box.Dim, d))
	best, score := (*gp.Model)(nil), math.Inf(-1)
	for _, length := range []float64{1, 2, 4, 8} {
		for _, noise := range []float64{1e-5, 0.1} {
			if ctx.Err() != nil {
				return nil
			}
			m, ok := gp.Condition(layout, isotropic(d, length, noise), gp.Data{Rows: rows, Outcomes: outcomes})
			if !ok {
				continue
			}
			if v := leaveOneOut(m, outcomes); v > score {
				best, score = m, v
			}
		}
	}
	if best == nil {
		return nil
	}
	return &surrogate{state: s, model: best}
}

// nearMean are the whitened rows of the results next to the mean, nearest first,
// and their losses. Those that failed have the worst loss of the others. There
// are none when ctx ended.
func nearMean(ctx context.Context, l *history.Follower, s *cmaState) (rows [][]float64, losses []float64) {
	d := s.model.Numbers()
	var of []*history.Row
	var at [][]float64
	for i := range l.History.Rows {
		if r := l.History.Rows[i]; r.Class == history.Measured || r.Class == history.Failed {
			of, at = append(of, r), append(at, r.X)
		}
	}
	for part := range slices.Chunk(at, surrogateChunk) { // there may be many thousands
		if ctx.Err() != nil {
			return nil, nil
		}
		copy(part, s.model.Whiten(part))
	}
	far, order := make([]float64, len(at)), make([]int, len(at))
	for i, z := range at {
		order[i] = i
		for _, v := range z {
			far[i] += v * v
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(far[i], far[j]), cmp.Compare(i, j)) })
	limit := surrogateFar * (math.Sqrt(float64(d)) + 2)
	worst := math.Inf(-1)
	for _, i := range order[:min(len(order), surrogateNear*d, surrogateMost)] {
		if !(far[i] <= limit*limit) {
			break
		}
		loss := math.Inf(1)
		if of[i].Class == history.Measured {
			loss = of[i].Losses[0]
			worst = math.Max(worst, loss)
		}
		rows, losses = append(rows, at[i]), append(losses, loss)
	}
	for i, loss := range losses {
		if math.IsInf(loss, 1) {
			losses[i] = worst
		}
	}
	if math.IsInf(worst, -1) {
		return nil, nil
	}
	return rows, losses
}

// isotropic are hyperparameters with one lengthscale, in lengths of a usual
// sample. A process that varies slowly varies much in the end.
func isotropic(d int, length, noise float64) gp.Theta {
	theta := gp.Stationary(make([]box.Dim, d)).Theta()
	for i := range d {
		theta[i] = math.Log(length * math.Sqrt(float64(d)))
	}
	theta[d], theta[d+1] = 2*math.Log(length), math.Log(noise)
	return theta
}

// leaveOneOut is the logarithm of the density of each outcome given the others,
// summed (Rasmussen and Williams, "Gaussian processes for machine learning",
// 2006, equation 5.11), up to a constant.
func leaveOneOut(m *gp.Model, outcomes []float64) float64 {
	mean, variance := m.LeaveOneOut()
	sum := 0.0
	for i, y := range outcomes {
		sum -= (math.Log(variance[i]) + (y-mean[i])*(y-mean[i])/variance[i]) / 2
	}
	return sum
}

// order puts the rows first that promise the lowest loss.
func (s *surrogate) order(rows [][]float64) []int {
	p := s.model.Predict(s.state.model.Whiten(rows), false)
	out := make([]int, len(rows))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(i, j int) int { return cmp.Compare(p.Mean[i], p.Mean[j]) })
	return out
}
