package trainer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
)

const (
	complete = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	failed   = `status.conditions.#(type=="Failed")#|#(status=="True")#`
)

func TestEvaluate(t *testing.T) {
	tests := map[string]struct {
		job              string
		success, failure string
		want             trainer.State
	}{
		"no status runs": {`{}`, complete, failed, trainer.State{Phase: trainer.Running}},
		"a condition that is False does not hold": {
			`{"status":{"conditions":[{"type":"Complete","status":"False"}]}}`, complete, failed, trainer.State{Phase: trainer.Running},
		},
		"both hold: failure wins": {
			`{"status":{"conditions":[{"type":"Complete","status":"True"},{"type":"Failed","status":"True","reason":"r","message":"m"}]}}`,
			complete, failed, trainer.State{Phase: trainer.Failed, Reason: "r", Message: "m"},
		},
		"an object holds": {
			`{"status":{"done":{"reason":"r"}}}`, "status.done", "status.bad", trainer.State{Phase: trainer.Succeeded, Reason: "r"},
		},
		"an empty object holds": {`{"status":{"done":{}}}`, "status.done", "status.bad", trainer.State{Phase: trainer.Succeeded}},
		"a list of scalars holds, without a reason": {
			`{"status":{"done":["x"]}}`, "status.done", "status.bad", trainer.State{Phase: trainer.Succeeded},
		},
		"an empty list, a word, true and a number do not hold": {
			`{"status":{"a":[],"b":"yes","c":true,"d":1}}`, "status.b", "status.a", trainer.State{Phase: trainer.Running},
		},
		"a text does not hold": {`{"status":{"c":"x"}}`, "status.c", "status.c", trainer.State{Phase: trainer.Running}},
		"spec.suspend is pending": {
			`{"spec":{"suspend":true}}`, complete, failed, trainer.State{Phase: trainer.Pending, Reason: "Suspended", Message: "the job is suspended"},
		},
		"since when it is suspended is told": {
			`{"spec":{"suspend":true},"status":{"conditions":[{"type":"Suspended","status":"True","reason":"JobSuspended","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
			complete, failed, trainer.State{Phase: trainer.Pending, Reason: "Suspended", Message: "the job is suspended", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		},
		"runPolicy.suspend is pending": {
			`{"spec":{"runPolicy":{"suspend":true}}}`, complete, failed, trainer.State{Phase: trainer.Pending, Reason: "Suspended", Message: "the job is suspended"},
		},
		"a suspended job that has failed has failed": {
			`{"spec":{"suspend":true},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`, complete, failed, trainer.State{Phase: trainer.Failed},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trainer.Evaluate(tc.job, tc.success, tc.failure)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEvaluateFaults(t *testing.T) {
	for name, tc := range map[string]struct{ job, success, failure, want string }{
		"a job that is not JSON":  {"{", complete, failed, "the job is not valid JSON"},
		"no success condition":    {"{}", "", failed, "successCondition: the expression is empty"},
		"broken failureCondition": {"{}", complete, "status.#(a", "failureCondition: the GJSON expression status.#(a is broken: ')' is missing at the end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trainer.Evaluate(tc.job, tc.success, tc.failure)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestCheckCondition(t *testing.T) {
	for expression, want := range map[string]string{
		complete:                                 "",
		`status.[@this].#(phase=="Succeeded")#`:  "",
		`status.conditions.#(type=="a)b\"(")#`:   "",
		`status.conditions|@reverse|0`:           "",
		`[status.a,status.b]|@flatten`:           "",
		`status.conditions.#(type%"*@x")#`:       "",
		`metadata.annotations.a\.b`:              "",
		" ":                                      "the expression is empty",
		`status.conditions.#(type=="Complete)#`:  "the quote at position 27 is not closed",
		`status.conditions.#(type=="Complete"#`:  "')' is missing at the end",
		`status.conditions.#type=="Complete")#`:  "')' at position 36 closes nothing",
		`status.[@this.#(phase=="x")#`:           "']' is missing at the end",
		`status.conditions|@revers|0`:            "there is no modifier @revers",
		`status.conditions|@reverse:{"a":1|0`:    "'}' is missing at the end",
		`status.conditions.#(a==[1)].#(b=="c")#`: "')' at position 26 closes nothing",
	} {
		err := trainer.CheckCondition(expression)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", expression, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %q in it", expression, err, want)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(`{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, complete)
	f.Add(`{"status":{"phase":"Error"}}`, `[status.[@this].#(phase=="Failed")#,status.[@this].#(phase=="Error")#]|@flatten`)
	f.Add(`[1,[2]]`, `#.#|@this:{"a":[`)
	f.Fuzz(func(t *testing.T, job, expression string) {
		state, err := trainer.Evaluate(job, expression, failed)
		if err == nil && state.Phase == "" {
			t.Errorf("no phase for %q over %q", expression, job)
		}
	})
}

// Otherwise a condition such as status.succeeded would never be satisfied, and the
// trial would run forever.
func TestNumbersAndBooleansAreConditions(t *testing.T) {
	for status, want := range map[string]trainer.Phase{
		`{"succeeded":1}`:    trainer.Succeeded,
		`{"succeeded":0}`:    trainer.Running,
		`{"succeeded":true}`: trainer.Succeeded,
		`{}`:                 trainer.Running,
	} {
		got, err := trainer.Evaluate(`{"status":`+status+`}`, "status.succeeded", "status.failed")
		if err != nil || got.Phase != want {
			t.Errorf("%s: %s, %v, want %s", status, got.Phase, err, want)
		}
	}
}
