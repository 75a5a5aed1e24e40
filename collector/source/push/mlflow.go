package push

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	mlflowBase = "/api/2.0/mlflow"
	// mlflowVersion is what clients are told: the first that has logged models, and
	// before those whose clients would send traces.
	mlflowVersion = "3.0.0"
)

// Codes of MLflow's errors.
const (
	mlflowMissing  = "RESOURCE_DOES_NOT_EXIST"
	mlflowExists   = "RESOURCE_ALREADY_EXISTS"
	mlflowInvalid  = "INVALID_PARAMETER_VALUE"
	mlflowUnserved = "ENDPOINT_NOT_FOUND"
	mlflowFull     = "RESOURCE_LIMIT_EXCEEDED"
)

// mlflow is as much of MLflow's tracking as its client needs to log metrics, and
// its autologging to run: the objects of one trial, which are made, changed and
// shown. Nothing is searched.
type mlflow struct {
	in     *intake
	state  *mlflowState // guarded by the journal's lock
	points *window      // likewise
}

func newMLflow(in *intake, cfg Config) *mlflow {
	return &mlflow{in: in, state: newMLflowState(cfg), points: newWindow()}
}

func (m *mlflow) apply(e entry) {
	if e.Event != nil {
		m.state.change(*e.Event)
	}
	if e.Run == "" {
		return
	}
	for _, p := range e.Points {
		m.points.add(identity(e.Run, p))
		m.state.measure(e.Run, p)
	}
}

// mlflowError is an answer that says why not.
type mlflowError struct{ code, message string }

// Error implements error.
func (e *mlflowError) Error() string { return e.message }

func mlflowFault(code, format string, args ...any) error {
	return &mlflowError{code, fmt.Sprintf(format, args...)}
}

func mlflowMissed(kind, id string) error {
	return mlflowFault(mlflowMissing, "there is no %s %q in this trial", kind, id)
}

// mlflowCall answers one kind of request.
type mlflowCall func(r mlflowRequest) (any, error)

func (m *mlflow) calls() map[string]mlflowCall {
	accept := func(mlflowRequest) (any, error) { return struct{}{}, nil } // datasets and models of a run
	return map[string]mlflowCall{
		"POST /experiments/create":             m.createExperiment,
		"GET /experiments/get":                 m.get(mlflowExperiment),
		"GET /experiments/get-by-name":         m.experimentByName,
		"POST /experiments/set-experiment-tag": m.change(mlflowExperiment),
		"POST /runs/create":                    m.createRun,
		"GET /runs/get":                        m.get(mlflowRun),
		"POST /runs/update":                    m.change(mlflowRun),
		"POST /runs/log-metric":                m.logBatch,
		"POST /runs/log-batch":                 m.logBatch,
		"POST /runs/log-parameter":             m.logBatch,
		"POST /runs/set-tag":                   m.change(mlflowRun),
		"POST /runs/delete-tag":                m.change(mlflowRun),
		"POST /runs/log-inputs":                accept,
		"POST /runs/log-model":                 accept,
		"POST /runs/outputs":                   accept,
		"GET /metrics/get-history":             m.history,
		"POST /logged-models":                  m.createModel,
		"GET /logged-models/{model}":           m.get(mlflowModel),
		"PATCH /logged-models/{model}":         m.change(mlflowModel),
		"PATCH /logged-models/{model}/tags":    m.change(mlflowModel),
		"POST /logged-models/{model}/params":   m.change(mlflowModel),
	}
}

func (m *mlflow) serveOn(mux *http.ServeMux) {
	for pattern, call := range m.calls() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+mlflowBase+path, func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, path, call) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		answerMLflow(w, mlflowFault(mlflowUnserved, "%s %s is not served: this is the collector of a trial, not a whole tracking server", r.Method, r.URL.Path))
	})
	for path, said := range map[string]string{"/health": "OK", "/version": mlflowVersion} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(said)) })
	}
}

func (m *mlflow) serve(w http.ResponseWriter, r *http.Request, path string, call mlflowCall) {
	body, release, err := m.in.body(w, r, maxBody)
	if err != nil {
		answerMLflow(w, err)
		return
	}
	defer release()
	request, err := decodeMLflow(path, body, r)
	if err != nil {
		answerMLflow(w, mlflowFault(mlflowInvalid, "%v", err))
		return
	}
	said, err := call(request)
	if err != nil {
		answerMLflow(w, err)
		return
	}
	answer(w, http.StatusOK, said)
}

