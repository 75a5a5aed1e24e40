package trainer

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Phase of a job.
type Phase string

// The phases of a job.
const (
	// Pending: the job exists but is suspended, for instance by a queue.
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// State is a job's phase, with the reason and message of the job's own condition if
// it has one.
type State struct {
	Phase           Phase
	Reason, Message string
	// Since is when a job was suspended; zero if it does not say.
	Since time.Time
}

// Evaluate reads the state of a job (JSON) with two GJSON expressions over the whole
// object. As in Katib, an expression is satisfied if its result is an object or a
// list that is not empty; here also if it is true or a number other than 0. Failure
// takes precedence over success. The first object of the result gives the reason and
// message. If neither is satisfied, the job is running, unless it is suspended.
func Evaluate(job, successCondition, failureCondition string) (State, error) {
	if !gjson.Valid(job) {
		return State{}, fmt.Errorf("read the job's state: the job is not valid JSON")
	}
	for _, c := range []struct {
		name, expression string
		phase            Phase
	}{
		{"failureCondition", failureCondition, Failed},
		{"successCondition", successCondition, Succeeded},
	} {
		if err := CheckCondition(c.expression); err != nil {
			return State{}, fmt.Errorf("%s: %w", c.name, err)
		}
		if result := gjson.Get(job, c.expression); holds(result) {
			return stateOf(c.phase, result), nil
		}
	}
	if reason, ok := suspended(job); ok {
		since := gjson.Get(job, isSuspended+"|lastTransitionTime").Time()
		return State{Phase: Pending, Reason: reason, Message: "the job is suspended", Since: since}, nil
	}
	return State{Phase: Running}, nil
}

// holds treats a boolean or a number, such as status.succeeded, as C does.
func holds(r gjson.Result) bool {
	return r.IsObject() || r.IsArray() && len(r.Array()) > 0 || r.Type == gjson.True || r.Type == gjson.Number && r.Num != 0
}

func stateOf(p Phase, r gjson.Result) State {
	if r.IsArray() {
		r = r.Array()[0]
	}
	s := State{Phase: p}
	if r.IsObject() {
		s.Reason, s.Message = r.Get("reason").String(), r.Get("message").String()
	}
	return s
}

const isSuspended = `status.conditions.#(type=="Suspended")#|#(status=="True")#|0`

// suspended looks for the suspend field of Jobs, JobSets, TrainJobs and the training
// operator's kinds.
func suspended(job string) (string, bool) {
	for _, path := range []string{"spec.suspend", "spec.runPolicy.suspend"} {
		if gjson.Get(job, path).Type == gjson.True {
			return "Suspended", true
		}
	}
	c := gjson.Get(job, isSuspended)
	if !c.IsObject() {
		return "", false
	}
	if reason := c.Get("reason").String(); reason != "" {
		return reason, true
	}
	return "Suspended", true
}

// CheckCondition rejects expressions that cannot be meant as GJSON. GJSON itself has
// no errors: a broken expression silently finds nothing, and the trial would run
// forever.
func CheckCondition(expression string) error {
	if strings.TrimSpace(expression) == "" {
		return fmt.Errorf(`the expression is empty: give a GJSON expression such as status.conditions.#(type=="Complete")#|#(status=="True")#`)
	}
	if err := balanced(expression); err != nil {
		return fmt.Errorf("the GJSON expression %s is broken: %w", expression, err)
	}
	return nil
}

func balanced(s string) error {
	var open []byte
	closing := map[byte]byte{'(': ')', '[': ']', '{': '}'}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
		case '"':
			end := quoteEnd(s, i)
			if end < 0 {
				return fmt.Errorf("the quote at position %d is not closed", i+1)
			}
			i = end
		case '(', '[', '{':
			open = append(open, closing[c])
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return fmt.Errorf("%q at position %d closes nothing", c, i+1)
			}
			open = open[:len(open)-1]
		case '@':
			if name := modifier(s, i); name != "" && !gjson.ModifierExists(name, nil) {
				return fmt.Errorf("there is no modifier @%s", name)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q is missing at the end", open[len(open)-1])
	}
	return nil
}

func quoteEnd(s string, from int) int {
	for i := from + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// modifier returns the name after the @ at position i if GJSON would read a modifier
// there: at the start of a path or of a part of one.
func modifier(s string, i int) string {
	if i > 0 && !strings.ContainsRune(".|[{,:", rune(s[i-1])) {
		return ""
	}
	rest := s[i+1:]
	if end := strings.IndexAny(rest, ".|:,]}#()\""); end >= 0 {
		rest = rest[:end]
	}
	return rest
}
