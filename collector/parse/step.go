package parse

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/vernier-ml/vernier/collector"
)

// stepNames are the names of a step, the best first, with their ranks: where a
// line states several, the finest counts.
var stepNames = []struct {
	name string
	rank int
}{{"global_step", globalStepRank}, {"step", stepRank}, {"current_steps", stepRank}, {"iteration", iterationRank}, {"iter", iterationRank}, {"training_iteration", iterationRank}, {"epoch", epochRank}}

const (
	globalStepRank = iota
	stepRank
	iterationRank
	epochRank
	noRank // what is no step
)

const (
	// maxStepGap bounds what may stand between a step's name and its number, and
	// maxStepName the name, in bytes.
	maxStepGap  = 8
	maxStepName = len("training_iteration")
)

// StepNames are the names of a step, the best first.
func StepNames() []string {
	var names []string
	for _, n := range stepNames {
		names = append(names, n.name)
	}
	return names
}

// IsStep says whether a name, in any case, is that of a step.
func IsStep(name string) bool { return rankOf([]byte(name)) != noRank }

// rankOf returns the rank of a step's name in any case, or noRank.
func rankOf(name []byte) int {
	if len(name) < len("step") || len(name) > maxStepName {
		return noRank
	}
	for _, n := range stepNames {
		if foldEqual(name, n.name) {
			return n.rank
		}
	}
	return noRank
}

// maxStep is the largest step: a float64 holds all whole numbers up to it.
const maxStep int64 = 1 << 53

// Step returns v as a step, if it is one: a whole number from 0 to 2^53.
func Step(v float64) (int64, bool) {
	if !(v >= 0 && v <= float64(maxStep)) || v != float64(int64(v)) {
		return collector.NoStep, false
	}
	return int64(v), true
}

// stepFinder keeps the best step seen in one line.
type stepFinder struct {
	step int64
	rank int
	sign bool // it stands after a '='

	epoch int64 // that the line states too, or NoStep
	total int64 // after the step and a slash, or 0
}

func newStepFinder() stepFinder {
	return stepFinder{step: collector.NoStep, rank: noRank, epoch: collector.NoStep}
}

// set takes a value if it is a step.
func (f *stepFinder) set(rank int, value string) {
	if step := wholeStep(value); step != collector.NoStep {
		f.step, f.rank = step, rank
	}
}

// wholeStep reads a whole text as a step, NoStep if it is none.
func wholeStep(text string) int64 {
	if step, n := scanStep([]byte(text)); n > 0 && n == len(text) {
		return step
	}
	return collector.NoStep
}

// inText looks for steps in a line: a name that is a word of its own, then at
// most a few spaces, quotes, brackets, or one of : = #, then a number. So
// `step=3`, `"step": 3`, `Epoch 3/10`, `Epoch: [3][100/5005]`, `Epoch(val) [3]`, `iter #3`. Of two
// with one name, that after a '=' counts, else the first. A number at the
// beginning in the manner of boosting libraries is an iteration.
func (f *stepFinder) inText(line []byte) {
	if n := countLength(line); n > 0 {
		f.set(iterationRank, string(bytes.Trim(line[:n], "[]:")))
	}
	for at := 1; at < len(line); at++ {
		if isDigit(line[at]) && !isDigit(line[at-1]) {
			f.numberAt(line, at)
		}
	}
}

// countLength returns the length of the iteration that a line begins with, as
// XGBoost and LightGBM print it, `[10]<TAB>train-rmse:0.5`, and CatBoost,
// `10:<TAB>learn: 0.5`. It is 0 if there is none.
func countLength(line []byte) int {
	open := 0
	if len(line) > 0 && line[0] == '[' {
		open = 1
	}
	d := digits(line[open:])
	n := open + d + 1
	if d == 0 || d > 9 || n >= len(line) { // with more it may be a time
		return 0
	}
	switch string(line[n-1 : n+1]) {
	case "]\t":
		return open * n
	case ":\t":
		return (1 - open) * n
	}
	return 0
}

