package source

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	mlflowBase = "/api/2.0/mlflow"
	// mlflowPage is the most objects or points in one answer.
	mlflowPage = 25_000
	// mlflowVersion is what clients are told: the first that has logged models, and
	// before those whose clients would send traces.
	mlflowVersion = "3.0.0"
)

// Words of MLflow's errors.
const (
	mlflowMissing  = "RESOURCE_DOES_NOT_EXIST"
	mlflowExists   = "RESOURCE_ALREADY_EXISTS"
	mlflowInvalid  = "INVALID_PARAMETER_VALUE"
	mlflowUnserved = "ENDPOINT_NOT_FOUND"
)

// mlflowError is an answer that says why not.
type mlflowError struct {
	status  int
	code    string
	message string
}

// Error implements error.
func (e *mlflowError) Error() string { return e.message }

func mlflowFault(code, format string, args ...any) error {
	status := http.StatusBadRequest
	if code == mlflowMissing || code == mlflowUnserved {
		status = http.StatusNotFound
	}
	return &mlflowError{status, code, fmt.Sprintf(format, args...)}
}

func missing(kind, id string) error {
	return mlflowFault(mlflowMissing, "there is no %s %q in this trial", kind, id)
}

// mlflowCall answers one kind of request.
type mlflowCall func(p *Push, r mlflowRequest, at *http.Request) (any, error)

// mlflowCalls are the calls of MLflow's tracking that are served: what its client
// needs for experiments, runs and models, in memory of this trial only.
func mlflowCalls() map[string]mlflowCall {
	return map[string]mlflowCall{
		"POST /experiments/create":                (*Push).createExperiment,
		"GET /experiments/get":                    (*Push).getExperiment,
		"GET /experiments/get-by-name":            (*Push).experimentByName,
		"POST /experiments/search":                (*Push).searchExperiments,
		"POST /experiments/update":                (*Push).updateExperiment,
		"POST /experiments/set-experiment-tag":    (*Push).tagExperiment,
		"POST /experiments/delete-experiment-tag": (*Push).tagExperiment,
		"POST /runs/create":                       (*Push).createRun,
		"GET /runs/get":                           (*Push).getRun,
		"POST /runs/update":                       (*Push).updateRun,
		"POST /runs/delete":                       lifecycle("deleted"),
		"POST /runs/restore":                      lifecycle("active"),
		"POST /runs/search":                       (*Push).searchRuns,
		"POST /runs/log-metric":                   (*Push).logMetric,
		"POST /runs/log-batch":                    (*Push).logBatch,
		"POST /runs/log-parameter":                (*Push).logParameter,
		"POST /runs/set-tag":                      (*Push).setTag,
		"POST /runs/delete-tag":                   (*Push).setTag,
		"POST /runs/log-inputs":                   (*Push).accept,
		"POST /runs/log-model":                    (*Push).accept,
		"POST /runs/outputs":                      (*Push).accept,
		"GET /metrics/get-history":                (*Push).metricHistory,
		"GET /artifacts/list":                     (*Push).listArtifacts,
		"POST /logged-models":                     (*Push).createModel,
		"POST /logged-models/search":              (*Push).searchModels,
		"GET /logged-models/{model}":              (*Push).getModel,
		"PATCH /logged-models/{model}":            (*Push).changeModel,
		"DELETE /logged-models/{model}":           (*Push).deleteModel,
		"PATCH /logged-models/{model}/tags":       (*Push).changeModel,
		"POST /logged-models/{model}/params":      (*Push).changeModel,
	}
}

func (p *Push) addMLflow(mux *http.ServeMux) {
	for pattern, call := range mlflowCalls() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+mlflowBase+path, func(w http.ResponseWriter, r *http.Request) { p.serveMLflow(w, r, call) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		answerMLflow(w, mlflowFault(mlflowUnserved, "%s %s is not served: this is the collector of a trial, not a whole tracking server", r.Method, r.URL.Path))
	})
	for path, said := range map[string]string{"/health": "OK", "/version": mlflowVersion} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(said)) })
	}
}

