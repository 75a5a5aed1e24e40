package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// Replayed is a trial whose proposal was derived again.
type Replayed struct {
	Trial *v1beta1.Trial
	// Asked is nil where nothing was recorded.
	Asked *Asked
	// Reason why it cannot be compared; empty when it was.
	Reason string
	// Differences between what was proposed and what is proposed now, in words.
	Differences []string
}

// Replay asks the algorithm of an experiment, which has its defaults, for each of its
// trials again, in order of number, with what it knew then. Curves are read where a rule
// stops trials early. A trial is not compared where what was known then is not known
// exactly any more: it is no difference that results were deleted since.
func Replay(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial, earlier []Earlier, scan Scan, tell func(Replayed)) error {
	s, err := New(exp)
	switch {
	case err != nil:
		return err
	case s.outside:
		return fmt.Errorf("the algorithm %s is a service: what it proposed cannot be derived here", exp.Spec.Algorithm.AlgorithmName)
	}
	s.Update(trials)
	s.Warm(earlier)
	if s.StopsEarly() && scan != nil {
		if err := s.ReadCurves(ctx, scan); err != nil {
			return err
		}
	}
	r := replay{Study: s, open: make([]known, len(s.trials.entries))}
	for i, e := range s.trials.entries {
		o := open(e.trial)
		r.open[i] = known{o, printOf(o)}
	}
	for _, t := range trials {
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(r.one(ctx, t))
	}
	return ctx.Err()
}

// replay asks again.
type replay struct {
	*Study
	open []known // the trials as they were before they ended

	last   string // the question that was asked last
	answer []suggest.Proposal
	failed error
}

type known struct {
	trial *suggest.Trial
	print uint64
}

// notComparable is why a trial cannot be compared.
type notComparable string

func (n notComparable) Error() string { return string(n) }

func (r *replay) one(ctx context.Context, t *v1beta1.Trial) Replayed {
	out := Replayed{Trial: t}
	number, ok := t.Number()
	text := t.Annotations[v1beta1.AnnotationAsked]
	switch {
	case !ok:
		out.Reason = "it was made by hand"
		return out
	case text == "":
		out.Reason = "what the algorithm was asked is not recorded: it was made by hand, ran elsewhere, or is older than this record"
		return out
	}
	out.Asked = &Asked{}
	if err := json.Unmarshal([]byte(text), out.Asked); err != nil {
		out.Asked, out.Reason = nil, fmt.Sprintf("its annotation %s cannot be read: %v", v1beta1.AnnotationAsked, err)
		return out
	}
	if text != r.last {
		r.last = text
		r.answer, r.failed = r.ask(ctx, out.Asked)
	}
	var not notComparable
	switch {
	case errors.As(r.failed, &not):
		out.Reason = not.Error()
	case r.failed != nil:
		out.Differences = []string{"now the algorithm says: " + r.failed.Error()}
	default:
		out.Differences = r.compare(t, number-out.Asked.First)
	}
	return out
}

// ask is the answer to a question, with what was known then.
func (r *replay) ask(ctx context.Context, a *Asked) ([]suggest.Proposal, error) {
	switch spec := r.trials.spec; {
	case a.Algorithm != spec.Algorithm.AlgorithmName:
		return nil, notComparable("its algorithm was " + a.Algorithm + ", and the experiment's is another one now")
	case a.Seed != r.base.Seed:
		return nil, notComparable(fmt.Sprintf("the seed was %d, and the experiment's is %d now", a.Seed, r.base.Seed))
	case a.Late:
		return nil, notComparable("the algorithm was short of time, so that its answer depended on the machine")
	case a.Points < 0 || a.Points > len(spec.InitialTrials):
		return nil, notComparable("points were removed from spec.initialTrials since")
	}
	q := r.base
	q.Budget, q.Parallel = a.Budget, a.Parallel
	q.Initial, q.Queued = r.first(a.Points)
	trials, print, err := r.knownThen(a)
	if err != nil {
		return nil, err
	}
	if hexadecimal(print+r.print(a.Points)+r.learned) != a.Known {
		why := "what was known then has changed since: results of trials before it, points in spec.initialTrials, settings, or the experiments of warmStartFrom"
		if r.StopsEarly() {
			why += ", or curves, which are read from the store"
		}
		return nil, notComparable(why)
	}
	q.Trials = trials
	return r.algorithm.Suggest(ctx, q, a.Wanted)
}

// knownThen are the trials as they were when a was asked.
func (r *replay) knownThen(a *Asked) (trials []*suggest.Trial, print uint64, err error) {
	running, err := readNumbers(a.Open)
	if err != nil {
		return nil, 0, notComparable(err.Error())
	}
	gone, err := readNumbers(a.Gone)
	if err != nil {
		return nil, 0, notComparable(err.Error())
	}
	next := 0
	for i, e := range r.trials.entries {
		n := e.trial.Number
		if n >= a.First {
			break
		}
		if gone.has(n) {
			continue
		}
		for ; next < n; next++ {
			if !gone.has(next) {
				return nil, 0, notComparable(fmt.Sprintf("trial %d was deleted since", next))
			}
		}
		next = n + 1
		k := known{e.trial, e.print}
		if running.has(n) {
			k = r.open[i]
		} else if !e.trial.State.Finished() {
			return nil, 0, notComparable(fmt.Sprintf("trial %d had ended then, and has not now", n))
		}
		trials, print = append(trials, k.trial), print+k.print
	}
	for ; next < a.First; next++ {
		if !gone.has(next) {
			return nil, 0, notComparable(fmt.Sprintf("trial %d was deleted since", next))
		}
	}
	return trials, print, nil
}

// compare says how the trial differs from the answer at a place.
func (r *replay) compare(t *v1beta1.Trial, at int) (differences []string) {
	if at < 0 || at >= len(r.answer) {
		return []string{fmt.Sprintf("now the algorithm proposes %d trials, and this was number %d of its answer", len(r.answer), at+1)}
	}
	p := r.answer[at]
	now := r.codec.Assignments(p.Point)
	value := func(name string) string {
		if i := slices.IndexFunc(t.Spec.ParameterAssignments, func(a v1beta1.ParameterAssignment) bool { return a.Name == name }); i >= 0 {
			return t.Spec.ParameterAssignments[i].Value
		}
		return "not set"
	}
	for _, a := range now {
		if was := value(a.Name); was != a.Value {
			differences = append(differences, fmt.Sprintf("%s was %s, now %s", a.Name, was, a.Value))
		}
	}
	for _, a := range t.Spec.ParameterAssignments {
		if !slices.ContainsFunc(now, func(b suggest.Assignment) bool { return a.Name == b.Name }) {
			differences = append(differences, fmt.Sprintf("%s was %s, now not set", a.Name, a.Value))
		}
	}
	number, _ := t.Number() // it has one
	was, is := r.trials.translate(t, number), &suggest.Trial{Meta: p.Meta, Resource: p.Resource}
	if was.Resource != is.Resource {
		differences = append(differences, fmt.Sprintf("the resource was %v, now %v", was.Resource, is.Resource))
	}
	for _, key := range keysOf(was.Meta, is.Meta) {
		if was.Meta[key] != is.Meta[key] {
			differences = append(differences, fmt.Sprintf("the algorithm's own %q was %q, now %q", key, was.Meta[key], is.Meta[key]))
		}
	}
	return differences
}

func keysOf(all ...suggest.Meta) (keys []string) {
	for _, m := range all {
		for key := range m {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
