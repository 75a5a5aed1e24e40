package lines_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
)

func TestAllFaultsOfASpaceFileAreSaid(t *testing.T) {
	const x, y = `{"name":"x","type":"double","min":0,"max":1}`, `{"name":"y","type":"int","min":1,"max":9}`
	cases := map[string]struct {
		space string
		want  []string // beginnings
	}{
		"one": {`{"parameters":[` + x + `],"budget":-1}`, []string{"budget is -1"}},
		"each parameter's": {`{"parameters":[{"name":"x","type":"float"},{"name":"y","type":"double","min":2,"max":1},3,{"name":1,"type":"int","min":0,"low":1,"high":2}]}`,
			[]string{`parameters[0].type is "float"`, "parameters[2] is 3", "parameters[3].name is 1", `parameters[3] has "high"`, `parameters[3] has "low"`, `parameter "y": min 2 is above`}},
		"of one parameter": {`{"parameters":[{"name":"x","type":"double","min":"a","max":"b"}]}`, []string{`parameter "x": min`, `parameter "x": max`}},
		"of all parts": {`{"parameters":[` + x + `,` + y + `],"objectives":[{"name":"l","type":"min"},"acc"],"budget":-1,"budjet":1,
			"constraints":["x <","x + z < 3",{"max":3}],"initial":[{"x":3,"y":1},{"x":1}],"warm":[{"study":"s","params":{"x":1,"q":2},"state":"failed"},{"params":{"x":1,"y":2},"state":"done","value":1}]}`,
			[]string{`objectives[0].type is "min"`, `objectives[1] is "acc"`, "budget is -1", `the object has "budjet"`,
				`constraints[0]: constraint "x <"`, "constraints[1]: \"x + z < 3\" names", "constraints[2].name is missing",
				"initial[0].x is 3", "initial[1] has no y",
				`warm[0].params has "q"`, `warm[1].state is "done"`, "warm[1].study is missing"}},
		"what speaks of parameters that are wrong is not judged": {`{"parameters":[{"name":"x","type":"float"}],"constraints":["x < 3","x <",[]],"initial":[{"x":9},7]}`,
			[]string{`parameters[0].type is "float"`, `constraints[1]: constraint "x <"`, "constraints[2] is a list", "initial[1] is 7"}},
		"of each constraint on parameters":       {`{"parameters":[` + x + `],"constraints":["x + 1","x"]}`, []string{`constraint "x + 1"`, `constraint "x"`}},
		"a list that is none is not missing too": {`{"parameters":{"x":1}}`, []string{"parameters is an object"}},
		"a warm trial has one count too many": {`{"parameters":[` + x + `],"constraints":["l < 1"],"warm":[
			{"study":"s","params":{"x":1},"state":"succeeded","value":1,"constraints":[]},{"study":"s","params":{"x":1},"state":"succeeded","value":1,"constraints":[1]}]}`,
			[]string{"warm[0] has 0 constraints; it must have 1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := lines.ReadStudy(strings.NewReader(c.space))
			var faults lines.SpaceFileError
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want a SpaceFileError", err)
			}
			got := strings.Split(err.Error(), "\n")
			begins := func(want, got string) bool { return strings.HasPrefix(got, want) || strings.HasPrefix(want, got) }
			if diff := cmp.Diff(c.want, got, cmp.Comparer(begins)); diff != "" || len(faults) != len(c.want) {
				t.Errorf("%d faults (-want +got):\n%s", len(faults), diff)
			}
		})
	}
}
