package study

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// history is an experiment's trials as search sees them. A trial is translated
// when its object is first seen, and again when the object has changed, so that
// one that stays the same stays the same *suggest.Trial.
type history struct {
	spec    *v1beta1.ExperimentSpec
	codec   codec                         // nil: points are not needed
	assumed []v1beta1.ParameterAssignment // of parameters that a trial has no value of
	entries []entry                       // in order of number
	current []*suggest.Trial
	samples int // of all curves

	// finished is what an experiment that is learned from is worth, nil when it has
	// changed since; outside of its trials lie outside of the space.
	finished []*suggest.Trial
	outside  int
	learned  uint64 // a hash of finished
}

// entry is a trial at one version of its object.
type entry struct {
	uid     types.UID
	version string
	object  *v1beta1.Trial
	trial   *suggest.Trial
	print   uint64 // of trial
	curve   bool   // trial has its whole curve
	stepped bool   // whose places are steps
	first   int64  // points of the first step
	beyond  bool   // it has reported of a second step
}

// update takes in the trials, in order of number, and says whether anything has
// changed. Trials without a number were made by hand and are left out, as are
// those that repeat a number. Objects are not changed in place, so those that are
// the same as the last time, which most are, are not looked at.
func (h *history) update(objects []*v1beta1.Trial) (changed bool) {
	same := 0
	for same < min(len(objects), len(h.entries)) && h.entries[same].object == objects[same] {
		same++
	}
	end := 0 // of those that are the same
	for end < min(len(objects), len(h.entries))-same && h.entries[len(h.entries)-1-end].object == objects[len(objects)-1-end] {
		end++
	}
	if same == len(objects) && same == len(h.entries) {
		return false
	}
	last := -1
	if same > 0 {
		last = h.entries[same-1].trial.Number
	}
	rest := len(h.entries) - end
	between, changed := h.merge(h.entries[same:rest], objects[same:len(objects)-end], last)
	if n := len(between); end > 0 && n > 0 && between[n-1].trial.Number >= h.entries[rest].trial.Number { // one that repeats a number
		rest = len(h.entries)
		between, changed = h.merge(h.entries[same:], objects[same:], last)
	}
	h.entries = slices.Replace(h.entries, same, rest, between...)
	if changed {
		h.refresh()
	}
	return changed
}

// merge is what becomes of some entries, that come after the number last, with the
// objects that there are now.
func (h *history) merge(before []entry, objects []*v1beta1.Trial, last int) (now []entry, changed bool) {
	at := 0
	for _, o := range objects {
		if at < len(before) {
			if e := before[at]; e.uid == o.UID && e.version == o.ResourceVersion && e.version != "" {
				e.object = o
				now, at, last = append(now, e), at+1, e.trial.Number
				continue
			}
		}
		n, ok := o.Number()
		if !ok || n <= last {
			continue
		}
		last = n
		for at < len(before) && before[at].trial.Number < n {
			at, changed = at+1, true // one was deleted
		}
		e := entry{uid: o.UID, version: o.ResourceVersion, object: o, trial: h.translate(o, n)}
		if at < len(before) && before[at].trial.Number == n {
			if old := before[at]; old.trial.Equal(e.trial) { // the live view of a running trial, for example
				e.trial, e.print = old.trial, old.print
			}
			changed, at = changed || e.trial != before[at].trial, at+1
		} else {
			changed = true
		}
		if e.print == 0 {
			e.print = printOf(e.trial)
		}
		now = append(now, e)
	}
	return now, changed || at < len(before)
}

// refresh makes a new list of the trials: that of an earlier question may still
// be read.
func (h *history) refresh() {
	h.finished = nil
	h.current, h.samples = make([]*suggest.Trial, len(h.entries)), 0
	for i := range h.entries {
		h.current[i] = h.entries[i].trial
		h.samples += len(h.entries[i].trial.Curve)
	}
}

func (h *history) object(t *suggest.Trial) *v1beta1.Trial {
	i, found := slices.BinarySearchFunc(h.entries, t.Number, func(e entry, n int) int { return cmp.Compare(e.trial.Number, n) })
	if !found {
		return nil
	}
	return h.entries[i].object
}