// numberAt looks at a number in a line, and at what stands before it.
func (f *stepFinder) numberAt(line []byte, at int) {
	end, sign := at, false
	for end > 0 && at-end < maxStepGap && inStepGap[line[end-1]] {
		end--
		sign = sign || line[end] == '='
	}
	if end < at && end > 0 && line[end-1] == ')' {
		end -= modeLength(line[:end])
	}
	begin := end
	for begin > 0 && end-begin <= maxStepName && isWord(line[begin-1]) {
		begin--
	}
	if end == at || begin == end {
		return
	}
	rank := rankOf(line[begin:end])
	if rank == noRank || isRate(line[:begin]) || hasUnit(line[at:]) {
		return
	}
	if rank == epochRank && f.epoch == collector.NoStep {
		f.epoch, _ = scanStep(line[at:])
	}
	if rank > f.rank || rank == f.rank && (f.sign || !sign) {
		return
	}
	if step, n := scanStep(line[at:]); n > 0 {
		f.step, f.rank, f.sign, f.total = step, rank, sign, totalAfter(line[at+n:])
	}
}

// modeLength returns the length of what stands between a step's name and its number in the
// lines of MMEngine, `Epoch(train) [1][10/100]`. The iterations of a validation,
// `Iter(val) [5/5]`, are no step.
func modeLength(before []byte) int {
	for _, mode := range []string{"(train)", "(val)", "(test)"} {
		if name, ok := bytes.CutSuffix(before, []byte(mode)); ok && (mode == "(train)" || bytes.HasSuffix(name, []byte("Epoch"))) {
			return len(mode)
		}
	}
	return 0
}

// totalAfter returns the number after a slash, 0 if there is none.
func totalAfter(b []byte) int64 {
	if len(b) > 1 && b[0] == '/' && isDigit(b[1]) {
		if total, n := scanStep(b[1:]); n > 0 {
			return total
		}
	}
	return 0
}

// epochs is what is remembered of the epochs and steps of a text.
type epochs struct {
	heading int64 // the epoch that the last heading said, or NoStep
	finer   bool  // steps have been finer than epochs
	within  withinEpochs
}

func newEpochs() epochs {
	return epochs{heading: collector.NoStep, within: withinEpochs{epoch: collector.NoStep}}
}

// step returns the step of a line with samples that says what f has found.
func (e *epochs) step(f *stepFinder) int64 {
	e.finer = e.finer || f.rank < epochRank
	switch f.rank {
	case noRank:
		if !e.finer {
			return e.heading
		}
	case stepRank, iterationRank:
		epoch := f.epoch
		if epoch == collector.NoStep {
			epoch = e.heading
		}
		return e.within.step(epoch, f.step, f.total)
	}
	return f.step
}

// withinEpochs counts steps on that begin anew in each epoch, as in `Epoch [3/5], Step
// [300/600]`: where the step goes back, or stays, while the epoch grows, the steps of
// the epochs before are added. They are as many as the step's total, or else as the
// greatest one, and one more where they begin with 0. The first epoch that is seen is
// the first, unless it is beyond 1 and its steps have a total, as after a restart: then
// it is counted from epoch 1. A line of an earlier epoch is late, as where several
// processes print to one output; training begins anew where the first line comes again,
// which another process may print late too.
type withinEpochs struct {
	epoch        int64 // the last one, NoStep at the beginning
	last         int64 // the greatest step of it
	base         int64 // the steps of the epochs before
	each         int64 // the steps of an epoch, where they have begun anew: as many as ever, without a total
	first, start int64 // the epoch and the step of the first line
}

func (w *withinEpochs) step(epoch, step, total int64) int64 {
	switch {
	case epoch == collector.NoStep:
		return w.base + step
	case w.epoch == collector.NoStep || epoch < w.epoch && epoch <= w.first && step <= w.start:
		w.base, w.first, w.start = 0, epoch, step
		if step <= total && epoch > 1 {
			w.base = product(epoch-1, total)
		}
	case epoch < w.epoch:
		return min(max(w.base-product(w.epoch-epoch, w.each), 0)+step, maxStep)
	case epoch == w.epoch:
		w.last = max(w.last, step)
		return min(w.base+step, maxStep)
	case step <= max(w.last, w.each):
		if total > 0 { // earlier epochs may have had more
			w.each = 0
		}
		w.each = max(w.each, total, w.last)
		if step == 0 { // they are counted from 0
			w.each = max(w.each, w.last+1)
		}
		w.base += product(epoch-w.epoch, w.each)
	}
	w.epoch, w.last = epoch, step
	return min(w.base+step, maxStep)
}

