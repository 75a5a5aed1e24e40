package push

import (
	"cmp"
	"encoding/hex"
	"maps"
	"math"
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
	mlflowExperiment = "experiment"
	mlflowRun        = "run"
	mlflowModel      = "model"
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
	Start      int64             `json:"a,omitempty"` // milliseconds since the Unix epoch
	End        int64             `json:"z,omitempty"`
	Params     map[string]string `json:"p,omitempty"`
	Tags       map[string]string `json:"t,omitempty"`
	Untag      []string          `json:"x,omitempty"`
}

// mlflowObject is an experiment, a run or a model, with the newest value of each
// metric.
type mlflowObject struct {
	mlflowEvent
	metrics map[string]entryPoint
}

// mlflowState is what a tracking server would know. All but the metrics that the
// experiment does not want can be rebuilt from the journal.
type mlflowState struct {
	artifacts, seed, trial string
	objects                map[string]map[string]*mlflowObject // by kind, by ID
	size                   int                                 // of all text, in bytes
}

func newMLflowState(cfg Config) *mlflowState {
	s := &mlflowState{
		artifacts: cmp.Or(cfg.Artifacts, filepath.Join(os.TempDir(), "vernier-mlflow")), seed: cfg.Seed, trial: cfg.Trial,
		objects: map[string]map[string]*mlflowObject{mlflowExperiment: {}, mlflowRun: {}, mlflowModel: {}},
	}
	// Every tracking server has it.
	s.change(mlflowEvent{Kind: mlflowExperiment, ID: "0", Name: "Default"})
	return s
}

// named returns the experiment with a name.
func (s *mlflowState) named(name string) *mlflowObject {
	for _, o := range s.objects[mlflowExperiment] {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// newID returns the ID of the next object of a kind. Runs and models have IDs
// that no other trial's have: programs name directories by them.
func (s *mlflowState) newID(kind string) (string, error) {
	n := len(s.objects[kind])
	if n >= maxMLflowObjects {
		return "", mlflowFault(mlflowFull, "there are %d of the kind %s; that is all that a trial can have", n, kind)
	}
	d := digestOf(s.seed, kind, strconv.Itoa(n))
	switch kind {
	case mlflowExperiment:
		return strconv.Itoa(n), nil
	case mlflowModel:
		return "m-" + hex.EncodeToString(d[:]), nil
	}
	return hex.EncodeToString(d[:]), nil
}

func (s *mlflowState) change(e mlflowEvent) {
	kind, known := s.objects[e.Kind]
	if !known {
		return
	}
	o := kind[e.ID]
	if o == nil {
		o = &mlflowObject{mlflowEvent: mlflowEvent{Kind: e.Kind, ID: e.ID, Params: map[string]string{}, Tags: map[string]string{}}, metrics: map[string]entryPoint{}}
		kind[e.ID] = o
		s.size += pairCost + len(e.ID)
	}
	for _, f := range []struct {
		field *string
		value string
	}{
		{&o.Experiment, e.Experiment}, {&o.Run, e.Run}, {&o.Name, e.Name}, {&o.User, e.User}, {&o.Type, e.Type}, {&o.Status, e.Status},
	} {
		if f.value != "" {
			s.size += len(f.value) - len(*f.field)
			*f.field = f.value
		}
	}
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
		if s.size+more <= maxMLflowBytes {
			to[k] = pairs[k]
			s.size += more
		}
	}
}

// measure keeps a point if it is the newest of its metric, by step and time, as
// MLflow does.
func (s *mlflowState) measure(id string, p entryPoint) {
	run := s.objects[mlflowRun][id]
	if run == nil {
		return
	}
	old, known := run.metrics[p.Metric]
	if known && cmp.Or(cmp.Compare(p.Step, old.Step), cmp.Compare(p.Time, old.Time)) < 0 {
		return
	}
	if !known {
		if s.size+len(p.Metric)+2*pairCost > maxMLflowBytes {
			return
		}
		s.size += len(p.Metric) + 2*pairCost
	}
	run.metrics[p.Metric] = p
}

// location is where artifacts of an experiment, or of one of its objects, belong:
// a directory, so that the client writes there itself.
func (s *mlflowState) location(experiment string, rest ...string) string {
	return filepath.Join(append([]string{s.artifacts, experiment}, rest...)...)
}

// json shows an object as MLflow does.
func (s *mlflowState) json(o *mlflowObject) any {
	params, tags := pairsJSON(o.Params), pairsJSON(o.Tags)
	switch o.Kind {
	case mlflowExperiment:
		return map[string]any{"experiment_id": o.ID, "experiment": map[string]any{
			"experiment_id": o.ID, "name": o.Name, "artifact_location": s.location(o.ID), "lifecycle_stage": "active",
			"creation_time": o.Start, "last_update_time": max(o.Start, o.End), "tags": tags,
		}}
	case mlflowModel:
		return map[string]any{"model": map[string]any{
			"info": map[string]any{
				"model_id": o.ID, "experiment_id": o.Experiment, "name": o.Name, "model_type": o.Type, "source_run_id": o.Run,
				"creation_timestamp_ms": o.Start, "last_updated_timestamp_ms": max(o.Start, o.End),
				"artifact_uri": s.location(o.Experiment, "models", o.ID, "artifacts"), "status": o.Status, "tags": tags,
			},
			"data": map[string]any{"params": params, "metrics": []any{}},
		}}
	}
	info := map[string]any{
		"run_id": o.ID, "run_uuid": o.ID, "run_name": o.Name, "experiment_id": o.Experiment, "user_id": o.User,
		"status": o.Status, "start_time": o.Start, "artifact_uri": s.location(o.Experiment, o.ID, "artifacts"), "lifecycle_stage": "active",
	}
	if o.End != 0 {
		info["end_time"] = o.End
	}
	metrics := []any{}
	for _, key := range slices.Sorted(maps.Keys(o.metrics)) {
		metrics = append(metrics, metricJSON(o.metrics[key]))
	}
	return map[string]any{"run_info": info, "run": map[string]any{
		"info": info, "data": map[string]any{"metrics": metrics, "params": params, "tags": tags},
	}}
}

func metricJSON(p entryPoint) any {
	return map[string]any{"key": p.Metric, "value": numberJSON(p.Value), "timestamp": p.Time / 1e6, "step": p.Step}
}

// numberJSON writes a number as protobuf's JSON does.
func numberJSON(text string) any {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return v
}

func pairsJSON(pairs map[string]string) []map[string]string {
	list := make([]map[string]string, 0, len(pairs))
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, map[string]string{"key": k, "value": pairs[k]})
	}
	return list
}
