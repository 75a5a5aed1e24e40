package study

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// Asked is what an algorithm was asked when it proposed a trial, and what it knew: enough
// to ask it again (Replay). The state of its randomness is the seed and the number of
// the trial. It is the annotation AnnotationAsked of the trial, as JSON.
type Asked struct {
	Algorithm string `json:"algorithm"`
	// Version of the program, and the architecture that it ran on.
	Version string `json:"version,omitempty"`
	Seed    uint64 `json:"seed,string"`
	// First is the number of the first trial of the answer, and Wanted how many were
	// asked for.
	First  int `json:"first"`
	Wanted int `json:"wanted"`
	// Open are the numbers below First of trials that had not ended, and Gone those of no
	// trial, as "3,7-9". All others had ended.
	Open string `json:"open,omitempty"`
	Gone string `json:"gone,omitempty"`
	// Budget and Parallel are maxTrialCount and parallelTrialCount, 0 where there was
	// none, and Points the length of initialTrials.
	Budget   int `json:"budget,omitempty"`
	Parallel int `json:"parallel,omitempty"`
	Points   int `json:"points,omitempty"`
	// Known is a hash of all that was known: of the trials with their results, those of
	// other experiments, the settings, and the points that were queued.
	Known string `json:"known"`
	// Late: the answer was given after half of the time that there is, so that it may
	// depend on how fast the machine was.
	Late bool `json:"late,omitempty"`
}

// asks is what is asked with a question for n trials.
func (s *Study) asks(n int) *Asked {
	a := &Asked{
		Algorithm: s.trials.spec.Algorithm.AlgorithmName, Seed: s.base.Seed, First: s.question().NextNumber(), Wanted: n,
		Budget: s.base.Budget, Parallel: s.base.Parallel, Points: len(s.trials.spec.InitialTrials),
	}
	known := s.print(a.Points) + s.learned
	var open, gone numbers
	next := 0
	for _, e := range s.trials.entries {
		gone.add(next, e.trial.Number)
		if next = e.trial.Number + 1; !e.trial.State.Finished() {
			open.add(e.trial.Number, next)
		}
		known += e.print
	}
	a.Open, a.Gone, a.Known = open.String(), gone.String(), hexadecimal(known)
	return a
}

func hexadecimal(n uint64) string { return fmt.Sprintf("%016x", n) }

// numbers are ranges of numbers, from the first to before the second, in ascending order.
type numbers [][2]int

func (r *numbers) add(from, to int) {
	switch last := len(*r) - 1; {
	case from >= to:
	case last >= 0 && (*r)[last][1] == from:
		(*r)[last][1] = to
	default:
		*r = append(*r, [2]int{from, to})
	}
}

func (r numbers) String() string {
	var b strings.Builder
	for i, part := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(part[0]))
		if last := part[1] - 1; last > part[0] {
			b.WriteString("-" + strconv.Itoa(last))
		}
	}
	return b.String()
}

func (r numbers) has(n int) bool {
	i, found := slices.BinarySearchFunc(r, n, func(part [2]int, n int) int { return cmp.Compare(part[0], n) })
	return found || i > 0 && n < r[i-1][1]
}

// readNumbers reads what String wrote.
func readNumbers(text string) (r numbers, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || last < first || last == math.MaxInt || len(r) > 0 && first < r[len(r)-1][1] {
			return nil, fmt.Errorf("%.40q are no numbers in order", text)
		}
		r.add(first, last+1)
	}
	return r, nil
}

// print is a hash of the settings and of the first n of the points that are tried before
// any of the algorithm's own.
func (s *Study) print(n int) uint64 {
	w := printer{fnv.New64a()}
	if a := s.trials.spec.Algorithm; a != nil {
		w.text(a.AlgorithmName)
		for _, setting := range a.AlgorithmSettings {
			w.text(setting.Name, setting.Value)
		}
	}
	if s.base.Repeats {
		w.text("repeats")
	}
	for _, i := range s.trials.spec.InitialTrials[:n] {
		w.text("", i.ID)
		for _, a := range i.ParameterAssignments {
			w.text(a.Name, a.Value)
		}
	}
	return w.Sum64()
}

// printOf is a hash of what an algorithm knows of a trial. The sum of those of several is
// one of them all.
func printOf(t *suggest.Trial) uint64 {
	w := printer{fnv.New64a()}
	state := suggest.Pending // as one that runs
	if t.State.Finished() {
		state = t.State
	}
	w.floats(float64(t.Number), float64(state), t.Resource, t.Duration)
	for _, v := range t.Point {
		w.text(v.String())
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		w.text(key, t.Meta[key])
	}
	w.floats(t.Values...)
	w.floats(t.Constraints...)
	for _, c := range t.Curve {
		w.floats(float64(c.Step), c.Value)
	}
	return w.Sum64()
}

type printer struct{ hash.Hash64 }

// text adds texts so that their borders count.
func (w printer) text(all ...string) {
	for _, t := range all {
		_, _ = w.Write(append([]byte(t), 0)) // cannot fail
	}
}

// floats adds numbers, and that they are there.
func (w printer) floats(all ...float64) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*len(all)), uint64(len(all)))
	for _, v := range all {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	_, _ = w.Write(b)
}

// open is a trial as it is known before it has ended.
func open(t *suggest.Trial) *suggest.Trial {
	return &suggest.Trial{Number: t.Number, State: suggest.Pending, Point: t.Point, Meta: t.Meta, Resource: t.Resource}
}
