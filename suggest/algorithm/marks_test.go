package algorithm

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// markedStudy has as many trials as several comparisons, two objectives and a
// constraint.
func markedStudy(t *testing.T) suggest.Study {
	space := treeSpace(t)
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "a"}, {Name: "b"}}, Constraints: []suggest.Constraint{{Name: "c"}}}
	for i := range 3*together + 5 {
		p := at(t, space, "model", "svm", "lr", fmt.Sprint(1+i%9))
		s.Trials = append(s.Trials, suggest.Trial{
			Number: i, Point: p, State: suggest.Succeeded, Values: []float64{float64(i), 1}, Constraints: []float64{-1}, Meta: suggest.Meta{"a": "b"},
		})
	}
	s.Trials[7].State, s.Trials[7].Values, s.Trials[7].Constraints = suggest.Running, nil, nil
	s.Trials[together].Point = nil
	return s
}

// apartFrom copies a study, so that what is done to the one does not show in the
// other. Points and Meta are never modified in place.
func apartFrom(s suggest.Study) suggest.Study {
	s.Trials = slices.Clone(s.Trials)
	for i := range s.Trials {
		t := &s.Trials[i]
		t.Values, t.Constraints, t.Curve = slices.Clone(t.Values), slices.Clone(t.Constraints), slices.Clone(t.Curve)
	}
	return s
}

// edits are what may happen to the trials of a study between two questions.
func edits(at int) map[string]func(s *suggest.Study) {
	return map[string]func(s *suggest.Study){
		"nothing": func(*suggest.Study) {},
		"a trial ends": func(s *suggest.Study) {
			s.Trials[at].State, s.Trials[at].Values, s.Trials[at].Constraints = suggest.Succeeded, []float64{0, 0}, []float64{0}
		},
		"a trial fails":           func(s *suggest.Study) { s.Trials[at].State = suggest.Failed },
		"a trial is gone":         func(s *suggest.Study) { s.Trials = slices.Delete(s.Trials, at, at+1) },
		"the last trials go":      func(s *suggest.Study) { s.Trials = s.Trials[:at] },
		"a trial takes its place": func(s *suggest.Study) { s.Trials[at].Number = 100_000 },
		"another number":          func(s *suggest.Study) { s.Trials[at].Number += 1 << 32 },
		"two swap places":         func(s *suggest.Study) { s.Trials[at], s.Trials[at+1] = s.Trials[at+1], s.Trials[at] },
		"two swap points":         func(s *suggest.Study) { swap(&s.Trials[at].Point, &s.Trials[at+1].Point) },
		"a point in place":        func(s *suggest.Study) { s.Trials[at].Point = slices.Clone(s.Trials[at].Point) },
		"a shorter point":         func(s *suggest.Study) { s.Trials[at].Point = s.Trials[at].Point[:min(1, len(s.Trials[at].Point))] },
		"a value":                 func(s *suggest.Study) { s.Trials[at].Values = []float64{-1, 1} },
		"the second value":        func(s *suggest.Study) { s.Trials[at].Values = []float64{float64(at), 2} },
		"a value is no number":    func(s *suggest.Study) { s.Trials[at].Values = []float64{math.NaN(), 1} },
		"a value is gone":         func(s *suggest.Study) { s.Trials[at].Values = s.Trials[at].Values[:min(1, len(s.Trials[at].Values))] },
		"many values":             func(s *suggest.Study) { s.Trials[at].Values = make([]float64, 256) },
		"a constraint's value":    func(s *suggest.Study) { s.Trials[at].Constraints = []float64{3} },
		"no constraint's value":   func(s *suggest.Study) { s.Trials[at].Constraints = nil },
		"the meta":                func(s *suggest.Study) { s.Trials[at].Meta = suggest.Meta{"a": "c"} },
		"a curve":                 func(s *suggest.Study) { s.Trials[at].Curve = []suggest.Sample{{Step: 1, Value: 2}} },
		"a resource":              func(s *suggest.Study) { s.Trials[at].Resource = 3 },
		"no constraints":          func(s *suggest.Study) { s.Constraints = nil },
		"one objective":           func(s *suggest.Study) { s.Objectives = s.Objectives[:1] },
		"a new trial": func(s *suggest.Study) {
			s.Trials = append(s.Trials, suggest.Trial{Number: 5000, Point: s.Trials[0].Point})
		},
		"a late trial": func(s *suggest.Study) {
			s.Trials = append(s.Trials, suggest.Trial{Number: -1, Point: s.Trials[0].Point})
		},
		"all in place": func(s *suggest.Study) {
			for i := range s.Trials {
				s.Trials[i].Values = slices.Clone(s.Trials[i].Values)
			}
		},
		"a value in the same memory": func(s *suggest.Study) {
			if v := s.Trials[at].Values; len(v) > 0 {
				v[0] = -7
			}
		},
	}
}