// bytes estimates the memory of the trials and their curves.
func (h *history) bytes() int {
	const trialBytes, sampleBytes = 512, 24
	return trialBytes*len(h.entries) + sampleBytes*h.samples
}

// translate is a trial as search sees it, without its curve.
func (h *history) translate(t *v1beta1.Trial, n int) *suggest.Trial {
	out := &suggest.Trial{Number: n, State: stateOf(t)}
	if h.codec != nil {
		assignments := t.Spec.ParameterAssignments
		for _, a := range h.assumed {
			if !slices.ContainsFunc(assignments, func(b v1beta1.ParameterAssignment) bool { return a.Name == b.Name }) {
				assignments = append(slices.Clip(assignments), a)
			}
		}
		out.Point, _ = pointOf(h.codec, assignments)
	}
	if text := t.Annotations[v1beta1.AnnotationMeta]; text != "" {
		// We did not write what cannot be read: the algorithm does without it.
		_ = json.Unmarshal([]byte(text), &out.Meta)
	}
	if text := t.Annotations[v1beta1.AnnotationResource]; text != "" {
		out.Resource, _ = strconv.ParseFloat(text, 64) // the same
	}
	out.Duration = duration(t)
	if out.State != suggest.Succeeded && out.State != suggest.Pruned {
		return out
	}
	values, ok := objectiveValues(h.spec, t.Status.Observation)
	switch {
	case ok:
		out.Values, out.Constraints = values, constraintValues(h.spec, t.Status.Observation)
	case out.State == suggest.Succeeded:
		// It ran to its end, but what it reported is not a finite number.
		out.State = suggest.Unmeasured
	}
	return out
}

// duration is how long a trial that has ended ran, in seconds: from the start of its
// program, where that is known, else from that of its job: half a second at least, as
// times are whole seconds. 0: it has not ended, or its start is not known.
func duration(t *v1beta1.Trial) float64 {
	began, ended := t.Status.ProgramStartTime, t.Status.CompletionTime
	if began == nil {
		began = t.Status.StartTime
	}
	if began == nil || ended == nil {
		return 0
	}
	return max(0.5, ended.Sub(began.Time).Seconds())
}

func stateOf(t *v1beta1.Trial) suggest.State {
	switch t.State() {
	case v1beta1.TrialRunning:
		return suggest.Running
	case v1beta1.TrialSucceeded:
		return suggest.Succeeded
	case v1beta1.TrialEarlyStopped:
		return suggest.Pruned
	case v1beta1.TrialFailed:
		return suggest.Failed
	case v1beta1.TrialMetricsUnavailable:
		return suggest.Unmeasured
	case v1beta1.TrialKilled:
		return suggest.Killed
	default:
		return suggest.Pending
	}
}

func objectivesOf(spec *v1beta1.ExperimentSpec) (out []suggest.Objective) {
	for _, o := range spec.AllObjectives() {
		out = append(out, suggest.Objective{Name: o.ObjectiveMetricName, Direction: suggest.Direction(o.Type), Goal: o.Goal})
	}
	return out
}

func constraintsOf(spec *v1beta1.ExperimentSpec) (out []suggest.Constraint) {
	for _, c := range spec.Constraints {
		out = append(out, suggest.Constraint{Name: c.MetricName, Min: c.Min, Max: c.Max})
	}
	return out
}

