package lines_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
)

// seen is what an algorithm sees of the trials, in short.
func seen(s suggest.Study) []string {
	var out []string
	for _, t := range s.Trials {
		text := fmt.Sprintf("%d %s %v", t.Number, t.State, s.Space.Assignments(t.Point))
		if t.Values != nil {
			text += fmt.Sprintf(" values %v", t.Values)
		}
		if t.Constraints != nil {
			text += fmt.Sprintf(" constraints %v", t.Constraints)
		}
		if t.Curve != nil {
			var samples []string
			for _, c := range t.Curve {
				samples = append(samples, fmt.Sprintf("{%d %v}", c.Step, c.Value))
			}
			text += fmt.Sprintf(" curve %v", samples)
		}
		if t.Resource != 0 || t.Meta != nil {
			text += fmt.Sprintf(" resource %v meta %v", t.Resource, t.Meta)
		}
		out = append(out, text)
	}
	return out
}

const oneSpace = `{"parameters":[{"name":"x","type":"int","min":0,"max":99}]}`
const twoSpace = `{"parameters":[{"name":"x","type":"int","min":0,"max":99}],
	"objectives":[{"name":"loss"},{"name":"size","type":"maximize"}],"constraints":[{"name":"latency","max":100}]}`

// TestTellReachesTheAlgorithm tells about trials 0 (x=0) and 1 (x=1), which were
// asked for with a meta and a resource.
func TestTellReachesTheAlgorithm(t *testing.T) {
	const untouched = "1 pending [{x 1}] resource 3 meta map[k:v]"
	cases := map[string]struct {
		space   string
		tell    []string
		answers []string // nil: each is {"ok":true}
		want    []string
	}{
		"succeeded":                     {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[0.3]}]}`}, nil, []string{"0 succeeded [{x 0}] values [0.3] resource 3 meta map[k:v]", untouched}},
		"a single trial, a value":       {oneSpace, []string{`{"tell":{"number":0,"state":"succeeded","value":-1e-5}}`}, nil, []string{"0 succeeded [{x 0}] values [-1e-05] resource 3 meta map[k:v]", untouched}},
		"NaN as a string":               {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":["NaN"]}]}`}, nil, []string{"0 succeeded [{x 0}] values [NaN] resource 3 meta map[k:v]", untouched}},
		"NaN as Python writes it":       {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[NaN]}]}`}, nil, []string{"0 succeeded [{x 0}] values [NaN] resource 3 meta map[k:v]", untouched}},
		"null":                          {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[null]}]}`}, nil, []string{"0 succeeded [{x 0}] values [NaN] resource 3 meta map[k:v]", untouched}},
		"a lone null":                   {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","value":null}]}`}, nil, []string{"0 succeeded [{x 0}] values [NaN] resource 3 meta map[k:v]", untouched}},
		"infinities":                    {twoSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[-Infinity,Infinity]},{"number":1,"state":"succeeded","values":["Infinity","-Infinity"]}]}`}, nil, []string{"0 succeeded [{x 0}] values [-Inf +Inf] resource 3 meta map[k:v]", "1 succeeded [{x 1}] values [+Inf -Inf] resource 3 meta map[k:v]"}},
		"too large for a double":        {oneSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[-1e999]}]}`}, nil, []string{"0 succeeded [{x 0}] values [-Inf] resource 3 meta map[k:v]", untouched}},
		"failed":                        {oneSpace, []string{`{"tell":[{"number":0,"state":"failed"}]}`}, nil, []string{"0 failed [{x 0}] resource 3 meta map[k:v]", untouched}},
		"failed with NaN":               {oneSpace, []string{`{"tell":[{"number":0,"state":"failed","values":[NaN]}]}`}, nil, []string{"0 failed [{x 0}] resource 3 meta map[k:v]", untouched}},
		"killed and unmeasured":         {oneSpace, []string{`{"tell":[{"number":0,"state":"killed"},{"number":1,"state":"unmeasured"}]}`}, nil, []string{"0 killed [{x 0}] resource 3 meta map[k:v]", "1 unmeasured [{x 1}] resource 3 meta map[k:v]"}},
		"running":                       {oneSpace, []string{`{"tell":[{"number":0,"state":"running","values":null}]}`}, nil, []string{"0 running [{x 0}] resource 3 meta map[k:v]", untouched}},
		"pruned with a value":           {oneSpace, []string{`{"tell":[{"number":0,"state":"pruned","values":[5]}]}`}, nil, []string{"0 pruned [{x 0}] values [5] resource 3 meta map[k:v]", untouched}},
		"pruned with nothing":           {oneSpace, []string{`{"tell":[{"number":0,"state":"pruned"}]}`}, nil, []string{"0 pruned [{x 0}] resource 3 meta map[k:v]", untouched}},
		"pruned with a curve":           {oneSpace, []string{`{"tell":[{"number":0,"state":"pruned","curve":[[2,0.5],[1,NaN],[2,0.25]]}]}`}, nil, []string{"0 pruned [{x 0}] values [0.25] curve [{1 NaN} {2 0.25}] resource 3 meta map[k:v]", untouched}},
		"pruned of two objectives":      {twoSpace, []string{`{"tell":[{"number":0,"state":"pruned","curve":[[2,0.5]]}]}`}, nil, []string{"0 pruned [{x 0}] curve [{2 0.5}] resource 3 meta map[k:v]", untouched}},
		"pruned after reports":          {oneSpace, []string{`{"report":{"number":0,"step":1,"value":9}}`, `{"report":{"number":0,"step":3,"value":7}}`, `{"report":{"number":0,"step":2,"value":8}}`, `{"tell":{"number":0,"state":"pruned"}}`}, []string{`{"stop":false}`, `{"stop":false}`, `{"stop":false}`, `{"ok":true}`}, []string{"0 pruned [{x 0}] values [7] curve [{1 9} {2 8} {3 7}] resource 3 meta map[k:v]", untouched}},
		"running after a report":        {oneSpace, []string{`{"report":{"number":0,"step":-1,"value":null}}`, `{"report":{"number":0,"step":-1,"value":2}}`}, []string{`{"stop":false}`, `{"stop":false}`}, []string{"0 running [{x 0}] curve [{-1 2}] resource 3 meta map[k:v]", untouched}},
		"a curve in place of reports":   {oneSpace, []string{`{"report":{"number":0,"step":1,"value":9}}`, `{"tell":{"number":0,"state":"succeeded","value":1,"curve":[]}}`}, []string{`{"stop":false}`, `{"ok":true}`}, []string{"0 succeeded [{x 0}] values [1] resource 3 meta map[k:v]", untouched}},
		"constraints":                   {twoSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[1,2],"constraints":[150]}]}`}, nil, []string{"0 succeeded [{x 0}] values [1 2] constraints [150] resource 3 meta map[k:v]", untouched}},
		"a second tell replaces":        {twoSpace, []string{`{"tell":[{"number":0,"state":"succeeded","values":[1,2],"constraints":[150]}]}`, `{"tell":[{"number":0,"state":"failed"}]}`}, nil, []string{"0 failed [{x 0}] resource 3 meta map[k:v]", untouched}},
		"twice in one tell":             {oneSpace, []string{`{"tell":[{"number":0,"state":"failed"},{"number":0,"state":"succeeded","value":1}]}`}, nil, []string{"0 succeeded [{x 0}] values [1] resource 3 meta map[k:v]", untouched}},
		"nothing":                       {oneSpace, []string{`{"tell":[]}`}, nil, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched}},
		"other params, meta, resource":  {oneSpace, []string{`{"tell":[{"number":0,"state":"running","params":{"x":9.0},"meta":{"m":"n"},"resource":0}]}`}, nil, []string{"0 running [{x 9}] resource 0 meta map[m:n]", untouched}},
		"a trial as ask wrote it":       {oneSpace, []string{`{"tell":[{"number":0,"params":{"x":0},"resource":3,"meta":{"k":"v"},"why":"w","fallback":"f","state":"succeeded","values":[1]}]}`}, nil, []string{"0 succeeded [{x 0}] values [1] resource 3 meta map[k:v]", untouched}},
		"a foreign trial":               {oneSpace, []string{`{"tell":[{"number":7,"params":{"x":"5"},"state":"succeeded","values":[1],"meta":{"m":"n"},"resource":9}]}`}, nil, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched, "7 succeeded [{x 5}] values [1] resource 9 meta map[m:n]"}},
		"foreign trials without number": {oneSpace, []string{`{"tell":[{"params":{"x":5},"state":"failed"},{"params":{"x":6},"state":"failed"}]}`}, []string{`{"ok":true,"numbers":[2,3]}`}, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched, "2 failed [{x 5}]", "3 failed [{x 6}]"}},
		"numbers after a gap":           {oneSpace, []string{`{"tell":[{"number":7,"params":{"x":4},"state":"failed"},{"params":{"x":5},"state":"failed"}]}`}, []string{`{"ok":true,"numbers":[8]}`}, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched, "7 failed [{x 4}]", "8 failed [{x 5}]"}},
		"foreign, told again":           {oneSpace, []string{`{"tell":[{"number":2,"params":{"x":4},"state":"failed"},{"number":2,"state":"killed"}]}`}, nil, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched, "2 killed [{x 4}]"}},
		"all or nothing":                {oneSpace, []string{`{"tell":[{"number":0,"state":"failed"},{"number":9,"state":"failed"}]}`}, []string{`{"error":"tell[1].number is 9, and there is no such trial; correct it, or add params to tell a trial that was not asked for here"}`}, []string{"0 pending [{x 0}] resource 3 meta map[k:v]", untouched}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			st := study(t, c.space)
			proposal := func(x string) suggest.Proposal {
				return suggest.Proposal{Point: point(t, st.Space, "x", x), Meta: suggest.Meta{"k": "v"}, Resource: 3}
			}
			a := &scripted{answers: []answer{{proposals: []suggest.Proposal{proposal("0"), proposal("1")}}, {}}}
			got := converse(t, lines.New(lines.Config{Study: st, Algorithm: a}), append(append([]string{`{"ask":2}`}, c.tell...), `{"ask":1}`)...)
			if c.answers == nil {
				for range c.tell {
					c.answers = append(c.answers, `{"ok":true}`)
				}
			}
			if diff := cmp.Diff(c.answers, got[1:len(got)-1]); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, seen(a.asked[1])); diff != "" {
				t.Errorf("trials (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConstraintsThatTheStudyDoesNotName(t *testing.T) {
	a := &scripted{answers: []answer{{}, {}}}
	got := converse(t, lines.New(lines.Config{Study: study(t, oneSpace), Algorithm: a}),
		`{"tell":[{"params":{"x":1},"state":"succeeded","value":1}]}`, `{"ask":1}`,
		`{"tell":[{"params":{"x":2},"state":"succeeded","value":1,"constraints":[-1,Infinity]},{"params":{"x":3},"state":"succeeded","value":1,"constraints":[1]}]}`,
		`{"tell":[{"params":{"x":2},"state":"succeeded","value":1,"constraints":[-1,Infinity]}]}`,
		`{"tell":[{"params":{"x":2},"state":"succeeded","value":1,"constraints":[1]}]}`, `{"ask":1}`)
	want := []string{
		`{"ok":true,"numbers":[0]}`, `{"trials":[],"exhausted":false}`,
		`{"error":"tell[1] has 1 constraint; it must have 2, in the order constraint 1, constraint 2"}`,
		`{"ok":true,"numbers":[1]}`,
		`{"error":"tell[0] has 1 constraint; it must have 2, in the order constraint 1, constraint 2"}`,
		`{"trials":[],"exhausted":false}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantConstraints := []suggest.Constraint{{Name: "constraint 1"}, {Name: "constraint 2"}}
	if diff := cmp.Diff([][]suggest.Constraint{nil, wantConstraints}, [][]suggest.Constraint{a.asked[0].Constraints, a.asked[1].Constraints}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A curve is at most as long as its line, and may come in any order: one that
// runs backwards must not cost the square of its length.
func TestCurvesMayComeInAnyOrder(t *testing.T) {
	const samples = 10_000
	var curve strings.Builder
	for i := range samples {
		fmt.Fprintf(&curve, "[%d,%d],", samples-i, i)
	}
	request := `{"tell":[{"state":"pruned","params":{"lr":0.01,"layers":1,"batch":8,"model":"3"},"curve":[` + curve.String() + `[7,-3]]}]}`
	a := &scripted{answers: []answer{{}}}
	session := lines.New(lines.Config{Study: study(t, mixedSpace), Algorithm: a})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	converse(t, session, request, `{"ask":1}`)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > samples*samples*2 {
		t.Errorf("a curve of %d samples takes %d bytes", samples, took)
	}
	trial := a.asked[0].Trials[0]
	if len(trial.Curve) != samples || !slices.Equal(trial.Values, []float64{0}) {
		t.Fatalf("%d samples, values %v", len(trial.Curve), trial.Values)
	}
	for i, s := range trial.Curve {
		want := suggest.Sample{Step: int64(i + 1), Value: float64(samples - i - 1)}
		if i == 6 {
			want.Value = -3 // of two samples of a step the last counts
		}
		if s != want {
			t.Fatalf("sample %d is %+v, want %+v", i, s, want)
		}
	}
}

// What ask answers can be told: a trial with a number that no tell may have
// would be lost, and with it its result.
func TestNumbersThatAreAskedForCanBeTold(t *testing.T) {
	const last = `{"tell":[{"number":%d,"params":{"lr":0.01,"layers":1,"batch":8,"model":"3"},"state":"failed"}]}`
	const refused = `{"error":"trials have numbers up to 1000000000, so that %d more can be asked for; number them from 0"}`
	st := study(t, mixedSpace)
	session := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)})
	got := converse(t, session, fmt.Sprintf(last, 999_999_999), `{"ask":2}`, `{"ask":1}`, `{"ask":1}`, `{"ask":0}`, `{"tell":[{"number":1000000000,"state":"killed"}]}`)
	got[2] = got[2][:strings.Index(got[2]+",", ",")]
	want := []string{
		`{"ok":true}`, fmt.Sprintf(refused, 1), `{"trials":[{"number":1000000000`, fmt.Sprintf(refused, 0),
		`{"trials":[],"exhausted":false}`, `{"ok":true}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
