package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const space = `{"parameters":[
 {"name":"model","type":"categorical","list":["svm","mlp"]},
 {"name":"layers","type":"int","min":1,"max":3,"when":{"parameter":"model","in":["mlp"]}},
 {"name":"width","type":"int","min":4,"max":8,"step":4,"when":{"parameter":"layers","in":[2,3]}},
 {"name":"lr","type":"double","min":0.001,"max":1,"distribution":"logUniform"},
 {"name":"batch","type":"int","min":16,"max":256,"distribution":"logUniform"},
 {"name":"drop","type":"discrete","list":[0.5,0,0.1]},
 {"name":"momentum","type":"double","min":0,"max":0.9,"step":0.3}]}`

// talk sends requests and returns the answers.
func talk(t *testing.T, name string, requests ...string) []answer {
	t.Helper()
	var out strings.Builder
	if err := serve(name, strings.NewReader(strings.Join(requests, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	var answers []answer
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		answers = append(answers, a)
	}
	return answers
}

func opened() string {
	return strings.ReplaceAll(`{"open":{"seed":3,"space":`+space+`}}`, "\n", "")
}

func TestSuggestionsAreInTheSpace(t *testing.T) {
	for _, name := range []string{"goptuna-tpe", "goptuna-cmaes"} {
		t.Run(name, func(t *testing.T) {
			answers := talk(t, name, opened(), `{"ask":200}`)
			if len(answers) != 2 || len(answers[1].Trials) != 200 {
				t.Fatalf("%+v", answers)
			}
			for _, trial := range answers[1].Trials {
				p := trial.Params
				_, layers := p["layers"]
				_, width := p["width"]
				number, _ := p["layers"].(float64)
				lr, _ := p["lr"].(float64)
				batch, _ := p["batch"].(float64)
				drop, ok := p["drop"].(float64)
				if layers != (p["model"] == "mlp") || width != (number >= 2) || lr < 0.001 || lr > 1 ||
					batch < 16 || batch > 256 || batch != float64(int(batch)) || !ok || drop != 0 && drop != 0.1 && drop != 0.5 {
					t.Fatalf("%v", p)
				}
			}
		})
	}
}

func TestTellAndErrors(t *testing.T) {
	answers := talk(t, "goptuna-tpe",
		`{"ask":1}`, opened(), `{"ask":2}`,
		`{"tell":[{"number":0,"state":"succeeded","values":[0.5]},{"number":1,"state":"failed"}]}`,
		`{"tell":[{"number":77,"state":"failed"}]}`, `{`, `{"ask":1}`)
	if len(answers) != 7 {
		t.Fatalf("%d answers", len(answers))
	}
	for i, bad := range map[int]bool{0: true, 1: false, 2: false, 3: false, 4: true, 5: true, 6: false} {
		if (answers[i].Error != "") != bad {
			t.Errorf("answer %d: %+v", i, answers[i])
		}
	}
	if got := talk(t, "goptuna-nothing", opened()); got[0].Error == "" {
		t.Error("a player that does not exist was opened")
	}
}
