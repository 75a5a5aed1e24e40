package push

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/vernier-ml/vernier/collector"
)

const (
	mlflowBase = "/api/2.0/mlflow"
	// mlflowVersion is what clients are told: the first that has logged models, and
	// before those whose clients would send traces.
	mlflowVersion = "3.0.0"
	// tagRunName is the tag that holds the name of a run.
	tagRunName = "mlflow.runName"
	// maxMLflowHistory is about how many points of a metric are shown.
	maxMLflowHistory = 25_000
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

func invalid(err error) error { return mlflowFault(mlflowInvalid, "%v", err) }

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
		"POST /runs/log-metric":                m.logMetric,
		"POST /runs/log-batch":                 m.logBatch,
		"POST /runs/log-parameter":             m.logParameter,
		"POST /runs/set-tag":                   m.change(mlflowRun),
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
		mux.HandleFunc(method+" "+mlflowBase+path, func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, call) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		answerMLflow(w, mlflowFault(mlflowUnserved, "%s %s is not served: this is the collector of a trial, not a whole tracking server", r.Method, r.URL.Path))
	})
	for path, said := range map[string]string{"/health": "OK", "/version": mlflowVersion} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(said)) })
	}
}

func (m *mlflow) serve(w http.ResponseWriter, r *http.Request, call mlflowCall) {
	body, release, err := m.in.body(w, r, maxBody)
	if err != nil {
		answerMLflow(w, err)
		return
	}
	defer release()
	request, err := decodeMLflow(body, r)
	var said any
	if err == nil {
		said, err = call(request)
	} else {
		err = invalid(err)
	}
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
func (m *mlflow) create(r mlflowRequest, kind string, check func() error, o mlflowEvent) (any, error) {
	var errs [3]error
	o.Kind = kind
	o.Start, errs[0] = mlflowInt(r.Get("start_time"))
	o.Start = cmp.Or(o.Start, m.in.clock.Now().UnixMilli())
	o.Tags, errs[1] = r.pairs("tags")
	o.Params, errs[2] = r.pairs("params")
	if err := cmp.Or(errs[0], errs[1], errs[2]); err != nil {
		return nil, invalid(err)
	}
	if kind == mlflowRun {
		o.Tags[tagRunName] = o.Name
	}
	_, err := m.write(func() (entry, error) {
		if err := check(); err != nil {
			return entry{}, err
		}
		var err error
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
		e := mlflowEvent{Kind: kind, ID: r.id(kind), Status: r.text("status"), Name: r.text("run_name")}
		var errs [3]error
		e.End, errs[0] = mlflowInt(r.Get("end_time"))
		e.Tags, errs[1] = r.pairs("tags")
		if kind == mlflowModel {
			e.Params, errs[2] = r.pairs("params")
		}
		if err := cmp.Or(errs[0], errs[1], errs[2]); err != nil {
			return nil, invalid(err)
		}
		if len(e.Status)+len(e.Name) > 2*maxMLflowName {
			return nil, mlflowFault(mlflowInvalid, "the status or the name is too long")
		}
		if e.Name != "" {
			e.Tags[tagRunName] = e.Name
		}
		if _, err := m.write(func() (entry, error) { return entry{Event: &e}, m.exists(kind, e.ID) }); err != nil {
			return nil, err
		}
		return m.show(kind, e.ID)
	}
}

func (m *mlflow) createExperiment(r mlflowRequest) (any, error) {
	name := r.text("name")
	if name == "" || len(name) > 2*maxMLflowName {
		return nil, mlflowFault(mlflowInvalid, "the name has %d bytes; it must have 1 to %d", len(name), 2*maxMLflowName)
	}
	return m.create(r, mlflowExperiment, func() error {
		if m.state.named(name) != nil {
			return mlflowFault(mlflowExists, "the experiment %q exists already", name)
		}
		return nil
	}, mlflowEvent{Name: name})
}

func (m *mlflow) experimentByName(r mlflowRequest) (any, error) {
	m.in.journal.mu.Lock()
	defer m.in.journal.mu.Unlock()
	if o := m.state.named(r.text("experiment_name")); o != nil {
		return m.state.json(o), nil
	}
	return nil, mlflowMissed(mlflowExperiment, r.text("experiment_name"))
}

// exists refuses what belongs to an object that is not there.
func (m *mlflow) exists(kind, id string) error {
	if m.state.objects[kind][id] == nil {
		return mlflowMissed(kind, id)
	}
	return nil
}

func (m *mlflow) createRun(r mlflowRequest) (any, error) {
	experiment := cmp.Or(r.text("experiment_id"), "0")
	named := r.Get(`tags.#(key=="` + tagRunName + `").value`).String()
	return m.create(r, mlflowRun, func() error { return m.exists(mlflowExperiment, experiment) }, mlflowEvent{
		Experiment: experiment, Name: cutMLflow(cmp.Or(r.text("run_name"), named, m.state.trial, "trial"), maxMLflowName),
		User: cutMLflow(r.text("user_id"), maxMLflowName), Status: "RUNNING",
	})
}

func (m *mlflow) createModel(r mlflowRequest) (any, error) {
	e := mlflowEvent{
		Experiment: cmp.Or(r.text("experiment_id"), "0"), Run: r.text("source_run_id"), Status: "LOGGED_MODEL_PENDING",
		Name: cutMLflow(r.text("name"), maxMLflowName), Type: cutMLflow(r.text("model_type"), maxMLflowName),
	}
	return m.create(r, mlflowModel, func() error {
		if err := m.exists(mlflowExperiment, e.Experiment); err != nil || e.Run == "" {
			return err
		}
		return m.exists(mlflowRun, e.Run)
	}, e)
}

func (m *mlflow) logMetric(r mlflowRequest) (any, error) {
	return m.log(r.id(mlflowRun), []gjson.Result{r.Result}, nil, nil)
}

func (m *mlflow) logParameter(r mlflowRequest) (any, error) {
	params, err := r.pairs("params")
	if err != nil {
		return nil, invalid(err)
	}
	return m.log(r.id(mlflowRun), nil, params, nil)
}

func (m *mlflow) logBatch(r mlflowRequest) (any, error) {
	metrics, err := r.list("metrics")
	params, errParams := r.pairs("params")
	tags, errTags := r.pairs("tags")
	if err := cmp.Or(err, errParams, errTags); err != nil {
		return nil, invalid(err)
	}
	return m.log(r.id(mlflowRun), metrics, params, tags)
}

// log takes metrics, parameters and tags of a run, all or nothing. As in MLflow, a
// point is the same as another of equal run, metric, step, time and value, so that a
// batch may be sent again.
func (m *mlflow) log(id string, metrics []gjson.Result, params, tags map[string]string) (any, error) {
	var samples []collector.Point
	for _, one := range metrics {
		sample, err := mlflowSample(one)
		if err != nil {
			return nil, invalid(err)
		}
		samples = append(samples, sample)
	}
	points := m.in.records(samples)
	return m.write(func() (entry, error) {
		run := m.state.objects[mlflowRun][id]
		if run == nil {
			return entry{}, mlflowMissed(mlflowRun, id)
		}
		for _, key := range slices.Sorted(maps.Keys(params)) {
			if old, known := run.Params[key]; known && old != params[key] {
				return entry{}, mlflowFault(mlflowInvalid, "the parameter %.80q of run %s is %.80q already and cannot become %.80q: a parameter is logged once", key, run.ID, old, params[key])
			}
		}
		e := entry{Run: run.ID}
		taken := map[string]bool{}
		for _, point := range points {
			m.state.measure(run.ID, point)
			d := identity(run.ID, point)
			if m.in.wants(point.Metric) && !m.points.has(d) && !taken[d] {
				taken[d] = true
				e.Points = append(e.Points, point)
			}
		}
		if len(params)+len(tags) > 0 {
			e.Event = &mlflowEvent{Kind: mlflowRun, ID: run.ID, Params: params, Tags: tags}
		}
		return e, nil
	})
}

// history returns the points of a metric that is wanted, up to maxMLflowHistory,
// and of another the newest: LightGBM's autologging asks for it.
func (m *mlflow) history(r mlflowRequest) (any, error) {
	id, metric := r.id(mlflowRun), r.text("metric_key")
	m.in.journal.mu.Lock()
	run := m.state.objects[mlflowRun][id]
	m.in.journal.mu.Unlock()
	if run == nil {
		return nil, mlflowMissed(mlflowRun, id)
	}
	list := []any{}
	err := m.in.journal.scan(func(e entry) (more bool) {
		for _, p := range e.Points {
			if e.Run == id && p.Metric == metric {
				list = append(list, metricJSON(p))
			}
		}
		return len(list) < maxMLflowHistory
	})
	m.in.journal.mu.Lock()
	defer m.in.journal.mu.Unlock()
	if p, known := run.metrics[metric]; known && len(list) == 0 {
		list = append(list, metricJSON(p))
	}
	return map[string]any{"metrics": list}, err
}
