package lines_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
)

func TestRequestsThatAreWrong(t *testing.T) {
	cases := map[string]struct{ request, want string }{
		"no JSON":                     {`ask 3`, "no JSON: invalid character 'a'"},
		"half an object":              {`{"ask":3`, "no JSON: unexpected EOF"},
		"two objects":                 {`{"ask":1} {"ask":1}`, "more after the value, at byte 11"},
		"two objects after NaN":       {`{"x":NaN,"y":[-Infinity,"NaN"]} {}`, "more after the value, at byte 33"},
		"a comma too many after NaN":  {`{"x":[NaN,Infinity,],"y":NaN}`, "at byte 20"},
		"a list":                      {`[{"ask":1}]`, "a list of 1; it must be an object"},
		"a number":                    {`3`, "the line is 3; it must be an object"},
		"null":                        {`null`, "it must be an object"},
		"no request":                  {`{}`, "none or more than one"},
		"two requests":                {`{"ask":1,"tell":[]}`, "none or more than one"},
		"an unknown field":            {`{"ask":1,"asks":1}`, `"asks", which is unknown; remove it or use one of id, ask, tell, report`},
		"another case":                {`{"Ask":1}`, `"Ask", which is unknown`},
		"deep nesting":                {`{"ask":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "exceeded max depth"},
		"an id that is an object":     {`{"ask":1,"id":{}}`, "id is an object"},
		"ask a string":                {`{"ask":"3"}`, `ask is "3"; it must be a whole number from 0 to 10000`},
		"ask a fraction":              {`{"ask":1.5}`, "ask is 1.5"},
		"ask below zero":              {`{"ask":-1}`, "ask is -1"},
		"ask too many":                {`{"ask":10001}`, "ask is 10001"},
		"ask beyond a double":         {`{"ask":1e999}`, "ask is 1e999"},
		"ask a list":                  {`{"ask":[]}`, "ask is a list of 0"},
		"tell a number":               {`{"tell":3}`, "tell is 3; it must be an object"},
		"tell a list of numbers":      {`{"tell":[3]}`, "tell[0] is 3; it must be an object"},
		"no number":                   {`{"tell":[{"state":"failed"}]}`, "neither number nor params"},
		"an unknown number":           {`{"tell":[{"number":5,"state":"failed"}]}`, "no such trial"},
		"a number below zero":         {`{"tell":[{"number":-1,"state":"failed"}]}`, "tell[0].number is -1"},
		"a number too high":           {`{"tell":[{"number":1000000001,"params":{"x":1},"state":"failed"}]}`, "from 0 to 1000000000"},
		"a number that is a string":   {`{"tell":[{"number":"0","state":"failed"}]}`, `tell[0].number is "0"`},
		"no state":                    {`{"tell":[{"number":0,"values":[1]}]}`, `tell[0].state is ""; it must be one of succeeded, failed, pruned`},
		"an unknown state":            {`{"tell":[{"number":0,"state":"COMPLETE"}]}`, `tell[0].state is "COMPLETE"`},
		"a state that is a number":    {`{"tell":[{"number":0,"state":1}]}`, "tell[0].state is 1; it must be a string"},
		"no values":                   {`{"tell":[{"number":0,"state":"succeeded"}]}`, "needs 1 value"},
		"too many values":             {`{"tell":[{"number":0,"state":"succeeded","values":[1,2]}]}`, "has 2 values; it must have 1"},
		"no value in values":          {`{"tell":[{"number":0,"state":"succeeded","values":[]}]}`, "has 0 values"},
		"values that are a number":    {`{"tell":[{"number":0,"state":"succeeded","values":1}]}`, "tell[0].values is 1; it must be a list"},
		"a value that is a word":      {`{"tell":[{"number":0,"state":"succeeded","values":["good"]}]}`, `tell[0].values[0] is "good"; it must be a number, null`},
		"a value that is a list":      {`{"tell":[{"number":0,"state":"succeeded","value":[1]}]}`, "tell[0].value is a list of 1"},
		"value and values":            {`{"tell":[{"number":0,"state":"succeeded","value":1,"values":[1]}]}`, "leave one out"},
		"a value of a failed trial":   {`{"tell":[{"number":0,"state":"failed","values":[1]}]}`, "nothing is measured"},
		"constraints in a number":     {`{"tell":[{"number":0,"state":"succeeded","value":1,"constraints":3}]}`, "tell[0].constraints is 3"},
		"an unknown field of a trial": {`{"tell":[{"number":0,"state":"failed","score":1}]}`, `tell[0] has "score", which is unknown; remove it or use one of number, state, values, value, constraints, curve, params, meta, resource, duration, why, fallback, seed`},
		"a curve that is no list":     {`{"tell":[{"number":0,"state":"failed","curve":{}}]}`, "tell[0].curve is an object"},
		"a point that is no pair":     {`{"tell":[{"number":0,"state":"failed","curve":[[1,2],[3]]}]}`, "tell[0].curve[1] is a list of 1; it must be a pair"},
		"a step that is no number":    {`{"tell":[{"number":0,"state":"failed","curve":[["1",2]]}]}`, `curve[0] is a list of 2; it must be a pair`},
		"params that are a list":      {`{"tell":[{"number":9,"state":"failed","params":[1]}]}`, "tell[0].params is a list of 1"},
		"an unknown param":            {`{"tell":[{"state":"failed","params":{"x":1,"y":2}}]}`, `tell[0].params has "y", which is no parameter`},
		"a param out of range":        {`{"tell":[{"state":"failed","params":{"x":100}}]}`, "tell[0].params.x is 100, which the space does not allow; it must be from 0 to 99 in steps of 1"},
		"a param between the steps":   {`{"tell":[{"state":"failed","params":{"x":1.5}}]}`, "params.x is 1.5, which the space does not allow"},
		"a param that is a word":      {`{"tell":[{"state":"failed","params":{"x":"one"}}]}`, "params.x is one, which the space does not allow"},
		"a param that is a boolean":   {`{"tell":[{"state":"failed","params":{"x":true}}]}`, "params.x is true; it must be a number or a string"},
		"a param that is missing":     {`{"tell":[{"state":"failed","params":{}}]}`, "tell[0].params has no x; give it a value"},
		"a param that is null":        {`{"tell":[{"state":"failed","params":{"x":null}}]}`, "params.x is missing or null"},
		"params that break a rule":    {`{"tell":[{"state":"failed","params":{"x":13}}]}`, "breaks a constraint"},
		"a meta that is a list":       {`{"tell":[{"number":0,"state":"failed","meta":[1]}]}`, "meta is a list of 1; give back"},
		"a meta of numbers":           {`{"tell":[{"number":0,"state":"failed","meta":{"a":1}}]}`, "other than a string"},
		"a resource below zero":       {`{"tell":[{"number":0,"state":"failed","resource":-1}]}`, "at least 0"},
		"an infinite resource":        {`{"tell":[{"number":0,"state":"failed","resource":Infinity}]}`, `resource is "Infinity"; it must be a finite number`},
		"a report that is a list":     {`{"report":[1]}`, "report is a list of 1"},
		"a report without a trial":    {`{"report":{"step":1,"value":1}}`, "report.number is missing"},
		"a report of an unknown one":  {`{"report":{"number":7,"step":1,"value":1}}`, "no such trial"},
		"a report without a step":     {`{"report":{"number":0,"value":1}}`, "report.step is missing"},
		"a step between":              {`{"report":{"number":0,"step":1.5,"value":1}}`, "report.step is 1.5"},
		"a report without a value":    {`{"report":{"number":0,"step":1}}`, "report.value is missing"},
		"a report of a word":          {`{"report":{"number":0,"step":1,"value":"good"}}`, `report.value is "good"`},
		"more than a report":          {`{"report":{"number":0,"step":1,"value":1,"epoch":1}}`, `"epoch", which is unknown`},
		"a long word is shortened":    {`{"tell":[{"number":0,"state":"` + strings.Repeat("é", 1000) + `"}]}`, strings.Repeat("é", 60) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			st := study(t, `{"parameters":[{"name":"x","type":"int","min":0,"max":99}],"constraints":["x != 13"]}`)
			a := &scripted{answers: []answer{{proposals: []suggest.Proposal{{Point: point(t, st.Space, "x", "0")}}}, {}}}
			got := converse(t, lines.New(lines.Config{Study: st, Algorithm: a}), `{"ask":1}`, c.request, `{"ask":1}`)
			var problem struct{ Error string }
			if err := json.Unmarshal([]byte(got[1]), &problem); err != nil || !strings.Contains(problem.Error, c.want) {
				t.Errorf("got %s\nwant an error with %s", got[1], c.want)
			}
			if len(problem.Error) > 500 {
				t.Errorf("the error has %d bytes", len(problem.Error))
			}
			if diff := cmp.Diff([]string{"0 pending [{x 0}]"}, seen(a.asked[1])); diff != "" {
				t.Errorf("the study was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsEchoTheID(t *testing.T) {
	st := study(t, oneSpace)
	got := converse(t, lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)}), `{"id":"a","tell":3}`, `{"id":5,"what":1}`)
	for i, want := range []string{`,"id":"a"}`, `,"id":5}`} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("got %s, want it to end with %s", got[i], want)
		}
	}
}

func TestSpaceFilesThatAreWrong(t *testing.T) {
	const x = `{"name":"x","type":"double","min":0,"max":1}`
	cases := map[string]struct{ space, want string }{
		"nothing":                      {``, "there is nothing"},
		"no JSON":                      {"{\n \"parameters\": [\n  {,\n", "invalid character ',' looking for beginning of object key string at line 3, byte 4"},
		"a list":                       {`[]`, "must be an object"},
		"no parameters":                {`{}`, "list what is to be searched"},
		"an unknown field":             {`{"parameters":[` + x + `],"objective":"loss"}`, `"objective", which is unknown; remove it or use one of parameters, objectives`},
		"an unknown field below":       {`{"parameters":[{"name":"x","kind":"double"}]}`, `parameters[0].type is ""`},
		"a field of another kind":      {`{"parameters":[{"name":"x","type":"double","min":0,"max":1,"low":3}]}`, `parameters[0] has "low", which is unknown; remove it or use one of name, type, min`},
		"a type of another program":    {`{"parameters":[{"name":"x","type":"float"}]}`, `"float"; it must be one of double, int, discrete, categorical`},
		"a name that is a number":      {`{"parameters":[{"name":1,"type":"double"}]}`, "parameters[0].name is 1; it must be a string"},
		"a bound that is a list":       {`{"parameters":[{"name":"x","type":"double","min":[0],"max":1}]}`, "parameters[0].min is a list of 1"},
		"a bound that is no number":    {`{"parameters":[{"name":"x","type":"double","min":"low","max":1}]}`, `"low" is not a finite number`},
		"a boolean in a list":          {`{"parameters":[{"name":"x","type":"categorical","list":[true]}]}`, "parameters[0].list[0] is true"},
		"bounds that cross":            {`{"parameters":[{"name":"x","type":"double","min":2,"max":1}]}`, "swap them"},
		"a condition that is a word":   {`{"parameters":[{"name":"x","type":"double","min":0,"max":1,"when":"y"}]}`, "parameters[0].when is"},
		"a condition on no parameter":  {`{"parameters":[{"name":"x","type":"double","min":0,"max":1,"when":{"parameter":"y","in":["a"]}}]}`, `"y", which is no parameter`},
		"a direction that is unknown":  {`{"parameters":[` + x + `],"objectives":[{"name":"l","type":"min"}]}`, "must be minimize or maximize"},
		"objectives that are words":    {`{"parameters":[` + x + `],"objectives":["loss"]}`, "objectives[0] is \"loss\"; it must be an object"},
		"a budget below zero":          {`{"parameters":[` + x + `],"budget":-1}`, "budget is -1"},
		"a wrong constraint":           {`{"parameters":[` + x + `],"constraints":["x <"]}`, `constraints[0]: constraint "x <", character 4`},
		"a constraint on both":         {`{"parameters":[` + x + `],"constraints":["x + y < 3"]}`, "names the parameter x and also y"},
		"a constraint without a name":  {`{"parameters":[` + x + `],"constraints":[{"max":3}]}`, "name what is measured"},
		"a constraint that is a list":  {`{"parameters":[` + x + `],"constraints":[[]]}`, "or a string such as"},
		"a metric in arithmetic":       {`{"parameters":[` + x + `],"constraints":["2 * latency < 3"]}`, "compared with a number"},
		"constraint bounds that cross": {`{"parameters":[` + x + `],"constraints":[{"name":"l","min":3,"max":1}]}`, "swap"},
		"an initial point outside":     {`{"parameters":[` + x + `],"initial":[{"x":0.5},{"x":3}]}`, "initial[1].x is 3"},
		"an initial point of words":    {`{"parameters":[` + x + `],"initial":["x"]}`, "initial[0] is"},
		"an initial point, incomplete": {`{"parameters":[` + x + `],"initial":[{}]}`, "initial[0] has no x"},
		"a warm trial that runs":       {`{"parameters":[` + x + `],"warm":[{"study":"s","params":{"x":1},"state":"running"}]}`, "only trials that have ended"},
		"a warm trial, misspelled":     {`{"parameters":[` + x + `],"warm":[{"study":"s","params":{"y":1},"state":"failed"}]}`, `warm[0].params has "y"`},
		"a warm trial without values":  {`{"parameters":[` + x + `],"warm":[{"study":"s","params":{"x":1},"state":"succeeded"}]}`, "needs 1 value"},
		"a warm trial of no study":     {`{"parameters":[` + x + `],"warm":[{"params":{"x":1},"state":"failed"}]}`, "warm[0].study is missing; name the study"},
		"warm constraints":             {`{"parameters":[` + x + `],"constraints":["l<1"],"warm":[{"study":"s","params":{"x":1},"state":"succeeded","value":1,"constraints":[]}]}`, "warm[0] has 0 constraints; it must have 1, in the order l"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := lines.ReadStudy(strings.NewReader(c.space)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant an error with %s", err, c.want)
			}
		})
	}
}

func TestSpaceFile(t *testing.T) {
	got := study(t, `{"parameters":[
		{"name":"x","type":"double","min":0,"max":1},
		{"name":"y","type":"double","min":0,"max":1},
		{"name":"c","type":"categorical","list":["a",2]},
		{"name":"z","type":"int","min":1,"max":9,"when":{"parameter":"c","in":[2]}}],
		"objectives":[{"name":"loss","goal":0.5},{"name":"size","type":"maximize"}],
		"constraints":["latency <= 100","x + y <= 1",{"name":"memory","min":1,"max":2},{"name":"slack"}],
		"budget":100,"parallel":8,
		"initial":[{"x":0.25,"y":0.5,"c":2,"z":3},{"x":0,"y":1,"c":"a","z":3}],
		"warm":[{"study":"old","params":{"x":7,"y":0.5,"c":"b","z":1},"state":"succeeded","values":[1,NaN],"constraints":[1,2,3],"meta":{"k":"v"},"number":5},
			{"study":"older","params":{"x":1,"y":0,"c":"a"},"state":"failed"}]}`)
	bound := func(x float64) *float64 { return &x }
	want := suggest.Study{
		Objectives:  []suggest.Objective{{Name: "loss", Direction: suggest.Minimize, Goal: bound(0.5)}, {Name: "size", Direction: suggest.Maximize}},
		Constraints: []suggest.Constraint{{Name: "latency", Max: bound(100)}, {Name: "memory", Min: bound(1), Max: bound(2)}, {Name: "slack"}},
		Budget:      100, Parallel: 8, Seed: 1,
		Initial: []suggest.Point{
			point(t, got.Space, "x", "0.25", "y", "0.5", "c", "2", "z", "3"),
			point(t, got.Space, "x", "0", "y", "1", "c", "a"),
		},
	}
	warm := seen(suggest.Study{Space: got.Space, Trials: got.Warm})
	wantWarm := []string{
		"5 succeeded [{x 7} {y 0.5} {c b}] values [1 NaN] constraints [1 2 3] resource 0 meta map[k:v study:old]",
		"1 failed [{x 1} {y 0} {c a}] resource 0 meta map[study:older]",
	}
	if diff := cmp.Diff(wantWarm, warm); diff != "" {
		t.Errorf("warm (-want +got):\n%s", diff)
	}
	space := got.Space
	got.Space, got.Warm = suggest.Space{}, nil
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(suggest.Value{}), cmp.Comparer(func(a, b suggest.Space) bool { return a.Len() == b.Len() })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !space.Constrained() || space.Len() != 4 || !space.Conditional() {
		t.Error("the constraint on the parameters, a parameter or a condition is lost")
	}
}
