package push

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/collector"
)

// Limits of what is remembered for MLflow's clients.
const (
	// maxMLflowObjects bounds the experiments, the runs and the models, each.
	maxMLflowObjects = 10_000
	// maxMLflowBytes bounds what is known of them, and the names of metrics. Tags,
	// parameters and metrics beyond it are accepted and forgotten.
	maxMLflowBytes = 8 << 20
	// metricCost is what a metric takes beside its name, in bytes, and pairCost a tag
	// or parameter.
	metricCost, pairCost = 128, 64
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
}

// mlflowObject is an experiment, a run or a model, with the newest value of each
// metric.
type mlflowObject struct {
	mlflowEvent
	metrics map[string]collector.Record
}

// mlflowState is what a tracking server would know. All but the metrics that the
// experiment does not want can be rebuilt from the journal.
type mlflowState struct {
	artifacts, seed, trial string
	objects                map[string]map[string]*mlflowObject // by kind, by ID
	size                   int                                 // of what is known, in bytes
}

func newMLflowState(cfg Config) *mlflowState {
	s := &mlflowState{
		artifacts: cfg.Artifacts, seed: cfg.Seed, trial: cfg.Trial,
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
	switch id := digestOf(s.seed, kind, strconv.Itoa(n)); kind {
	case mlflowExperiment:
		return strconv.Itoa(n), nil
	case mlflowModel:
		return "m-" + id, nil
	default:
		return id, nil
	}
}

// change makes or changes an object: what the event's JSON says is put over it.
func (s *mlflowState) change(e mlflowEvent) {
	kind, known := s.objects[e.Kind]
	if !known {
		return // another program wrote it
	}
	o := kind[e.ID]
	if o == nil {
		o = &mlflowObject{metrics: map[string]collector.Record{}}
		kind[e.ID] = o
	}
	if s.size+o.growth(e) > maxMLflowBytes {
		e.Params, e.Tags = nil, nil
	}
	s.size += o.growth(e)
	text, _ := json.Marshal(e)               // texts and numbers can be written
	_ = json.Unmarshal(text, &o.mlflowEvent) // it was written a moment ago
}

// growth is how many bytes more an object takes after a change.
func (o *mlflowObject) growth(e mlflowEvent) (bytes int) {
	for _, texts := range [][2]string{{o.ID, e.ID}, {o.Experiment, e.Experiment}, {o.Run, e.Run}, {o.Name, e.Name}, {o.User, e.User}, {o.Type, e.Type}} {
		if texts[1] != "" {
			bytes += len(texts[1]) - len(texts[0])
		}
	}
	for _, pairs := range []struct{ old, set map[string]string }{{o.Params, e.Params}, {o.Tags, e.Tags}} {
		for name, value := range pairs.set {
			old, known := pairs.old[name]
			if bytes += len(value) - len(old); !known {
				bytes += len(name) + pairCost
			}
		}
	}
	return bytes
}

// measure keeps a point if it is the newest of its metric, by step and time, as
// MLflow does.
func (s *mlflowState) measure(id string, p collector.Record) {
	run := s.objects[mlflowRun][id]
	if run == nil {
		return
	}
	old, known := run.metrics[p.Metric]
	switch cost := len(p.Metric) + metricCost; {
	case known && cmp.Or(cmp.Compare(p.Step, old.Step), cmp.Compare(p.Time, old.Time)) >= 0:
		run.metrics[p.Metric] = p
	case !known && s.size+cost <= maxMLflowBytes:
		run.metrics[p.Metric] = p
		s.size += cost
	}
}

// json shows an object as MLflow does. Artifacts belong in a directory, so that the
// client writes there itself.
func (s *mlflowState) json(o *mlflowObject) any {
	params, tags := pairsJSON(o.Params), pairsJSON(o.Tags)
	switch o.Kind {
	case mlflowExperiment:
		return map[string]any{"experiment_id": o.ID, "experiment": map[string]any{
			"experiment_id": o.ID, "name": o.Name, "artifact_location": filepath.Join(s.artifacts, o.ID), "lifecycle_stage": "active",
			"creation_time": o.Start, "last_update_time": max(o.Start, o.End), "tags": tags,
		}}
	case mlflowModel:
		return map[string]any{"model": map[string]any{
			"info": map[string]any{
				"model_id": o.ID, "experiment_id": o.Experiment, "name": o.Name, "model_type": o.Type, "source_run_id": o.Run,
				"creation_timestamp_ms": o.Start, "last_updated_timestamp_ms": max(o.Start, o.End),
				"artifact_uri": filepath.Join(s.artifacts, o.Experiment, "models", o.ID, "artifacts"), "status": o.Status, "tags": tags,
			},
			"data": map[string]any{"params": params, "metrics": []any{}},
		}}
	}
	info := map[string]any{
		"run_id": o.ID, "run_uuid": o.ID, "run_name": o.Name, "experiment_id": o.Experiment, "user_id": o.User, "status": o.Status,
		"start_time": o.Start, "artifact_uri": filepath.Join(s.artifacts, o.Experiment, o.ID, "artifacts"), "lifecycle_stage": "active",
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

// metricJSON shows a point; a number is written as protobuf's JSON does.
func metricJSON(p collector.Record) any {
	var value any = "NaN"
	switch v, err := strconv.ParseFloat(p.Value, 64); {
	case err != nil || math.IsNaN(v):
	case math.IsInf(v, 1):
		value = "Infinity"
	case math.IsInf(v, -1):
		value = "-Infinity"
	default:
		value = v
	}
	return map[string]any{"key": p.Metric, "value": value, "timestamp": p.Time / 1e6, "step": p.Step}
}

func pairsJSON(pairs map[string]string) []map[string]string {
	list := make([]map[string]string, 0, len(pairs))
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, map[string]string{"key": k, "value": pairs[k]})
	}
	return list
}
