package lines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const mixedSpace = `{"parameters":[
	{"name":"lr","type":"double","min":0.001,"max":0.1,"distribution":"logUniform"},
	{"name":"layers","type":"int","min":1,"max":"5"},
	{"name":"batch","type":"discrete","list":[64,"1.6e1",0.50,"+8","007"]},
	{"name":"model","type":"categorical","list":["svm","a \"tree\" <b>",3]},
	{"name":"C","type":"double","min":0,"max":1,"step":0.1,"when":{"parameter":"model","in":["svm"]}}
]}`

func study(t testing.TB, space string) suggest.Study {
	t.Helper()
	s, err := lines.ReadStudy(strings.NewReader(space))
	if err != nil {
		t.Fatal(err)
	}
	s.Seed = 1
	return s
}

func build(t testing.TB, name string, space suggest.Space) suggest.Algorithm {
	t.Helper()
	r, ok := algorithm.Get(name)
	if !ok {
		t.Fatalf("no algorithm %q", name)
	}
	a, err := r.New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// scripted proposes what it is told to and keeps what it was asked.
type scripted struct {
	answers []answer
	asked   []suggest.Study
}

type answer struct {
	proposals []suggest.Proposal
	err       error
	panics    any
}

func (a *scripted) Suggest(ctx context.Context, s suggest.Study, _ int) ([]suggest.Proposal, error) {
	s.Trials = append([]*suggest.Trial(nil), s.Trials...)
	a.asked = append(a.asked, s)
	next := a.answers[0]
	a.answers = a.answers[1:]
	if next.panics != nil {
		panic(next.panics)
	}
	if errors.Is(next.err, context.DeadlineExceeded) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return next.proposals, next.err
}

// converse gives the answers to the lines of a request.
func converse(t testing.TB, s *lines.Session, requests ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Serve(t.Context(), strings.NewReader(strings.Join(requests, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// point of a space from name, value, name, value ...
func point(t testing.TB, s suggest.Space, pairs ...string) suggest.Point {
	t.Helper()
	var assigned []suggest.Assignment
	for i := 0; i < len(pairs); i += 2 {
		assigned = append(assigned, suggest.Assignment{Name: pairs[i], Value: pairs[i+1]})
	}
	p, ok := s.Parse(assigned)
	if !ok {
		t.Fatalf("%v is not in the space", pairs)
	}
	return p
}

func TestAskWritesTheTrials(t *testing.T) {
	st := study(t, mixedSpace)
	tree := point(t, st.Space, "lr", "0.01", "layers", "3", "batch", "1.6e1", "model", `a "tree" <b>`)
	svm := point(t, st.Space, "lr", "1e-3", "layers", "1", "batch", "8", "model", "svm", "C", "0.3")
	three := point(t, st.Space, "lr", "0.1", "layers", "5", "batch", "7", "model", "3")
	half := point(t, st.Space, "lr", "0.1", "layers", "5", "batch", "0.5", "model", "3")
	a := &scripted{answers: []answer{
		{proposals: []suggest.Proposal{{Point: tree}, {Point: svm}}},
		{proposals: []suggest.Proposal{{
			Point: three, Meta: suggest.Meta{"b": "2", "a": "\n"}, Resource: 2.5, Why: `"why" <now>`, Fallback: "deadline",
		}}},
		{proposals: []suggest.Proposal{{Point: half}}},
		{},
		{err: suggest.ErrExhausted},
		{err: errors.New("the study makes no sense")},
	}}
	got := converse(t, lines.New(lines.Config{Study: st, Algorithm: a}),
		`{"ask":2}`, `{"ask":1,"id":7}`, ` { "id" : "x\ny", "ask" : 1.0 } `+"\r", `{"ask":3}`, `{"ask":1}`, `{"ask":1,"id":1e2}`)
	want := []string{
		`{"trials":[{"number":0,"params":{"lr":0.01,"layers":3,"batch":1.6e1,"model":"a \"tree\" <b>"}},` +
			`{"number":1,"params":{"lr":0.001,"layers":1,"batch":8,"model":"svm","C":0.3}}],"exhausted":false}`,
		`{"trials":[{"number":2,"params":{"lr":0.1,"layers":5,"batch":7,"model":"3"},"resource":2.5,` +
			`"meta":{"a":"\n","b":"2"},"why":"\"why\" <now>","fallback":"deadline"}],"exhausted":false,"id":7}`,
		`{"trials":[{"number":3,"params":{"lr":0.1,"layers":5,"batch":0.50,"model":"3"}}],"exhausted":false,"id":"x\ny"}`,
		`{"trials":[],"exhausted":false}`,
		`{"trials":[],"exhausted":true}`,
		`{"error":"the study makes no sense","id":1e2}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range got {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// That the search is over comes with the last trials, not one question later.
func TestTheLastTrialsAreSaidToBe(t *testing.T) {
	const four = `{"parameters":[{"name":"x","type":"int","min":1,"max":4}]}`
	exhausted := func(asks ...string) (out []bool) {
		r, _ := algorithm.Get("random")
		st := study(t, four)
		a, err := r.New(st.Space, nil)
		if err != nil {
			t.Fatal(err)
		}
		trials := 0
		for _, line := range converse(t, lines.New(lines.Config{Study: st, Algorithm: a}), asks...) {
			var answer struct {
				Trials    []any
				Exhausted bool
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatal(err)
			}
			trials, out = trials+len(answer.Trials), append(out, answer.Exhausted)
		}
		if trials != 4 {
			t.Errorf("%d trials of 4 points", trials)
		}
		return out
	}
	one := `{"ask":1}`
	if diff := cmp.Diff([]bool{false, false, false, true, true}, exhausted(one, one, one, one, one)); diff != "" {
		t.Errorf("one by one: %s", diff)
	}
	if diff := cmp.Diff([]bool{false, true}, exhausted(`{"ask":3}`, `{"ask":3}`)); diff != "" {
		t.Errorf("fewer than asked: %s", diff)
	}
}

// atStep stops trials from a step on.
type atStep int64

func (step atStep) Stop(s suggest.Study, t *suggest.Trial) (bool, string) {
	if step < 0 {
		panic("on purpose")
	}
	last := t.Curve[len(t.Curve)-1]
	return last.Step >= int64(step), fmt.Sprintf("trial %d of %d is %s at %v", t.Number, len(s.Trials), t.State, last.Value)
}

func TestReportAsksTheStopper(t *testing.T) {
	got := converse(t, lines.New(lines.Config{Study: study(t, oneSpace), Algorithm: build(t, "random", study(t, oneSpace).Space), Stopper: atStep(2)}),
		`{"ask":2}`, `{"report":{"number":1,"step":1,"value":0.5}}`, `{"report":{"number":1,"step":2.0,"value":NaN},"id":1}`,
		`{"tell":{"number":1,"state":"pruned"}}`, `{"report":{"number":1,"step":3,"value":1}}`)
	want := []string{
		`{"stop":false}`, `{"stop":true,"why":"trial 1 of 2 is running at NaN","id":1}`, `{"ok":true}`,
		`{"error":"trial 1 has ended (pruned); report only what runs"}`,
	}
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMistakesOfAlgorithmsDoNotEndTheSession(t *testing.T) {
	st := study(t, oneSpace)
	p := point(t, st.Space, "x", "3")
	a := &scripted{answers: []answer{{panics: "index out of range"}, {proposals: []suggest.Proposal{{Point: p}}}, {err: context.DeadlineExceeded}}}
	var diagnostics bytes.Buffer
	got := converse(t, lines.New(lines.Config{Study: st, Algorithm: a, Stopper: atStep(-1), Deadline: 1, Diagnostics: &diagnostics}),
		`{"ask":1}`, `{"ask":1}`, `{"report":{"number":0,"step":2,"value":1}}`, `{"ask":1}`)
	want := []string{
		`{"error":"the algorithm failed (index out of range): this is a mistake in vernier, please report it; the study goes on"}`,
		`{"trials":[{"number":0,"params":{"x":3}}],"exhausted":false}`,
		`{"error":"the stopping rule failed (on purpose): this is a mistake in vernier, please report it; the study goes on"}`,
		`{"error":"the algorithm has no answer after 1ns; allow it more time, or use another algorithm"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(diagnostics.String(), "scripted") {
		t.Errorf("no stack in %q", diagnostics.String())
	}
}

// constant proposes one point for ever.
type constant struct{ point suggest.Point }

func (c constant) Suggest(_ context.Context, _ suggest.Study, n int) ([]suggest.Proposal, error) {
	proposals := make([]suggest.Proposal, n)
	for i := range proposals {
		proposals[i].Point = c.point
	}
	return proposals, nil
}
