package push

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What MLflow's own server refuses is refused here.
func TestMLflowRefusesWhatItsServerDoes(t *testing.T) {
	tests := map[string]struct {
		call, body string
		want       string // in the message; empty: it is taken
	}{
		"a metric without a time":             {"log-metric", `{"run_id": "RUN", "key": "loss", "value": 1, "step": 2}`, `"loss" has no timestamp`},
		"a metric whose time is null":         {"log-metric", `{"run_id": "RUN", "key": "loss", "value": 1, "timestamp": null}`, `"loss" has no timestamp`},
		"one of a batch without a time":       {"log-batch", `{"run_id": "RUN", "metrics": [{"key": "loss", "value": 1, "timestamp": 5}, {"key": "acc", "value": 2}]}`, `"acc" has no timestamp`},
		"the same value of a parameter":       {"log-parameter", `{"run_id": "RUN", "key": "lr", "value": "0.1"}`, ""},
		"another value of a parameter":        {"log-parameter", `{"run_id": "RUN", "key": "lr", "value": "0.2"}`, `is "0.1" already and cannot become "0.2"`},
		"another value of one, with a metric": {"log-batch", `{"run_id": "RUN", "params": [{"key": "lr", "value": "0.2"}], "metrics": [{"key": "loss", "value": 1, "timestamp": 5}]}`, `a parameter is logged once`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, "")
			run := p.newRun(`{}`)
			p.must("POST /runs/log-parameter", fmt.Sprintf(`{"run_id": %q, "key": "lr", "value": "0.1"}`, run))
			status, said := p.mlflow("POST /runs/"+tc.call, strings.ReplaceAll(tc.body, "RUN", run))
			if tc.want == "" && status != http.StatusOK {
				t.Errorf("%d %v, want that it is taken", status, said)
			}
			if tc.want != "" && (status != http.StatusBadRequest || said["error_code"] != mlflowInvalid || !strings.Contains(fmt.Sprint(said["message"]), tc.want)) {
				t.Errorf("%d %v, want 400 with %q", status, said, tc.want)
			}
			params := at(p.must("GET /runs/get?run_id="+run, ""), "run", "data", "params")
			if d := cmp.Diff([]any{map[string]any{"key": "lr", "value": "0.1"}}, params); d != "" {
				t.Errorf("parameters (-want +got):\n%s", d)
			}
			if got := p.end(); got != nil {
				t.Errorf("points: %v", got)
			}
		})
	}
}

func TestMLflowSaysThatItIsThere(t *testing.T) {
	p := startPush(t, "")
	for path, want := range map[string]string{"/health": "OK", "/version": mlflowVersion} {
		if status, said := p.send(http.MethodGet, p.base+path, ""); status != http.StatusOK || said != want {
			t.Errorf("%s: %d %q, want 200 %q", path, status, said, want)
		}
	}
}

// A long text is cut, and the cut is the same after a kill.
func TestALongTextIsTheSameWhenItIsLoggedAgain(t *testing.T) {
	tests := map[string]string{
		"the cut falls between characters": strings.Repeat("x", maxMLflowText+5),
		"the cut falls within one of two":  "x" + strings.Repeat("é", maxMLflowText),
		"the cut falls within one of four": "xx" + strings.Repeat("\U0001F600", maxMLflowText/3),
	}
	for name, value := range tests {
		t.Run(name, func(t *testing.T) {
			journal := filepath.Join(t.TempDir(), "journal")
			first := startPush(t, journal)
			run := first.newRun(fmt.Sprintf(`{"run_name": %q, "user_id": %q}`, value, value))
			body := fmt.Sprintf(`{"run_id": %q, "key": "p", "value": %q}`, run, value)
			first.must("POST /runs/log-parameter", body)
			before := first.must("GET /runs/get?run_id="+run, "")
			first.stop()
			<-first.done
			second := startPush(t, journal)
			second.must("POST /runs/log-parameter", body)
			if d := cmp.Diff(before, second.must("GET /runs/get?run_id="+run, "")); d != "" {
				t.Errorf("the run after a kill (-before +after):\n%s", d)
			}
		})
	}
}
