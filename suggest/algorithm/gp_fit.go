package algorithm

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// sample is what one model learns from.
type sample struct {
	// role names the model; its hyperparameters are kept under this name.
	role     string
	rows     [][]float64
	outcomes []float64
	weights  []float64 // of the noise
	// results is how many results there are, which decides when to fit again.
	results int
	trend   bool
	quartic bool // with more of a trend
}

func (q *question) layoutOf(s sample) *gp.Layout {
	if s.quartic {
		return q.quartic
	}
	return q.layout
}

func (s sample) data() gp.Data {
	return gp.Data{Rows: s.rows, Outcomes: s.outcomes, Weights: s.weights}
}

// equal says whether two samples make the same model.
func (s sample) equal(other sample) bool {
	return slices.Equal(s.outcomes, other.outcomes) && slices.Equal(s.weights, other.weights) && slices.EqualFunc(s.rows, other.rows, sameFloats)
}

// thinned has at most so many rows, evenly among all.
func (s sample) thinned(most int) gp.Data {
	n := len(s.rows)
	if n <= most {
		return s.data()
	}
	var d gp.Data
	for k := range most {
		i := k * n / most
		d.Rows, d.Outcomes, d.Weights = append(d.Rows, s.rows[i]), append(d.Outcomes, s.outcomes[i]), append(d.Weights, s.weights[i])
	}
	return d
}

func rowKey(row []float64) string {
	var b strings.Builder
	var buf [8]byte
	for _, x := range row {
		// Rows that agree to nine digits are one.
		binary.LittleEndian.PutUint64(buf[:], math.Float64bits(math.Round(x*1e9)+0))
		b.Write(buf[:])
	}
	return b.String()
}

// fitted is a fit that was made: its question and its answer.
type fitted struct {
	fingerprint uint64
	theta       gp.Theta
}

const keptFits = 16

// fitRows is how many results a fit sees at most: more cost much, and change the
// hyperparameters little.
const fitRows = 256

// theta gives the hyperparameters of a model. They are fitted, once in a call,
// when there are enough new results since the last fit, which the newest trial
// that carries one tells, and then go into the Meta of the proposal.
func (q *question) theta(s sample, number int) gp.Theta {
	if theta, ok := q.thetas[s.role]; ok {
		return theta
	}
	dims := len(q.layout.Dims())
	last, lastResults := q.newest(s.role, dims)
	if last != nil && !q.refit(lastResults, s.results) {
		return last
	}
	theta := q.fit(s, last, number)
	if q.thetas == nil {
		q.thetas = map[string]gp.Theta{}
	}
	q.thetas[s.role] = theta
	if q.meta == nil {
		q.meta = suggest.Meta{}
	}
	q.meta[metaKey(s.role)] = strconv.Itoa(s.results) + " " + theta.Text()
	return theta
}

// refit says whether there were enough results since the last fit. The rows of
// curves come several at a time, and tell less each.
func (q *question) refit(last, now int) bool {
	if q.levels.joint() {
		return now < last || now-last > now/16
	}
	return refit(last, now)
}

// refit says whether there were enough results since the last fit.
func refit(last, now int) bool {
	if now < 100 {
		return now != last
	}
	return now < last || now-last >= (now+39)/40
}

func metaKey(role string) string { return "gp." + role }

// newest finds the newest hyperparameters of a role.
func (q *question) newest(role string, dims int) (theta gp.Theta, results int) {
	key, best := metaKey(role), -1
	for _, t := range q.study.Trials {
		if t.Number <= best {
			continue
		}
		text, ok := t.Meta[key]
		if !ok {
			continue
		}
		count, rest, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(count)
		parsed, ok := gp.ParseTheta(rest, dims)
		if err == nil && ok {
			theta, results, best = parsed, n, t.Number
		}
	}
	return theta, results
}

func (q *question) fit(s sample, last gp.Theta, number int) gp.Theta {
	fingerprint := s.fingerprint(q.seed, last, number)
	for _, f := range q.fits {
		if f.fingerprint == fingerprint {
			return f.theta
		}
	}
	prior := gp.NewPrior(len(q.layout.Dims()), s.trend)
	n := len(s.rows)
	data := s.thinned(fitRows)
	var starts []gp.Theta
	if last != nil {
		starts = append(starts, last)
	}
	if last == nil || n < 40 || n%10 == 0 {
		starts = append(starts, prior.Theta())
	}
	if n < 40 || n%10 == 5 {
		stream := q.stream("fit "+s.role, number)
		start := prior.Theta()
		for i := range start {
			start[i] += stream.NormFloat64()
		}
		starts = append(starts, start)
	}
	f := gp.Fit{Layout: q.layoutOf(s), Prior: prior, Data: data, Starts: starts}
	ctx, done := q.half()
	defer done()
	theta, _ := f.Best(ctx)
	theta = theta.Rounded()
	if ctx.Err() == nil {
		q.fits = append(q.fits, fitted{fingerprint: fingerprint, theta: theta})
		if len(q.fits) > keptFits {
			q.fits = slices.Delete(q.fits, 0, 1)
		}
	}
	return theta
}

// half is a context with half of the time that is left, as the model is made and
// searched after the fit. Without a deadline, or when nobody waits for an answer,
// it has all of the time.
func (q *question) half() (context.Context, context.CancelFunc) {
	deadline, ok := q.ctx.Deadline()
	if !ok || q.prepares {
		return q.ctx, func() {}
	}
	return context.WithTimeout(q.ctx, time.Until(deadline)/2)
}

// fingerprint tells the questions of fits apart.
func (s sample) fingerprint(seed uint64, last gp.Theta, number int) uint64 {
	h := fnv.New64a()
	var buf [8]byte
	write := func(values []float64) {
		binary.LittleEndian.PutUint64(buf[:], uint64(len(values)))
		_, _ = h.Write(buf[:])
		for _, v := range values {
			binary.LittleEndian.PutUint64(buf[:], math.Float64bits(v))
			_, _ = h.Write(buf[:])
		}
	}
	_, _ = h.Write([]byte(s.role))
	write([]float64{float64(number), float64(seed >> 32), float64(uint32(seed))})
	write(last)
	for _, row := range s.rows {
		write(row)
	}
	write(s.outcomes)
	write(s.weights)
	return h.Sum64()
}
