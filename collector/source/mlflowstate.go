package source

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Limits of what is remembered for MLflow's clients.
const (
	// maxMLflowObjects bounds the experiments, the runs and the models, each.
	maxMLflowObjects = 10_000
	// maxMLflowBytes bounds their names, tags, parameters and newest metrics.
	// What is beyond is accepted and forgotten.
	maxMLflowBytes = 8 << 20
	// pairCost is what an element of a map takes beside its text, in bytes.
	pairCost = 64
)

// Kinds of an mlflowEvent.
const (
	mlflowExperiment = "experiment" // was made, or got tags
	mlflowRun        = "run"        // was made, or changed
	mlflowModel      = "model"      // was made, or changed
)

// mlflowEvent is a change of one object. What is empty stays as it was.
type mlflowEvent struct {
	Kind       string            `json:"k"`
	ID         string            `json:"i"`
	Experiment string            `json:"e,omitempty"`
	Run        string            `json:"r,omitempty"` // that a model comes from
	Name       string            `json:"n,omitempty"`
	User       string            `json:"u,omitempty"`
	Type       string            `json:"y,omitempty"` // of a model
	Status     string            `json:"s,omitempty"`
	Lifecycle  string            `json:"l,omitempty"`
	Start      int64             `json:"a,omitempty"` // milliseconds since the Unix epoch
	End        int64             `json:"z,omitempty"`
	Params     map[string]string `json:"p,omitempty"`
	Tags       map[string]string `json:"t,omitempty"`
	Untag      []string          `json:"x,omitempty"`
}

// mlflowObject is an experiment, a run or a model.
type mlflowObject struct {
	mlflowEvent
	number  int // in order of making
	Metrics map[string]mlflowValue
}

// mlflowValue is the newest value of a metric.
type mlflowValue struct {
	value      string // what strconv.ParseFloat reads
	step, time int64  // time in milliseconds
}

// mlflowState is what a tracking server would know. All but the metrics that the
// experiment does not want can be rebuilt from the journal.
type mlflowState struct {
	artifacts, seed, trial string
	objects                map[string]map[string]*mlflowObject // by kind, by ID
	size                   int                                 // of all text, in bytes
}

func newMLflowState(cfg PushConfig) *mlflowState {
	s := &mlflowState{
		artifacts: cmp.Or(cfg.Artifacts, filepath.Join(os.TempDir(), "vernier-mlflow")), seed: cfg.Seed, trial: cfg.Trial,
		objects: map[string]map[string]*mlflowObject{mlflowExperiment: {}, mlflowRun: {}, mlflowModel: {}},
	}
	// Every tracking server has it.
	s.change(mlflowEvent{Kind: mlflowExperiment, ID: "0", Name: "Default", Lifecycle: "active"})
	return s
}

// newID returns the ID of the next object of a kind. Runs and models have IDs
// that no other trial's have: programs name directories by them.
func (s *mlflowState) newID(kind string) (string, error) {
	n := len(s.objects[kind])
	if n >= maxMLflowObjects {
		return "", fmt.Errorf("there are %d of the kind %s; that is all that a trial can have", n, kind)
	}
	if kind == mlflowExperiment {
		return strconv.Itoa(n), nil
	}
	d := digestOf(s.seed, kind, strconv.Itoa(n))
	if kind == mlflowModel {
		return "m-" + hex.EncodeToString(d[:]), nil
	}
	return hex.EncodeToString(d[:]), nil
}

func (s *mlflowState) get(kind, id string) *mlflowObject { return s.objects[kind][id] }

// list returns the objects of a kind, the newest first.
func (s *mlflowState) list(kind string) []*mlflowObject {
	return slices.SortedFunc(maps.Values(s.objects[kind]), func(a, b *mlflowObject) int { return cmp.Compare(b.number, a.number) })
}

// apply takes note of an entry of the journal.
func (s *mlflowState) apply(e entry) {
	if e.Event != nil {
		s.change(*e.Event)
	}
	if run := s.get(mlflowRun, e.Run); run != nil {
		for _, p := range e.Points {
			s.measure(run, p)
		}
	}
}

func (s *mlflowState) change(e mlflowEvent) {
	kind, known := s.objects[e.Kind]
	if !known {
		return
	}
	o := kind[e.ID]
	if o == nil {
		o = &mlflowObject{number: len(kind), Metrics: map[string]mlflowValue{}}
		o.mlflowEvent = mlflowEvent{Kind: e.Kind, ID: e.ID, Params: map[string]string{}, Tags: map[string]string{}}
		kind[e.ID] = o
		s.size += pairCost + len(e.ID)
	}
	set := func(field *string, v string) {
		if v != "" {
			s.size += len(v) - len(*field)
			*field = v
		}
	}
	set(&o.Experiment, e.Experiment)
	set(&o.Run, e.Run)
	set(&o.Name, e.Name)
	set(&o.User, e.User)
	set(&o.Type, e.Type)
	set(&o.Status, e.Status)
	set(&o.Lifecycle, e.Lifecycle)
	o.Start, o.End = cmp.Or(e.Start, o.Start), cmp.Or(e.End, o.End)
	s.put(o.Params, e.Params)
	s.put(o.Tags, e.Tags)
	for _, tag := range e.Untag {
		if v, ok := o.Tags[tag]; ok {
			s.size -= len(tag) + len(v) + pairCost
			delete(o.Tags, tag)
		}
	}
}

// put adds pairs as long as there is room.
func (s *mlflowState) put(to, pairs map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		old, known := to[k]
		more := len(pairs[k]) - len(old)
		if !known {
			more = len(k) + len(pairs[k]) + pairCost
		}
		if s.size+more > maxMLflowBytes {
			continue
		}
		to[k] = pairs[k]
		s.size += more
	}
}

// measure keeps a point if it is the newest of its metric, by step and time, as
// MLflow does.
func (s *mlflowState) measure(run *mlflowObject, p entryPoint) {
	v := mlflowValue{p.Value, p.Step, p.Time / 1e6}
	old, known := run.Metrics[p.Metric]
	switch {
	case known && cmp.Or(cmp.Compare(v.step, old.step), cmp.Compare(v.time, old.time)) < 0:
		return
	case !known && s.size+len(p.Metric)+pairCost > maxMLflowBytes:
		return
	case !known:
		s.size += len(p.Metric) + pairCost
	}
	run.Metrics[p.Metric] = v
}

// location is where artifacts of an experiment, or of one of its objects, belong:
// a directory, so that the client writes there itself.
func (s *mlflowState) location(experiment string, rest ...string) string {
	return filepath.Join(append([]string{s.artifacts, experiment}, rest...)...)
}