// answerMLflow says why not, as MLflow's client reads it.
func answerMLflow(w http.ResponseWriter, err error) {
	status := statusOf(err)
	fault := &mlflowError{"INTERNAL_ERROR", err.Error()}
	if errors.As(err, &fault) {
		status = http.StatusBadRequest
		if fault.code == mlflowMissing || fault.code == mlflowUnserved {
			status = http.StatusNotFound
		}
	} else if code := map[int]string{
		http.StatusGone: "INVALID_STATE", http.StatusInsufficientStorage: mlflowFull, http.StatusServiceUnavailable: "TEMPORARILY_UNAVAILABLE",
		http.StatusBadRequest: mlflowInvalid, http.StatusRequestEntityTooLarge: mlflowInvalid,
	}[status]; code != "" {
		fault.code = code
	}
	answer(w, status, map[string]string{"error_code": fault.code, "message": fault.message})
}

// write writes down what build makes of the present state, and returns what is
// shown of the object that it changed.
func (m *mlflow) write(build func() (entry, error)) (said any, err error) {
	var fault error
	err = m.in.journal.append(func() (entry, bool) {
		e, err := build()
		fault = err
		return e, err == nil && (e.Event != nil || len(e.Points) > 0)
	})
	return struct{}{}, errors.Join(fault, err)
}

// create writes down a new object, and shows it. check may refuse it.
func (m *mlflow) create(kind string, check func() error, o mlflowEvent) (any, error) {
	_, err := m.write(func() (entry, error) {
		if err := check(); err != nil {
			return entry{}, err
		}
		var err error
		o.Kind, o.Start = kind, cmp.Or(o.Start, m.in.clock.Now().UnixMilli())
		o.ID, err = m.state.newID(kind)
		o.Name = cmp.Or(o.Name, o.ID)
		return entry{Event: &o}, err
	})
	if err != nil {
		return nil, err
	}
	return m.show(kind, o.ID)
}

func (m *mlflow) show(kind, id string) (any, error) {
	m.in.journal.mu.Lock()
	defer m.in.journal.mu.Unlock()
	o := m.state.objects[kind][id]
	if o == nil {
		return nil, mlflowMissed(kind, id)
	}
	return m.state.json(o), nil
}

func (m *mlflow) get(kind string) mlflowCall {
	return func(r mlflowRequest) (any, error) { return m.show(kind, r.id(kind)) }
}

// change changes an object and shows it.
func (m *mlflow) change(kind string) mlflowCall {
	return func(r mlflowRequest) (any, error) {
		if len(r.Status)+len(r.RunName) > 2*maxMLflowName {
			return nil, mlflowFault(mlflowInvalid, "the status or the name is too long")
		}
		e := mlflowEvent{Kind: kind, ID: r.id(kind), Status: r.Status, Name: r.RunName, Params: r.Params, Tags: r.Tags, End: r.EndTime.int(), Untag: r.untag}
		if r.RunName != "" {
			e.Tags = map[string]string{tagRunName: r.RunName}
		}
		if _, err := m.write(func() (entry, error) {
			if m.state.objects[kind][e.ID] == nil {
				return entry{}, mlflowMissed(kind, e.ID)
			}
			return entry{Event: &e}, nil
		}); err != nil {
			return nil, err
		}
		return m.show(kind, e.ID)
	}
}

func (m *mlflow) createExperiment(r mlflowRequest) (any, error) {
	if r.Name == "" || len(r.Name) > 2*maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the name has %d bytes; it must have 1 to %d", len(r.Name), 2*maxMLflowName)
	}
	return m.create(mlflowExperiment, func() error {
		if m.state.named(r.Name) != nil {
			return mlflowFault(mlflowExists, "the experiment %q exists already", r.Name)
		}
		return nil
	}, mlflowEvent{Name: r.Name, Tags: r.Tags})
}

func (m *mlflow) experimentByName(r mlflowRequest) (any, error) {
	m.in.journal.mu.Lock()
	defer m.in.journal.mu.Unlock()
	if o := m.state.named(r.ExperimentName); o != nil {
		return m.state.json(o), nil
	}
	return nil, mlflowMissed(mlflowExperiment, r.ExperimentName)
}

// exists refuses what belongs to an object that is not there.
func (m *mlflow) exists(kind, id string) error {
	if id != "" && m.state.objects[kind][id] == nil {
		return mlflowMissed(kind, id)
	}
	return nil
}

func (m *mlflow) createRun(r mlflowRequest) (any, error) {
	tags := mlflowPairs{}
	maps.Copy(tags, r.Tags)
	name := cutMLflow(cmp.Or(r.RunName, tags[tagRunName], m.state.trial, "trial"), maxMLflowName)
	tags[tagRunName] = name
	experiment := cmp.Or(r.ExperimentID, "0")
	return m.create(mlflowRun, func() error { return m.exists(mlflowExperiment, experiment) }, mlflowEvent{
		Experiment: experiment, Name: name, User: cutMLflow(r.UserID, maxMLflowName), Status: "RUNNING", Start: r.StartTime.int(), Tags: tags,
	})
}