func swap[T any](a, b *T) { *a, *b = *b, *a }

// What was read before must never show, wherever a trial was edited: in the
// first comparison, at its edges, later, or in the last and shorter one.
func TestReadersSeeEachEdit(t *testing.T) {
	for _, at := range []int{0, 7, together - 1, together, 2*together + 3, 3*together + 3} {
		for name, edit := range edits(at) {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				s := markedStudy(t)
				h, l := newHistorian(s.Space), newLedger(s.Space)
				h.read(s)
				l.read(s, 1)
				for range 2 { // the second time, what was read is what there is
					edit(&s)
					if got, want := show(h.read(s)), show(newHistorian(s.Space).read(s)); got != want {
						t.Errorf("history: got\n%s\nwant\n%s", got, want)
					}
					l.read(s, 1)
					fresh := newLedger(s.Space)
					fresh.read(s, 1)
					if got, want := showLedger(l), showLedger(fresh); got != want {
						t.Errorf("ledger: got\n%s\nwant\n%s", got, want)
					}
					edit = func(*suggest.Study) {}
				}
			})
		}
	}
}

func showLedger(l *ledger) string {
	out := fmt.Sprintln(len(l.entries), len(l.marks.all), len(l.known))
	for _, e := range l.entries {
		out += fmt.Sprintln(e.number, e.result.number, e.result.x, e.result.class, e.result.losses, e.result.violation, e.result.meta, e.trial.State)
	}
	return out
}

// The other way around: what is the same costs no second look, also where there
// are several objectives and constraints.
func TestMarksShowWhatIsTheSame(t *testing.T) {
	s := markedStudy(t)
	for name, whole := range map[string]bool{"whole": true, "without curves": false} {
		m := newMarks(s.Space.Len(), s, whole)
		for i := range s.Trials {
			m.add(&s.Trials[i])
		}
		var looked []int
		again := apartFrom(s)
		again.Trials[9].Values[1] = 5
		n := m.agree(0, again.Trials, func(i int) bool { looked = append(looked, i); return i != 9 && i <= together })
		if n != 9 || !slices.Equal(looked, []int{9}) {
			t.Errorf("%s: %d agree, looked at %v", name, n, looked)
		}
		looked = nil
		if n := m.agree(0, apartFrom(s).Trials, func(i int) bool { looked = append(looked, i); return true }); n != len(s.Trials) || !slices.Equal(looked, []int{together}) {
			t.Errorf("%s: %d agree, looked at %v", name, n, looked)
		}
	}
}

// A study without objectives or without parameters has marks too, or none.
func TestReadersTakeEmptyStudies(t *testing.T) {
	for name, specs := range map[string][]suggest.ParameterSpec{
		"no parameters": nil,
		"one parameter": {{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			space, err := suggest.NewSpace(specs)
			if err != nil {
				t.Fatal(err)
			}
			s := suggest.Study{Space: space, Trials: []suggest.Trial{{Number: 0, Point: space.Decode(make([]float64, space.Len()))}, {}}}
			h, l := newHistorian(space), newLedger(space)
			for _, resource := range []float64{0, 1, 2} {
				s.Trials[0].Resource = resource
				got, want := h.read(s), newHistorian(space).read(s)
				if show(got) != show(want) {
					t.Errorf("history: got\n%s\nwant\n%s", show(got), show(want))
				}
				l.read(s, 0)
				if len(l.entries) != 2 {
					t.Errorf("ledger: %d entries", len(l.entries))
				}
			}
		})
	}
}
