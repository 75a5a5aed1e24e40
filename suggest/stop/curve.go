package stop

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/curve"
)

// extrapolation stops a trial that will hardly beat the best one: when the
// probability that its value at the last step is better than the best value of
// the trials that got there is below a threshold (Domhan, Springenberg and
// Hutter, IJCAI 2015, section 3.2). The learning curve is extrapolated by package
// curve, whose prior comes from the complete curves. How far off the same
// extrapolation would have been for those, at the same step, says how much
// wider than it claims its distribution is taken.
type extrapolation struct {
	threshold float64
	minTrials int
	start     int
	end       int64 // 0: not known
	interval  int64 // 0: a twentieth of the end

	mu     sync.Mutex
	judged map[int]judgement // of trials by number, the last one
}

// judgement is a probability that was computed, and what from. It saves the
// time of computing it again with each report.
type judgement struct {
	of          uint64
	p, expected float64
}

// maxJudged bounds how many judgements are kept.
const maxJudged = 4096

func curveRegistration() Registration {
	return Registration{
		Name:    "curve",
		Summary: "Extrapolates the learning curve and stops a trial that will hardly beat the best one. For smooth curves and few trials; it needs some complete ones.",
		New:     suggest.ReadingStopper(newExtrapolation),
		Settings: []suggest.SettingHelp{
			{Name: "interval", Default: "a twentieth of r_max", Help: "A trial is judged by its reports up to the first one in each next so many steps, a whole number of at least 1."},
			minTrialsSetting("4", "trials that succeeded and got to the last step"),
			rMaxSetting("the last step of the longest trial that succeeded", ""),
			startStepSetting("4"),
			{Name: "threshold", Default: "0.05", Help: "A trial stops when its probability to become the best is below it, above 0 and below 1."},
		},
	}
}

func newExtrapolation(r *suggest.SettingsReader) suggest.Stopper {
	whole := suggest.Range{Min: 1, Max: maxResource}
	return &extrapolation{
		judged:    map[int]judgement{},
		threshold: r.Float("threshold", 0.05, suggest.Between(0, 1)),
		minTrials: count(r, minTrials, 4),
		start:     count(r, startStep, 4),
		end:       r.Int(settingRMax, 0, whole),
		interval:  r.Int("interval", 0, whole),
	}
}

// Stop implements suggest.Stopper.
func (e *extrapolation) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	end := e.end
	if end == 0 {
		end = horizon(s)
	}
	own := readCourse(o, t.Curve)
	if own.len() == 0 || own.reports() < e.start || own.last() >= end {
		return false, ""
	}
	complete, incumbent, number := e.complete(s, t, end)
	if len(complete) < e.minTrials || own.best() <= incumbent {
		return false, ""
	}
	if _, tail := own.split(max(0, own.len()-e.start)); math.IsInf(tail.best(), 1) {
		return true, fmt.Sprintf("it has reported no number since step %d", tail.step(0))
	}
	if own = e.entered(own, end); own.reports() < e.start {
		return false, ""
	}
	step := own.last()
	p, expected := e.chance(t.Number, own, complete, incumbent, end)
	if !(p < e.threshold) {
		return false, ""
	}
	return true, fmt.Sprintf("at step %d of %d its probability to end better than trial %d, the best one with %s, is %.2g, below %.4g; it is expected to end at %s",
		step, end, number, text(o, incumbent), p, e.threshold, text(o, expected))
}

// entered is the course up to the first report of its present interval. So it
// does not matter whether each report is looked at or only some.
func (e *extrapolation) entered(c course, end int64) course {
	interval := e.interval
	if interval == 0 {
		interval = max(1, (end+19)/20)
	}
	n := c.len()
	for n > 1 && c.step(n-2)/interval == c.last()/interval {
		n--
	}
	before, _ := c.split(n)
	return before
}

// calibrating is how many complete curves the prior is made from, at most: the
// newest.
const calibrating = 12

// complete are the newest of the other trials that succeeded and got to the
// end, and the best of all their final losses.
func (e *extrapolation) complete(s suggest.Study, t *suggest.Trial, end int64) (newest []course, incumbent float64, number int) {
	type numbered struct {
		number int
		course course
	}
	o := objective(s)
	var all []numbered
	incumbent = math.Inf(1)
	for other := range others(s, t) {
		if other.State != suggest.Succeeded {
			continue
		}
		c := readCourse(o, other.Curve)
		if c.len() == 0 || c.last() < end {
			continue
		}
		all = append(all, numbered{other.Number, c})
		if final := c.final(); final < incumbent || final == incumbent && other.Number < number {
			incumbent, number = final, other.Number
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(b.number, a.number) })
	for _, c := range all {
		if !math.IsInf(c.course.final(), 1) {
			newest = append(newest, c.course)
		}
	}
	return newest, incumbent, number
}