func (m *mlflow) createModel(r mlflowRequest) (any, error) {
	if len(r.Name) > maxMLflowName || len(r.ModelType) > maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the name or the type of the model has more than %d bytes", maxMLflowName)
	}
	experiment := cmp.Or(r.ExperimentID, "0")
	return m.create(mlflowModel, func() error {
		return cmp.Or(m.exists(mlflowExperiment, experiment), m.exists(mlflowRun, r.SourceRunID))
	}, mlflowEvent{
		Experiment: experiment, Run: r.SourceRunID, Name: r.Name, Type: r.ModelType, Status: "LOGGED_MODEL_PENDING", Params: r.Params, Tags: r.Tags,
	})
}

// logBatch takes metrics, parameters and tags of a run, all or nothing. As in
// MLflow, a point is the same as another of equal run, metric, step, time and
// value, so that a batch may be sent again.
func (m *mlflow) logBatch(r mlflowRequest) (any, error) {
	points, err := m.measured(r.Metrics)
	if err != nil {
		return nil, err
	}
	return m.write(func() (entry, error) {
		run := m.state.objects[mlflowRun][r.RunID]
		if run == nil {
			return entry{}, mlflowMissed(mlflowRun, r.RunID)
		}
		for _, key := range slices.Sorted(maps.Keys(r.Params)) {
			if old, known := run.Params[key]; known && old != r.Params[key] {
				return entry{}, mlflowFault(mlflowInvalid, "the parameter %.80q of run %s is %.80q already and cannot become %.80q: a parameter is logged once", key, run.ID, old, r.Params[key])
			}
		}
		e := entry{Run: run.ID, Points: m.fresh(run.ID, points)}
		if len(r.Params)+len(r.Tags) > 0 {
			e.Event = &mlflowEvent{Kind: mlflowRun, ID: run.ID, Params: r.Params, Tags: r.Tags}
		}
		for _, point := range points {
			m.state.measure(run.ID, point)
		}
		return e, nil
	})
}

// history returns the points of a metric that is wanted, up to maxMLflowHistory,
// and of another the newest: LightGBM's autologging asks for it.
func (m *mlflow) history(r mlflowRequest) (any, error) {
	m.in.journal.mu.Lock()
	run := m.state.objects[mlflowRun][r.RunID]
	m.in.journal.mu.Unlock()
	if run == nil {
		return nil, mlflowMissed(mlflowRun, r.RunID)
	}
	list := []any{}
	err := m.in.journal.scan(func(e entry) (more bool) {
		for _, p := range e.Points {
			if e.Run == r.RunID && p.Metric == r.MetricKey {
				list = append(list, metricJSON(p))
			}
		}
		return len(list) < maxMLflowHistory
	})
	m.in.journal.mu.Lock()
	defer m.in.journal.mu.Unlock()
	if p, known := run.metrics[r.MetricKey]; known && len(list) == 0 {
		list = append(list, metricJSON(p))
	}
	return map[string]any{"metrics": list}, err
}

// fresh returns the wanted points that were not taken before.
func (m *mlflow) fresh(run string, points []entryPoint) (out []entryPoint) {
	batch := map[digest]bool{}
	for _, point := range points {
		d := identity(run, point)
		if m.in.wants(point.Metric) && !m.points.has(d) && !batch[d] {
			batch[d] = true
			out = append(out, point)
		}
	}
	return out
}

// measured are the points of a request. MLflow's own server too wants a time.
func (m *mlflow) measured(metrics []mlflowPair) ([]entryPoint, error) {
	points := make([]entryPoint, len(metrics))
	for i, one := range metrics {
		v, err := one.number()
		switch {
		case err != nil:
			return nil, mlflowFault(mlflowInvalid, "%v", err)
		case one.Key == "" || len(one.Key) > maxMLflowName:
			return nil, mlflowFault(mlflowInvalid, "the name of a metric has %d bytes; it must have 1 to %d", len(one.Key), maxMLflowName)
		case one.Timestamp == "":
			return nil, mlflowFault(mlflowInvalid, "metric %.80q has no timestamp: give the time of the value in milliseconds since 1970", one.Key)
		}
		sample := parse.Sample{Metric: one.Key, Value: v, Step: max(one.Step.int(), 0), Time: time.UnixMilli(one.Timestamp.int())}
		points[i] = newEntryPoint(sample, m.in.clock.Now())
	}
	return points, nil
}

// mlflowPairs are tags or parameters.
type mlflowPairs map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *mlflowPairs) UnmarshalJSON(b []byte) error {
	var list mlflowList
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*p = mlflowPairs{}
	for _, kv := range list {
		if err := p.add(kv); err != nil {
			return err
		}
	}
	return nil
}

func (p mlflowPairs) add(kv mlflowPair) error {
	if kv.Key == "" || len(kv.Key) > maxMLflowName {
		return fmt.Errorf("the key %.40q has %d bytes; it must have 1 to %d", kv.Key, len(kv.Key), maxMLflowName)
	}
	p[kv.Key] = cutMLflow(kv.text(), maxMLflowText)
	return nil
}
