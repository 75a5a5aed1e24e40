package lines_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// TestWhatHasEndedIsPromisedNotToChange holds too that an algorithm that relies
// on it answers as a new one.
func TestWhatHasEndedIsPromisedNotToChange(t *testing.T) {
	const (
		told0 = `{"tell":{"number":0,"state":"succeeded","value":3}}`
		told1 = `{"tell":{"number":1,"state":"failed"}}`
		told2 = `{"tell":{"number":2,"state":"pruned","value":4}}`
		ask   = `{"ask":3}`
	)
	cases := map[string]struct {
		requests []string
		promised []int // with each ask
	}{
		"as they began":           {[]string{ask, told0, ask, told1, told2, ask}, []int{0, 1, 3}},
		"the first one ends last": {[]string{ask, told1, told2, ask, told0, ask}, []int{0, 0, 3}},
		"a result is corrected": {
			[]string{ask, told0, told1, ask, `{"tell":{"number":0,"state":"succeeded","value":-7}}`, ask, told2, ask}, []int{0, 2, 2, 3},
		},
		"in one request, twice": {
			[]string{ask, `{"tell":[{"number":0,"state":"failed"},{"number":0,"state":"succeeded","value":-7}]}`, ask}, []int{0, 1},
		},
		"a trial runs again": {
			[]string{ask, told0, told1, ask, `{"tell":{"number":0,"state":"running"}}`, ask, told0, ask}, []int{0, 2, 0, 2},
		},
		"a trial is put in another's place": {
			[]string{ask, told0, told1, ask, `{"tell":{"number":1,"state":"succeeded","value":1,"params":{"x":50}}}`, ask}, []int{0, 2, 2},
		},
		"a request that is refused": {
			[]string{ask, told0, ask, `{"tell":[{"number":0,"state":"failed"},{"number":99,"state":"failed"}]}`, ask}, []int{0, 1, 1},
		},
		"numbers with gaps": {
			[]string{`{"tell":{"number":7,"state":"succeeded","value":1,"params":{"x":50}}}`, ask}, []int{1},
		},
		"numbers in another order": {
			[]string{ask, told0, ask,
				`{"tell":{"number":20,"state":"succeeded","value":1,"params":{"x":50}}}`, ask,
				`{"tell":{"number":10,"state":"succeeded","value":1,"params":{"x":51}}}`, ask, told1, ask},
			[]int{0, 1, 1, 0, 0},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, algorithm := range []string{"cmaes", "tpe", "random", "auto"} {
				st := study(t, oneSpace)
				w := &suggesttest.Witness{Algorithm: build(t, algorithm, st.Space), T: t}
				cached := lines.New(lines.Config{Study: st, Algorithm: w})
				var promised []int
				for _, request := range c.requests {
					got := converse(t, cached, request)
					if request == ask {
						promised = append(promised, w.Promised)
						if want := converse(t, lines.New(lines.Config{Study: w.Last, Algorithm: build(t, algorithm, st.Space)}), request); !cmp.Equal(want, got) {
							t.Errorf("%s: %s", algorithm, cmp.Diff(want, got))
						}
					}
				}
				if diff := cmp.Diff(c.promised, promised); diff != "" {
					t.Errorf("%s: promised (-want +got):\n%s", algorithm, diff)
				}
			}
		})
	}
}

// TestTrialsOfTheBeginningAreSettledToo begins with a study that has some.
func TestTrialsOfTheBeginningAreSettledToo(t *testing.T) {
	st := study(t, oneSpace)
	p := point(t, st.Space, "x", "5")
	ended := func(numbers ...int) (trials []suggest.Trial) {
		for _, n := range numbers {
			trials = append(trials, suggest.Trial{Number: n, Point: p, State: suggest.Failed})
		}
		return trials
	}
	for name, c := range map[string]struct {
		trials []suggest.Trial
		want   int
	}{
		"in order":        {ended(1, 2, 4), 3},
		"in another":      {ended(2, 1, 4), 0},
		"the last begins": {append(ended(1, 2), suggest.Trial{Number: 3, Point: p}), 2},
	} {
		st.Trials, st.Record, st.Settled = c.trials, new(suggest.Record), 3 // another's promise
		w := &suggesttest.Witness{Algorithm: build(t, "random", st.Space), T: t}
		converse(t, lines.New(lines.Config{Study: st, Algorithm: w}), `{"ask":1}`)
		if w.Promised != c.want || w.Last.Record == st.Record {
			t.Errorf("%s: %d are promised, want %d", name, w.Promised, c.want)
		}
	}
}
