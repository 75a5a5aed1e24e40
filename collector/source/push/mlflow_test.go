package push

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// mlflow calls an endpoint and decodes its answer. A "{run}" in the body is the
// ID of the newest run.
func (p *pushed) mlflow(call, body string) (int, map[string]any) {
	p.t.Helper()
	method, path, _ := strings.Cut(call, " ")
	status, text := p.send(method, p.base+mlflowBase+path, body, "Content-Type", "application/json")
	var said map[string]any
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		p.t.Fatalf("%s: %d %q: %v", call, status, text, err)
	}
	return status, said
}

// must is mlflow for calls that succeed.
func (p *pushed) must(call, body string) map[string]any {
	p.t.Helper()
	status, said := p.mlflow(call, body)
	if status != http.StatusOK {
		p.t.Fatalf("%s %s: status %d: %v", call, body, status, said)
	}
	return said
}

// at walks through decoded JSON.
func at(v any, path ...any) any {
	for _, key := range path {
		switch k := key.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func (p *pushed) newRun(body string) string {
	p.t.Helper()
	id, _ := at(p.must("POST /runs/create", body), "run", "info", "run_id").(string)
	return id
}

// What the client of MLflow 3 sends for set_experiment, start_run, log_param,
// log_params, log_metric, log_metrics, set_tag, set_tags and end_run.
func TestMLflowTakesWhatItsClientSends(t *testing.T) {
	p := startPush(t, "", "loss", "acc")
	if status, said := p.mlflow("GET /experiments/get-by-name?experiment_name=e", ""); status != 404 || said["error_code"] != mlflowMissing {
		t.Errorf("an unknown experiment: %d %v", status, said)
	}
	if id := p.must("POST /experiments/create", `{"name": "e"}`)["experiment_id"]; id != "1" {
		t.Errorf("experiment %v", id)
	}
	run := p.newRun(`{"experiment_id": "1", "user_id": "root", "start_time": 1795284237256, "tags": [{"key": "mlflow.user", "value": "root"}]}`)
	with := func(s string) string { return strings.ReplaceAll(s, "RUN", run) }
	p.must("POST /runs/log-parameter", with(`{"run_uuid": "RUN", "key": "lr", "value": "0.1", "run_id": "RUN"}`))
	p.must("POST /runs/log-batch", with(`{"run_id": "RUN", "params": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]}`))
	p.must("POST /runs/log-metric", with(`{"run_uuid": "RUN", "key": "loss", "value": 0.5, "timestamp": 1795284237278, "step": 3, "run_id": "RUN"}`))
	p.must("POST /runs/log-metric", with(`{"run_id": "RUN", "key": "loss", "value": "NaN", "timestamp": 1795284237284, "step": 4}`))
	p.must("POST /runs/log-batch", with(`{"run_id": "RUN", "metrics": [
		{"key": "acc", "value": 0.5, "timestamp": 1795284237289, "step": 5, "run_id": "RUN"},
		{"key": "loss", "value": "Infinity", "timestamp": "1795284237289", "step": "5"},
		{"key": "not_wanted", "value": 9, "timestamp": 1795284237289, "step": 5}]}`))
	p.must("POST /runs/set-tag", with(`{"run_id": "RUN", "key": "t", "value": "v"}`))
	p.must("POST /runs/log-inputs", with(`{"run_id": "RUN", "datasets": []}`))
	info := at(p.must("POST /runs/update", with(`{"run_id": "RUN", "status": "FINISHED", "end_time": 1795284237346, "run_name": "named"}`)), "run_info")

	got := p.must("GET /runs/get?run_id="+run, "")
	want := map[string]any{
		"info": info,
		"data": map[string]any{
			"metrics": []any{
				map[string]any{"key": "acc", "value": 0.5, "timestamp": 1795284237289.0, "step": 5.0},
				map[string]any{"key": "loss", "value": "Infinity", "timestamp": 1795284237289.0, "step": 5.0},
				map[string]any{"key": "not_wanted", "value": 9.0, "timestamp": 1795284237289.0, "step": 5.0},
			},
			"params": []any{
				map[string]any{"key": "a", "value": "1"}, map[string]any{"key": "b", "value": "2"}, map[string]any{"key": "lr", "value": "0.1"},
			},
			"tags": []any{map[string]any{"key": "mlflow.runName", "value": "named"}, map[string]any{"key": "mlflow.user", "value": "root"}, map[string]any{"key": "t", "value": "v"}},
		},
	}
	if diff := cmp.Diff(want, got["run"]); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	wantInfo := map[string]any{
		"run_id": run, "run_uuid": run, "run_name": "named", "experiment_id": "1", "user_id": "root", "status": "FINISHED",
		"start_time": 1795284237256.0, "end_time": 1795284237346.0, "lifecycle_stage": "active",
		"artifact_uri": "/artifacts/1/" + run + "/artifacts",
	}
	if diff := cmp.Diff(wantInfo, info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	wantPoints := []string{"loss=0.5 at 3", "loss=NaN at 4", "acc=0.5 at 5", "loss=+Inf at 5"}
	if diff := cmp.Diff(wantPoints, p.end()); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// MLflow's client sends a request again when the answer was lost: by MLflow's own
// rule, equal run, metric, step, time and value are one point.
func TestMLflowBatchesMayBeSentAgain(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	run, other := first.newRun(`{}`), first.newRun(`{}`)
	batch := `{"run_id": %q, "metrics": [{"key": "loss", "value": 1, "timestamp": 7, "step": 1}, {"key": "loss", "value": 1, "timestamp": 7, "step": 1}, {"key": "loss", "value": 2, "timestamp": 7, "step": 2}]}`
	first.must("POST /runs/log-batch", fmt.Sprintf(batch, run))
	first.must("POST /runs/log-batch", fmt.Sprintf(batch, run))
	first.stop()
	<-first.done

	second := startPush(t, journal)
	second.must("POST /runs/log-batch", fmt.Sprintf(batch, run))
	second.must("POST /runs/log-metric", fmt.Sprintf(`{"run_id": %q, "key": "loss", "value": 1, "timestamp": 7, "step": 1}`, other))
	second.must("POST /runs/log-metric", fmt.Sprintf(`{"run_id": %q, "key": "loss", "value": 1, "timestamp": 8, "step": 1}`, run))
	want := []string{"loss=1 at 1", "loss=2 at 2", "loss=1 at 1", "loss=1 at 1"}
	if diff := cmp.Diff(want, second.end()); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// A program does not notice that the collector was killed: runs, experiments and
// models are there again.
func TestMLflowStateOutlivesAKill(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	first.must("POST /experiments/create", `{"name": "e", "tags": [{"key": "k", "value": "v"}]}`)
	run := first.newRun(`{"experiment_id": "1", "run_name": "r"}`)
	first.must("POST /runs/log-batch", fmt.Sprintf(`{"run_id": %q, "metrics": [{"key": "loss", "value": 1, "timestamp": 7, "step": 1}], "params": [{"key": "p", "value": "1"}]}`, run))
	model := at(first.must("POST /logged-models", fmt.Sprintf(`{"experiment_id": "1", "name": "m", "source_run_id": %q, "params": [{"key": "p", "value": "1"}]}`, run)), "model", "info", "model_id")
	asked := []string{"GET /experiments/get?experiment_id=1", "GET /runs/get?run_id=" + run, fmt.Sprint("GET /logged-models/", model)}
	var before []any
	for _, call := range asked {
		before = append(before, first.must(call, ""))
	}
	first.stop()
	<-first.done
	second := startPush(t, journal)
	for i, call := range asked {
		if diff := cmp.Diff(before[i], any(second.must(call, ""))); diff != "" {
			t.Errorf("%s (-before +after):\n%s", call, diff)
		}
	}
	if again := second.newRun(`{"experiment_id": "1"}`); again == run || again == "" {
		t.Errorf("a new run is %q, like %q", again, run)
	}
}

func TestMLflowSaysWhatIsWrong(t *testing.T) {
	p := startPush(t, "")
	run := p.newRun(`{}`)
	p.must("POST /experiments/create", `{"name": "e"}`)
	tests := map[string]struct {
		call, body string
		status     int
		code       string
	}{
		"an unknown run":             {"GET /runs/get?run_id=x", "", 404, mlflowMissing},
		"metrics of an unknown run":  {"POST /runs/log-metric", `{"run_id": "x", "key": "loss", "value": 1, "timestamp": 1}`, 404, mlflowMissing},
		"tags of an unknown run":     {"POST /runs/set-tag", `{"run_id": "x", "key": "k", "value": "1"}`, 404, mlflowMissing},
		"a run of no experiment":     {"POST /runs/create", `{"experiment_id": "7"}`, 404, mlflowMissing},
		"an unknown model":           {"PATCH /logged-models/m-1", `{"status": "LOGGED_MODEL_READY"}`, 404, mlflowMissing},
		"an experiment twice":        {"POST /experiments/create", `{"name": "e"}`, 400, mlflowExists},
		"an experiment without name": {"POST /experiments/create", `{}`, 400, mlflowInvalid},
		"a value that is no number":  {"POST /runs/log-metric", `{"run_id": "RUN", "key": "loss", "value": "high"}`, 400, mlflowInvalid},
		"a value that is missing":    {"POST /runs/log-metric", `{"run_id": "RUN", "key": "loss"}`, 400, mlflowInvalid},
		"a metric without name":      {"POST /runs/log-metric", `{"run_id": "RUN", "value": 1}`, 400, mlflowInvalid},
		"a tag without name":         {"POST /runs/set-tag", `{"run_id": "RUN", "value": "1"}`, 400, mlflowInvalid},
		"no JSON":                    {"POST /runs/log-batch", `{"run_id"`, 400, mlflowInvalid},
		"a list that is none":        {"POST /runs/log-batch", `{"run_id": "RUN", "metrics": {}}`, 400, mlflowInvalid},
		"more metrics than allowed":  {"POST /runs/log-batch", `{"run_id": "RUN", "metrics": [` + strings.Repeat(`{},`, maxMLflowList) + `{}]}`, 400, mlflowInvalid},
		"a step that is no number":   {"POST /runs/log-metric", `{"run_id": "RUN", "key": "loss", "value": 1, "step": "two"}`, 400, mlflowInvalid},
		"a search":                   {"POST /runs/search", `{"filter": "metrics.loss < 1"}`, 404, mlflowUnserved},
		"traces":                     {"POST /traces", `{}`, 404, mlflowUnserved},
		"too large a body":           {"POST /runs/log-batch", `{"x": "` + strings.Repeat("x", maxBody) + `"}`, 413, mlflowInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p.t = t
			status, said := p.mlflow(tc.call, strings.ReplaceAll(tc.body, "RUN", run))
			if status != tc.status || said["error_code"] != tc.code || said["message"] == "" {
				t.Errorf("%d %v, want %d %s", status, said, tc.status, tc.code)
			}
		})
	}
	p.t = t
	if got := p.end(); got != nil {
		t.Errorf("points: %v", got)
	}
}

func TestMLflowForgetsBeyondItsRoom(t *testing.T) {
	s := newMLflowState(Config{})
	s.change(mlflowEvent{Kind: mlflowRun, ID: "r"})
	for i := range 2 * maxMLflowBytes / maxMLflowText {
		s.change(mlflowEvent{Kind: mlflowRun, ID: "r", Tags: map[string]string{fmt.Sprint(i): strings.Repeat("x", maxMLflowText)}})
	}
	s.change(mlflowEvent{Kind: mlflowRun, ID: "r", Status: "FINISHED"})
	run := s.objects[mlflowRun]["r"]
	if n := len(run.Tags) * maxMLflowText; n > maxMLflowBytes || n < maxMLflowBytes*9/10 || run.Status != "FINISHED" {
		t.Errorf("%d bytes of tags, status %q", n, run.Status)
	}
	for i := range maxMLflowObjects {
		s.objects[mlflowModel][fmt.Sprint(i)] = &mlflowObject{}
	}
	if id, err := s.newID(mlflowModel); err == nil {
		t.Errorf("one more model: %s", id)
	}
}

// A status that is kept in a tag, and a metric, may change for as long as a run lasts.
func TestMLflowCountsWhatIsSetAgainOnce(t *testing.T) {
	s := newMLflowState(Config{})
	s.change(mlflowEvent{Kind: mlflowRun, ID: "r"})
	text := strings.Repeat("x", maxMLflowText)
	for i := range 2 * maxMLflowBytes / maxMLflowText {
		s.change(mlflowEvent{Kind: mlflowRun, ID: "r", Tags: map[string]string{"progress": text}})
		s.measure("r", collector.Record{Metric: "loss", Value: "1", Step: int64(i)})
	}
	s.change(mlflowEvent{Kind: mlflowRun, ID: "r", Tags: map[string]string{"progress": "done"}, Params: map[string]string{"lr": "0.1"}})
	s.measure("r", collector.Record{Metric: "acc", Value: "0.9"})
	run := s.objects[mlflowRun]["r"]
	if run.Tags["progress"] != "done" || run.Params["lr"] != "0.1" || run.metrics["acc"].Value != "0.9" {
		t.Errorf("tags %v, params %v, metrics %v", run.Tags, run.Params, run.metrics)
	}
	if s.size > 1<<10 {
		t.Errorf("%d bytes are counted", s.size)
	}
}

// LightGBM's autologging reads back what it logged.
func TestMLflowShowsTheHistoryOfAMetric(t *testing.T) {
	p := startPush(t, "", "loss")
	run := p.newRun(`{}`)
	for i := range 3 {
		p.must("POST /runs/log-batch", fmt.Sprintf(`{"run_id": %q, "metrics": [{"key": "loss", "value": %d, "timestamp": 1, "step": %d}, {"key": "other", "value": %d, "timestamp": 1, "step": %d}]}`, run, i, i, i, i))
	}
	for metric, want := range map[string][]any{"loss": {0.0, 1.0, 2.0}, "other": {2.0}} {
		list, _ := p.must(fmt.Sprintf("GET /metrics/get-history?run_id=%s&metric_key=%s", run, metric), "")["metrics"].([]any)
		var values []any
		for _, m := range list {
			values = append(values, at(m, "value"))
		}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("%s (-want +got):\n%s", metric, diff)
		}
	}
}
