package source

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

func isDelete(r *http.Request) bool {
	return r != nil && (r.Method == http.MethodDelete || strings.Contains(r.URL.Path, "/delete-"))
}

func (p *Push) createRun(r mlflowRequest, _ *http.Request) (any, error) {
	var id string
	err := p.change(func(s *mlflowState) (entry, error) {
		experiment := cmp.Or(string(r.ExperimentID), "0")
		if s.get(mlflowExperiment, experiment) == nil {
			return entry{}, missing(mlflowExperiment, experiment)
		}
		var err error
		if id, err = s.newID(mlflowRun); err != nil {
			return entry{}, mlflowFault("RESOURCE_LIMIT_EXCEEDED", "%v", err)
		}
		tags := maps.Clone(r.Tags)
		if tags == nil {
			tags = mlflowPairs{}
		}
		name := cmp.Or(r.RunName, tags["mlflow.runName"], fmt.Sprintf("%s-run-%d", cmp.Or(s.trial, "trial"), len(s.objects[mlflowRun])))
		name = cutMLflow(name, maxMLflowName)
		tags["mlflow.runName"] = name
		return entry{Event: &mlflowEvent{
			Kind: mlflowRun, ID: id, Experiment: experiment, Name: name, User: cutMLflow(r.UserID, maxMLflowName),
			Status: "RUNNING", Lifecycle: "active", Start: cmp.Or(int64(r.StartTime), p.millis()), Tags: tags,
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return p.getRun(mlflowRequest{RunID: id}, nil)
}

func (p *Push) getRun(r mlflowRequest, _ *http.Request) (any, error) {
	return p.view(func(s *mlflowState) (any, error) {
		o := s.get(mlflowRun, r.RunID)
		if o == nil {
			return nil, missing(mlflowRun, r.RunID)
		}
		return map[string]any{"run": s.runJSON(o)}, nil
	})
}

// runStatuses are MLflow's, by number.
func runStatuses() []string {
	return []string{"", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"}
}

func (p *Push) updateRun(r mlflowRequest, _ *http.Request) (any, error) {
	status := string(r.Status)
	for n, name := range runStatuses() {
		if status == strconv.Itoa(n) {
			status = name
		}
	}
	if len(status) > len("SCHEDULED") || len(r.RunName) > maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the status or the name of the run is too long")
	}
	e := mlflowEvent{Status: status, End: int64(r.EndTime), Name: r.RunName}
	if r.RunName != "" {
		e.Tags = map[string]string{"mlflow.runName": r.RunName}
	}
	return p.changeOf(mlflowRun, r.RunID, e, func(s *mlflowState, o *mlflowObject) any {
		return map[string]any{"run_info": s.runInfoJSON(o)}
	})
}

func lifecycle(stage string) mlflowCall {
	return func(p *Push, r mlflowRequest, _ *http.Request) (any, error) {
		return p.changeOf(mlflowRun, r.RunID, mlflowEvent{Lifecycle: stage}, nothing)
	}
}

// searchRuns returns the newest runs first, whatever order is asked for.
func (p *Push) searchRuns(r mlflowRequest, _ *http.Request) (any, error) {
	keep, err := newMLflowFilter(r.Filter)
	if err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(cmp.Or(r.PageToken, "0"))
	if err != nil || from < 0 {
		return nil, mlflowFault(mlflowInvalid, "the page token %.40q is not one of ours", r.PageToken)
	}
	wanted := map[string]bool{}
	for _, id := range r.ExperimentIDs {
		wanted[string(id)] = true
	}
	return p.view(func(s *mlflowState) (any, error) {
		list, said, n := []any{}, map[string]any{}, 0
		for _, o := range s.list(mlflowRun) {
			visible := r.ViewType == "ALL" || (o.Lifecycle == "deleted") == (r.ViewType == "DELETED_ONLY")
			if !wanted[o.Experiment] || !visible || !keep.matches(o) {
				continue
			}
			if n++; n <= from {
				continue
			}
			if len(list) == pageSize(r) {
				said["next_page_token"] = strconv.Itoa(n - 1)
				break
			}
			list = append(list, s.runJSON(o))
		}
		said["runs"] = list
		return said, nil
	})
}

// mlflowFilter is a filter of a search: conditions that all hold.
type mlflowFilter []mlflowCondition

type mlflowCondition struct {
	field string // tags, params or attributes
	key   string
	want  string
	not   bool
}

// The part of MLflow's search language that its own client uses.
const mlflowConditionPattern = "^\\s*(?:(tags|tag|params|param|parameters|attributes|attribute|attr|run)\\.)?([\\w.\\-/]+|`[^`]+`|\"[^\"]+\")\\s*(!?=)\\s*(?:'([^']*)'|\"([^\"]*)\")\\s*$"

func newMLflowFilter(text string) (mlflowFilter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	condition := regexp.MustCompile(mlflowConditionPattern)
	var f mlflowFilter
	for _, part := range regexp.MustCompile(`(?i)\s+and\s+`).Split(text, 100) {
		m := condition.FindStringSubmatch(part)
		if m == nil {
			return nil, mlflowFault(mlflowInvalid, "the filter %.80q is not understood here: write conditions like tags.name = 'value', joined by and", part)
		}
		c := mlflowCondition{key: strings.Trim(m[2], "`\""), not: m[3] == "!=", want: m[4] + m[5]}
		switch m[1] {
		case "tag", "tags":
			c.field = "tags"
		case "param", "params", "parameters":
			c.field = "params"
		}
		f = append(f, c)
	}
	return f, nil
}

func (f mlflowFilter) matches(o *mlflowObject) bool {
	for _, c := range f {
		var have string
		var ok bool
		switch c.field {
		case "tags":
			have, ok = o.Tags[c.key]
		case "params":
			have, ok = o.Params[c.key]
		default:
			have, ok = o.attribute(c.key)
		}
		if !ok || (have == c.want) == c.not {
			return false
		}
	}
	return true
}

func (o *mlflowObject) attribute(key string) (string, bool) {
	switch key {
	case "run_id", "experiment_id":
		if key == "experiment_id" && o.Experiment != "" {
			return o.Experiment, true
		}
		return o.ID, true
	case "status":
		return o.Status, true
	case "run_name", "name", "Run name":
		return o.Name, true
	case "user_id":
		return o.User, true
	case "source_run_id":
		return o.Run, true
	}
	return "", false
}

// Models that a program logs. Their files are artifacts.

func (p *Push) createModel(r mlflowRequest, _ *http.Request) (any, error) {
	if len(r.Name) > maxMLflowName || len(r.ModelType) > maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the name or the type of the model has more than %d bytes", maxMLflowName)
	}
	var id string
	err := p.change(func(s *mlflowState) (entry, error) {
		experiment := cmp.Or(string(r.ExperimentID), "0")
		if s.get(mlflowExperiment, experiment) == nil {
			return entry{}, missing(mlflowExperiment, experiment)
		}
		if r.SourceRunID != "" && s.get(mlflowRun, r.SourceRunID) == nil {
			return entry{}, missing(mlflowRun, r.SourceRunID)
		}
		var err error
		if id, err = s.newID(mlflowModel); err != nil {
			return entry{}, mlflowFault("RESOURCE_LIMIT_EXCEEDED", "%v", err)
		}
		return entry{Event: &mlflowEvent{
			Kind: mlflowModel, ID: id, Experiment: experiment, Run: r.SourceRunID, Name: cmp.Or(r.Name, id), Type: r.ModelType,
			Status: "LOGGED_MODEL_PENDING", Lifecycle: "active", Start: p.millis(), Params: r.Params, Tags: r.Tags,
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return p.model(id)
}

func (p *Push) model(id string) (any, error) {
	return p.view(func(s *mlflowState) (any, error) {
		o := s.get(mlflowModel, id)
		if o == nil || o.Lifecycle != "active" {
			return nil, missing(mlflowModel, id)
		}
		return map[string]any{"model": s.modelJSON(o)}, nil
	})
}

func (p *Push) getModel(_ mlflowRequest, at *http.Request) (any, error) {
	return p.model(at.PathValue("model"))
}

func (p *Push) changeModel(r mlflowRequest, at *http.Request) (any, error) {
	if len(r.Status) > maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the status of the model is too long")
	}
	e := mlflowEvent{Status: string(r.Status), Params: r.Params, Tags: r.Tags, End: p.millis()}
	return p.changeOf(mlflowModel, at.PathValue("model"), e, func(s *mlflowState, o *mlflowObject) any {
		return map[string]any{"model": s.modelJSON(o)}
	})
}

func (p *Push) deleteModel(_ mlflowRequest, at *http.Request) (any, error) {
	return p.changeOf(mlflowModel, at.PathValue("model"), mlflowEvent{Lifecycle: "deleted"}, nothing)
}

func (p *Push) searchModels(r mlflowRequest, _ *http.Request) (any, error) {
	keep, err := newMLflowFilter(r.Filter)
	if err != nil {
		return nil, err
	}
	return p.view(func(s *mlflowState) (any, error) {
		list := []any{}
		for _, o := range s.list(mlflowModel) {
			if o.Lifecycle == "active" && keep.matches(o) {
				list = append(list, s.modelJSON(o))
			}
		}
		return map[string]any{"models": list}, nil
	})
}