func (p *Push) serveMLflow(w http.ResponseWriter, r *http.Request, call mlflowCall) {
	body, release, err := p.body(w, r, maxBody)
	if err != nil {
		answerMLflow(w, err)
		return
	}
	defer release()
	request, err := decodeMLflow(body, r.URL.Query())
	if err != nil {
		answerMLflow(w, mlflowFault(mlflowInvalid, "%v", err))
		return
	}
	said, err := call(p, request, r)
	if err != nil {
		answerMLflow(w, err)
		return
	}
	answer(w, http.StatusOK, said)
}

// answerMLflow says why not, as MLflow's client reads it.
func answerMLflow(w http.ResponseWriter, err error) {
	var fault *mlflowError
	if !errors.As(err, &fault) {
		fault = &mlflowError{statusOf(err), "INTERNAL_ERROR", err.Error()}
		switch fault.status {
		case http.StatusGone:
			fault.code = "INVALID_STATE"
		case http.StatusInsufficientStorage:
			fault.code = "RESOURCE_LIMIT_EXCEEDED"
		case http.StatusServiceUnavailable:
			fault.code = "TEMPORARILY_UNAVAILABLE"
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			fault.code = mlflowInvalid
		}
	}
	answer(w, fault.status, map[string]string{"error_code": fault.code, "message": fault.message})
}

// change writes down what build makes of the present state.
func (p *Push) change(build func(s *mlflowState) (entry, error)) error {
	var fault error
	err := p.journal.append(func() (entry, bool) {
		var e entry
		e, fault = build(p.state.mlflow)
		return e, fault == nil && (e.Event != nil || len(e.Points) > 0)
	}, p.state.apply)
	return errors.Join(fault, err)
}

// view reads the state.
func (p *Push) view(read func(s *mlflowState) (any, error)) (any, error) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	return read(p.state.mlflow)
}

// changeOf changes an object and returns what show makes of it.
func (p *Push) changeOf(kind, id string, e mlflowEvent, show func(*mlflowState, *mlflowObject) any) (any, error) {
	var said any
	err := p.change(func(s *mlflowState) (entry, error) {
		if s.get(kind, id) == nil {
			return entry{}, missing(kind, id)
		}
		e.Kind, e.ID = kind, id
		return entry{Event: &e}, nil
	})
	if err != nil {
		return nil, err
	}
	said, err = p.view(func(s *mlflowState) (any, error) { return show(s, s.get(kind, id)), nil })
	return said, err
}

func nothing(*mlflowState, *mlflowObject) any { return struct{}{} }

func (p *Push) millis() int64 { return p.cfg.Clock.Now().UnixMilli() }

func (p *Push) createExperiment(r mlflowRequest, _ *http.Request) (any, error) {
	if r.Name == "" || len(r.Name) > 2*maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the name has %d bytes; it must have 1 to %d", len(r.Name), 2*maxMLflowName)
	}
	var id string
	err := p.change(func(s *mlflowState) (entry, error) {
		for _, o := range s.list(mlflowExperiment) {
			if o.Name == r.Name {
				return entry{}, mlflowFault(mlflowExists, "the experiment %q exists already", r.Name)
			}
		}
		var err error
		if id, err = s.newID(mlflowExperiment); err != nil {
			return entry{}, mlflowFault("RESOURCE_LIMIT_EXCEEDED", "%v", err)
		}
		return entry{Event: &mlflowEvent{Kind: mlflowExperiment, ID: id, Name: r.Name, Lifecycle: "active", Start: p.millis(), Tags: r.Tags}}, nil
	})
	return map[string]string{"experiment_id": id}, err
}

func (p *Push) getExperiment(r mlflowRequest, _ *http.Request) (any, error) {
	return p.view(func(s *mlflowState) (any, error) {
		o := s.get(mlflowExperiment, string(r.ExperimentID))
		if o == nil {
			return nil, missing(mlflowExperiment, string(r.ExperimentID))
		}
		return map[string]any{"experiment": s.experimentJSON(o)}, nil
	})
}

