package lines

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// maxNumber bounds the numbers of trials, and whatever counts trials.
const maxNumber = 1_000_000_000

// told is what a tell, or an entry of warm, says of a trial.
type told struct {
	where    string
	number   int
	numbered bool
	state    suggest.State
	// Of what was not given it is nil.
	values, constraints []float64
	curve               []suggest.Sample
	params              map[string]any
	meta                suggest.Meta
	resource            *float64
	duration            *float64
}

var states = []suggest.State{
	suggest.Succeeded, suggest.Failed, suggest.Pruned, suggest.Running, suggest.Killed, suggest.Unmeasured, suggest.Pending,
}

// readTold reads an entry, but for its end. objectives is how many values it
// must have.
func readTold(f *fields, objectives int) told {
	t := told{where: f.where}
	t.number, t.numbered = f.whole("number")
	var known bool
	if t.state, known = f.state(); known {
		t.values = f.values(t.state, objectives)
	} else {
		f.skip("values", "value")
	}
	t.constraints = f.numbers("constraints")
	t.curve = inSteps(items(f, "curve", "a pair of a whole number and a number: [step, value]", sampleOf))
	t.params = f.params()
	t.meta = f.meta()
	if t.resource = f.finite("resource"); t.resource != nil && *t.resource < 0 {
		f.fail("%s is %v; it must be at least 0", f.path("resource"), *t.resource)
	}
	if t.duration = f.finite("duration"); t.duration != nil && *t.duration < 0 {
		f.fail("%s is %v; it must be at least 0", f.path("duration"), *t.duration)
	}
	// What ask says for the user, so that its trials can be told as they came.
	f.skip("why", "fallback", "seed")
	return t
}

// state reads a state; known is false when it is none, which has been said.
func (f *fields) state() (state suggest.State, known bool) {
	word, ok := f.word("state")
	words := make([]string, len(states))
	for i, s := range states {
		if words[i] = s.String(); ok && words[i] == word {
			return s, true
		}
	}
	if ok {
		f.fail("%s is %s; it must be one of %s", f.path("state"), strconv.Quote(shorten(word)), strings.Join(words, ", "))
	}
	return suggest.Failed, false
}

// values reads values or value. Only a trial that succeeded or was pruned has
// some; one that failed may say NaN.
func (f *fields) values(state suggest.State, objectives int) []float64 {
	values := f.numbers("values")
	given := values != nil
	// A lone null is a number here: NaN.
	if v, ok := f.left["value"]; ok {
		if given {
			f.fail("%s has value and values; leave one out", f.where)
		}
		x, ok := numberOf(v)
		if !ok {
			f.fail("%s is %s; it must be %s", f.path("value"), describe(v), aNumber)
		}
		values, given = []float64{x}, true
	}
	f.skip("value")
	switch {
	case state != suggest.Succeeded && state != suggest.Pruned:
		if i := slices.IndexFunc(values, isFinite); i >= 0 {
			f.fail("%s has the value %v and the state %s, in which nothing is measured; leave values out or use succeeded or pruned", f.where, values[i], state)
		}
		return nil
	case state == suggest.Pruned && len(values) == 0:
		return nil
	case !given:
		f.fail("%s has no values; a trial that succeeded needs %s", f.where, plural(objectives, "value"))
	case len(values) != objectives:
		f.fail("%s has %s; it must have %d, one for each objective", f.where, plural(len(values), "value"), objectives)
	}
	return values
}

func sampleOf(v any) (suggest.Sample, bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return suggest.Sample{}, false
	}
	step, okStep := wholeOf(pair[0])
	value, okValue := numberOf(pair[1])
	return suggest.Sample{Step: step, Value: value}, okStep && okValue
}

// inSteps brings a curve in order of steps. Of several samples of one step the
// last counts. The curve is changed in place.
func inSteps(curve []suggest.Sample) []suggest.Sample {
	byStep := func(a, b suggest.Sample) int { return cmp.Compare(a.Step, b.Step) }
	if !slices.IsSortedFunc(curve, byStep) {
		slices.SortStableFunc(curve, byStep)
	}
	kept := curve[:0]
	for i, sample := range curve {
		if i+1 == len(curve) || curve[i+1].Step != sample.Step {
			kept = append(kept, sample)
		}
	}
	return kept
}

func (f *fields) params() map[string]any {
	params, _, _ := read(f, "params", "an object of names and values", as[map[string]any])
	return params
}

func (f *fields) meta() suggest.Meta {
	v, given := f.take("meta")
	entries, ok := v.(map[string]any)
	if given && !ok {
		f.fail("%s is %s; give back what ask answered", f.path("meta"), describe(v))
	}
	if entries == nil {
		return nil
	}
	meta := make(suggest.Meta, len(entries))
	for name, v := range entries {
		if meta[name], ok = v.(string); !ok {
			f.fail("%s holds something other than a string; give back what ask answered", f.path("meta"))
		}
	}
	return meta
}

// point finds the point that params stand for. inside is false when it is not
// in the space, and why says what is wrong.
func point(space suggest.Space, where string, params map[string]any) (p suggest.Point, inside bool, why error) {
	var assigned []suggest.Assignment
	for i := range space.Len() {
		name := space.At(i).Name()
		v, ok := params[name]
		if !ok {
			continue
		}
		text, ok := textOf(v)
		if !ok {
			return nil, false, fmt.Errorf("%s.%s is %s; it must be a number or a string", where, name, describe(v))
		}
		assigned = append(assigned, suggest.Assignment{Name: name, Value: text})
	}
	if err := onlyParameters(space, where, params); err != nil {
		return nil, false, err
	}
	p, ok := space.Parse(assigned)
	if ok {
		return p, true, nil
	}
	active := space.Active(p)
	for i, v := range p {
		name := space.At(i).Name()
		switch {
		case active[i] && !v.IsSet():
			return p, false, fmt.Errorf("%s has no %s; give it a value", where, name)
		case active[i] && !v.InSpace():
			return p, false, fmt.Errorf("%s.%s is %s, which the space does not allow; it must be %s", where, name, shorten(v.String()), space.At(i).Allowed())
		}
	}
	return p, false, fmt.Errorf("%s breaks a constraint of the space on its parameters; correct it or leave the trial out", where)
}

func onlyParameters(space suggest.Space, where string, params map[string]any) error {
	for _, name := range sortedKeys(params) {
		if _, ok := space.Index(name); !ok {
			return fmt.Errorf("%s has %s, which is no parameter of the space; correct or remove it", where, strconv.Quote(shorten(name)))
		}
	}
	return nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