// product returns a times b, at most maxStep.
func product(a, b int64) int64 {
	if b > 0 && a > maxStep/b {
		return maxStep
	}
	return a * b
}

// maxPerStep is more than perStep matches, in bytes.
const maxPerStep = 16

var perStep = regexp.MustCompile(`(?i)(?:\b|_)(?:time|it|ns|us|µs|ms|s|secs?|seconds?)/$`)

// isRate reports whether a line up to a step's name says what each step costs, as
// in `time/step: 12`.
func isRate(before []byte) bool {
	end := before[max(0, len(before)-maxPerStep):] // a line may have very many steps
	return len(end) > 0 && end[len(end)-1] == '/' && perStep.Match(end)
}

// timeUnits are the units of a duration that may stand after a blank.
var timeUnits = []string{"ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "hour", "hours"}

// hasUnit reports whether the number that b begins with is a duration, as in
// `step: 12 ms`, and not followed by a name, as in `step: 12 s=3`.
func hasUnit(b []byte) bool {
	unit := bytes.TrimLeft(b[:min(len(b), 32)], "0123456789.,")
	if len(unit) < 2 || unit[0] != ' ' {
		return false
	}
	unit = unit[1:]
	n := 0
	for n < len(unit) && (isWord(unit[n]) || unit[n] >= utf8.RuneSelf) {
		n++
	}
	named := n < len(unit) && (unit[n] == '=' || unit[n] == ':')
	return !named && slices.Contains(timeUnits, string(unit[:n]))
}

// inStepGap is what may stand between a step's name and its number.
var inStepGap = byteSet(" \t\"'=:#[(")

func byteSet(bytes string) (set [256]bool) {
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	return set
}

// scanStep reads a step: a whole number from 0 to 2^53, also as "1,000", "2.0",
// "1e3", "12k", "1.5M". n is 0 if there is none; a number with a unit ("37ms",
// "50%") is none.
func scanStep(b []byte) (step int64, n int) {
	if n := digits(b); n > 0 && n < 16 && (n == len(b) || b[n] == ' ' || b[n] == '/') { // what most lines have
		step, _ := strconv.ParseInt(string(b[:n]), 10, 64) // 15 digits fit
		return step, n
	}
	value, n := scanNumber(b)
	if n == 0 || !isDigit(b[0]) {
		return collector.NoStep, 0
	}
	if n < len(b) {
		switch b[n] {
		case ',':
			if whole := stepGroups.Find(b); whole != nil {
				value, n = parseFloat(withoutGroups(whole)), len(whole)
			}
		case 'k', 'K':
			value, n = value*1e3, n+1
		case 'M':
			value, n = value*1e6, n+1
		}
	}
	if n < len(b) && (isWord(b[n]) || b[n] == '%') {
		return collector.NoStep, 0
	}
	step, ok := Step(value)
	if !ok {
		return collector.NoStep, 0
	}
	return step, n
}

// stepGroups is a step in groups of three digits, as far as they reach.
var stepGroups = regexp.MustCompile(`^[1-9]\d{0,2}(,\d{3})+\b`)

// headingFrame is what may stand around an epoch in a heading, and maxHeading the
// longest one, in bytes.
const (
	headingFrame = " \t=-*#_.:"
	maxHeading   = 128
)

// heading returns the epoch that a line announces which says nothing else:
// `Epoch 3/10`, `epoch 3:`, `===== Epoch [3/10] =====`.
func heading(line []byte) (epoch int64, ok bool) {
	line = bytes.TrimLeft(line, headingFrame)
	name := line[:min(len(line), len("epoch"))]
	if len(line) > maxHeading || !foldEqual(name, "epoch") || slices.ContainsFunc(line[len(name):], isNoFrame) {
		return collector.NoStep, false
	}
	steps := newStepFinder()
	steps.inText(line)
	return steps.step, steps.rank == epochRank
}

func isNoFrame(c byte) bool {
	return !isDigit(c) && bytes.IndexByte([]byte(headingFrame+"[]()/,\""), c) < 0
}