func (p *Push) experimentByName(r mlflowRequest, _ *http.Request) (any, error) {
	return p.view(func(s *mlflowState) (any, error) {
		for _, o := range s.list(mlflowExperiment) {
			if o.Name == r.ExperimentName {
				return map[string]any{"experiment": s.experimentJSON(o)}, nil
			}
		}
		return nil, missing(mlflowExperiment, r.ExperimentName)
	})
}

func (p *Push) searchExperiments(r mlflowRequest, _ *http.Request) (any, error) {
	keep, err := newMLflowFilter(r.Filter)
	if err != nil {
		return nil, err
	}
	return p.view(func(s *mlflowState) (any, error) {
		list := []any{}
		for _, o := range s.list(mlflowExperiment) {
			if keep.matches(o) {
				list = append(list, s.experimentJSON(o))
			}
		}
		return map[string]any{"experiments": list}, nil
	})
}

func (p *Push) updateExperiment(r mlflowRequest, _ *http.Request) (any, error) {
	return p.changeOf(mlflowExperiment, string(r.ExperimentID), mlflowEvent{Name: r.NewName, End: p.millis()}, nothing)
}

func (p *Push) tagExperiment(r mlflowRequest, at *http.Request) (any, error) {
	e, err := tagEvent(r, at)
	if err != nil {
		return nil, err
	}
	return p.changeOf(mlflowExperiment, string(r.ExperimentID), e, nothing)
}

// tagEvent sets a tag, or takes it away where the path says so.
func tagEvent(r mlflowRequest, at *http.Request) (mlflowEvent, error) {
	pairs := mlflowPairs{}
	if err := pairs.add(r.Key, r.text()); err != nil {
		return mlflowEvent{}, mlflowFault(mlflowInvalid, "%v", err)
	}
	if isDelete(at) {
		return mlflowEvent{Untag: []string{r.Key}}, nil
	}
	return mlflowEvent{Tags: pairs}, nil
}

// accept takes what is of no use here: the datasets and models of a run.
func (p *Push) accept(mlflowRequest, *http.Request) (any, error) { return struct{}{}, nil }

// listArtifacts is asked where an artifact's directory is not local.
func (p *Push) listArtifacts(r mlflowRequest, _ *http.Request) (any, error) {
	return p.view(func(s *mlflowState) (any, error) {
		run := s.get(mlflowRun, r.RunID)
		if run == nil {
			return nil, missing(mlflowRun, r.RunID)
		}
		return map[string]any{"root_uri": s.location(run.Experiment, run.ID, "artifacts")}, nil
	})
}

// metricHistory returns the points of a metric that is wanted, and of another the
// newest value. A page ends with the token of the next.
func (p *Push) metricHistory(r mlflowRequest, _ *http.Request) (any, error) {
	from, err := strconv.ParseInt(r.PageToken, 10, 64)
	if r.PageToken != "" && (err != nil || from < 0 || from > p.journal.lines.End()) {
		return nil, mlflowFault(mlflowInvalid, "the page token %.40q is not one of ours", r.PageToken)
	}
	newest, err := p.view(func(s *mlflowState) (any, error) {
		run := s.get(mlflowRun, r.RunID)
		if run == nil {
			return nil, missing(mlflowRun, r.RunID)
		}
		return run.Metrics[r.MetricKey], nil
	})
	if err != nil {
		return nil, err
	}
	list := []any{}
	next, err := p.journal.scan(from, func(e entry) (more bool) {
		for _, point := range e.Points {
			if e.Run == r.RunID && point.Metric == r.MetricKey {
				list = append(list, metricJSON(point.Metric, mlflowValue{point.Value, point.Step, point.Time / 1e6}))
			}
		}
		return len(list) < pageSize(r)
	})
	if err != nil {
		return nil, err
	}
	if v := newest.(mlflowValue); !p.wants(r.MetricKey) && v != (mlflowValue{}) {
		list = append(list, metricJSON(r.MetricKey, v))
	}
	said := map[string]any{"metrics": list}
	if next > 0 {
		said["next_page_token"] = strconv.FormatInt(next, 10)
	}
	return said, nil
}

func pageSize(r mlflowRequest) int {
	if n := int(r.MaxResults); n > 0 && n < mlflowPage {
		return n
	}
	return mlflowPage
}