// objectiveValues picks the objectives from an observation, each by its strategy.
// ok is false when there are none, or one was not measured or is not a finite
// number.
func objectiveValues(spec *v1beta1.ExperimentSpec, o *v1beta1.Observation) (values []float64, ok bool) {
	for _, want := range spec.AllObjectives() {
		v, ok := value(o, want.ObjectiveMetricName, spec.Objective.Strategy(want.ObjectiveMetricName, want.Type.DefaultStrategy()))
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, len(values) > 0
}

// constraintValues is what was measured for the constraints, NaN where nothing was.
func constraintValues(spec *v1beta1.ExperimentSpec, o *v1beta1.Observation) (out []float64) {
	for _, c := range spec.Constraints {
		v, ok := value(o, c.MetricName, spec.Objective.Strategy(c.MetricName, v1beta1.ExtractByLatest))
		if !ok {
			v = math.NaN()
		}
		out = append(out, v)
	}
	return out
}

// value picks a metric from an observation. ok is false when it was not measured
// or is not a finite number.
func value(o *v1beta1.Observation, metric string, by v1beta1.MetricStrategyType) (v float64, ok bool) {
	if o == nil {
		return 0, false
	}
	i := slices.IndexFunc(o.Metrics, func(m v1beta1.Metric) bool { return m.Name == metric })
	if i < 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(o.Metrics[i].By(by), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Earlier is an experiment to learn from.
type Earlier struct {
	v1beta1.WarmStart
	Trials []*v1beta1.Trial
}

// Learned is what an earlier experiment is worth: how many of its trials are
// learned from, and how many lie outside of the space.
type Learned struct{ Trials, Outside int }

// Warm makes the finished trials of earlier experiments part of the study, judged
// by this experiment's objectives: those that ran to their end, with all of the
// resource where some had less, and whose points lie in the space.
func (s *Study) Warm(earlier []Earlier) []Learned {
	out := make([]Learned, len(earlier))
	kept, all, learned := map[string]*history{}, []*suggest.Trial(nil), uint64(0)
	for i, e := range earlier {
		h := s.warm[e.Experiment]
		if h == nil {
			h = &history{spec: s.trials.spec, codec: s.codec, assumed: e.ParameterAssignments}
			for _, p := range s.trials.spec.Parameters {
				if only, ok := onlyValue(p.FeasibleSpace); ok {
					h.assumed = append(slices.Clip(h.assumed), v1beta1.ParameterAssignment{Name: p.Name, Value: only})
				}
			}
		}
		h.update(e.Trials)
		kept[e.Experiment] = h
		if h.finished == nil {
			h.finished, h.outside = s.finished(h, e.Experiment)
			h.learned = 0
			for _, t := range h.finished {
				h.learned += printOf(t)
			}
		}
		learned += h.learned
		out[i] = Learned{Trials: len(h.finished), Outside: h.outside}
		all = append(all, h.finished...)
	}
	s.warm, s.base.Warm, s.learned = kept, all, learned
	return out
}

func onlyValue(f v1beta1.FeasibleSpace) (value string, ok bool) {
	if len(f.List) == 1 {
		return f.List[0], true
	}
	return f.Min, f.Min != "" && f.Min == f.Max
}

func (s *Study) finished(h *history, experiment string) (out []*suggest.Trial, outside int) {
	whole := 0.0
	for _, t := range h.current {
		if t.State != suggest.Succeeded {
			continue
		}
		whole = max(whole, t.Resource)
		if len(t.Point) == 0 || !s.base.Space.Contains(t.Point) { // no algorithm makes anything of it
			outside++
			continue
		}
		out = append(out, t)
	}
	out = slices.DeleteFunc(out, func(t *suggest.Trial) bool { return t.Resource < whole })
	for i, t := range out {
		learned := *t
		learned.Meta, learned.Resource = suggest.Meta{"study": experiment}, 0
		out[i] = &learned
	}
	return out, outside
}

// QueuedAs is the ID of the queued point that a trial tries; empty when it tries none.
func QueuedAs(t *v1beta1.Trial) string {
	text := t.Annotations[v1beta1.AnnotationMeta]
	if text == "" {
		return ""
	}
	meta := suggest.Meta{}
	_ = json.Unmarshal([]byte(text), &meta) // as above
	return meta[suggest.MetaQueued]
}

// Queued are the points in the queue of an experiment that none of its trials has taken.
func Queued(exp *v1beta1.Experiment, trials []*v1beta1.Trial) []v1beta1.InitialTrial {
	taken := map[string]bool{"": true} // initial trials without an ID are not of the queue
	for _, t := range trials {
		taken[QueuedAs(t)] = true
	}
	return slices.DeleteFunc(slices.Clone(exp.Spec.InitialTrials), func(t v1beta1.InitialTrial) bool { return taken[t.ID] })
}