// chance is that of the trial with the number, computed once.
func (e *extrapolation) chance(number int, own course, complete []course, incumbent float64, end int64) (p, expected float64) {
	complete = complete[:min(len(complete), calibrating)]
	of := fingerprint(own, complete, incumbent, end)
	e.mu.Lock()
	defer e.mu.Unlock()
	if j, ok := e.judged[number]; ok && j.of == of {
		return j.p, j.expected
	}
	if len(e.judged) >= maxJudged {
		clear(e.judged)
	}
	p, expected = chance(own, complete, incumbent, end)
	e.judged[number] = judgement{of: of, p: p, expected: expected}
	return p, expected
}

// fingerprint tells the questions to chance apart.
func fingerprint(own course, complete []course, incumbent float64, end int64) uint64 {
	h, buffer := fnv.New64a(), make([]byte, 0, 16)
	write := func(x, y uint64) {
		buffer = binary.LittleEndian.AppendUint64(buffer[:0], x)
		_, _ = h.Write(binary.LittleEndian.AppendUint64(buffer, y)) // never fails
	}
	write(math.Float64bits(incumbent), uint64(end))
	for _, c := range append([]course{own}, complete...) {
		write(uint64(c.len()), 0)
		for i := range c.samples {
			write(uint64(c.step(i)), math.Float64bits(c.loss(i)))
		}
	}
	return h.Sum64()
}

// chance is the probability that the trial's loss at the end is below the
// incumbent's, and the loss that is expected there.
func chance(own course, complete []course, incumbent float64, end int64) (p, expected float64) {
	// Losses as large as 1e300 are squared in what follows.
	scale := math.Abs(incumbent)
	for _, c := range append([]course{own}, complete...) {
		for i := range c.samples {
			if l := c.loss(i); !math.IsInf(l, 0) {
				scale = max(scale, math.Abs(l))
			}
		}
	}
	if scale == 0 {
		return 1, incumbent // all are equal
	}
	prior, ok := priorOf(complete, scale)
	if !ok {
		return 1, incumbent
	}
	model := curve.NewModel(float64(end))
	stretch := calibrate(model, complete, &prior, scale, own.last())
	post := model.Extrapolate(own.scaled(scale), prior)
	mean, _ := post.Moments()
	return post.Below(incumbent/scale, stretch), mean * scale
}

// scaled is the course without what is not finite, in units of scale.
func (c course) scaled(scale float64) curve.Curve {
	var out curve.Curve
	for i := range c.samples {
		if l := c.loss(i); !math.IsInf(l, 0) && c.step(i) >= 0 {
			out.Steps, out.Values = append(out.Steps, float64(c.step(i))), append(out.Values, l/scale)
		}
	}
	return out
}

// priorOf reads the complete curves; ok is false when all of them are flat and
// equal.
func priorOf(complete []course, scale float64) (p curve.Prior, ok bool) {
	n := float64(len(complete))
	drops := 0.0
	for _, c := range complete {
		p.Mean += c.final() / scale / n
		if finite := c.scaled(scale); len(finite.Values) > 0 {
			drop := finite.Values[0] - finite.Values[len(finite.Values)-1]
			drops += drop * drop / n
		}
	}
	for _, c := range complete {
		d := c.final()/scale - p.Mean
		p.Deviation += d * d / n
	}
	// Twice what was seen: trials to come may differ more, and good ones more
	// often run to the end than bad ones.
	p.Deviation = 2 * math.Sqrt(p.Deviation)
	p.Drop = 2 * math.Sqrt(drops)
	widest := max(p.Deviation, p.Drop)
	p.Deviation, p.Drop = max(p.Deviation, widest/20), max(p.Drop, widest/20)
	return p, widest > 1e-12
}

// calibrate learns the weights of the shapes from the complete curves, and
// returns how much wider than it claims the distribution of the value at the
// end must be for the values that these curves had.
func calibrate(m *curve.Model, complete []course, p *curve.Prior, scale float64, step int64) (stretch float64) {
	weights := make([]float64, len(curve.Equal()))
	for _, c := range complete {
		for k, w := range m.Extrapolate(c.scaled(scale), *p).Shapes() {
			weights[k] += w / float64(len(complete))
		}
	}
	for k, w := range curve.Equal() {
		weights[k] = (weights[k] + w) / 2
	}
	p.Weights = weights
	// As if some curves had been predicted with errors of the expected size.
	const confidence, largest = 4.0, 5.0
	sum := confidence
	for _, c := range complete {
		mean, deviation := m.Extrapolate(c.upTo(step).scaled(scale), *p).Moments()
		z := (c.final()/scale - mean) / deviation
		sum += min(z*z, largest*largest)
	}
	return math.Sqrt(max(1, sum/(confidence+float64(len(complete)))))
}
