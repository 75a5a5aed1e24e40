package push

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const trainerPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/random-0001/status"

func TestTrainerStatus(t *testing.T) {
	tests := map[string]struct {
		bodies []string
		status int
		want   []string
	}{
		"metrics with the step of HF Transformers": {
			bodies: []string{`{"trainerStatus": {"lastUpdatedTime": "2026-01-02T03:04:05.678901+00:00", "progressPercentage": 10, "metrics": [
				{"name": "loss", "value": "0.50"}, {"name": "current_step", "value": "30"}, {"name": "eval_loss", "value": "nan"}]}}`},
			status: 200, want: []string{"loss=0.5 at 30 written 0.50", "eval_loss=NaN at 30"},
		},
		"a value that was sent before is no new measurement": {
			bodies: []string{
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.5"}, {"name": "eval_loss", "value": "0.7"}]}}`,
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.4"}, {"name": "eval_loss", "value": "0.7"}]}}`,
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.4"}, {"name": "eval_loss", "value": "0.7"}]}}`,
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.5"}]}}`,
			},
			status: 200, want: []string{"loss=0.5 at -1", "eval_loss=0.7 at -1", "loss=0.4 at -1", "loss=0.5 at -1"},
		},
		"the last status of HF Transformers has no step": {
			bodies: []string{
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.5"}, {"name": "current_step", "value": "5"}]}}`,
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.5"}, {"name": "current_step", "value": "10"}]}}`,
				`{"trainerStatus": {"metrics": [{"name": "loss", "value": "0.4"}]}}`,
			},
			status: 200, want: []string{"loss=0.5 at 5", "loss=0.4 at 10"},
		},
		"progress alone":        {bodies: []string{`{"trainerStatus": {"progressPercentage": 50}}`}, status: 200},
		"no status":             {bodies: []string{`{}`}, status: 200},
		"a value with no sense": {bodies: []string{`{"trainerStatus": {"metrics": [{"name": "loss", "value": "tensor(1)"}]}}`}, status: 200, want: []string{"loss=NaN at -1 written tensor(1)"}},
		"no JSON":               {bodies: []string{`{`}, status: 422},
		"a number where Trainer has text": {
			bodies: []string{`{"trainerStatus": {"metrics": [{"name": "loss", "value": 1}]}}`}, status: 422,
		},
		"more than Trainer takes": {bodies: []string{`{"x": "` + strings.Repeat("x", maxTrainerBody) + `"}`}, status: 413},
		"more metrics than there are": {
			bodies: []string{`{"trainerStatus": {"metrics": [` + strings.Repeat(`{"name":"x","value":"1"},`, maxTrainerMetrics) + `{}]}}`}, status: 422,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, "", "loss", "eval_loss")
			for _, body := range tc.bodies {
				if status, text := p.send(http.MethodPost, p.base+trainerPath, body, "Authorization", "Bearer "+pushToken); status != tc.status {
					t.Errorf("status %d (%s), want %d", status, text, tc.status)
				}
			}
			if diff := cmp.Diff(tc.want, p.end()); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrainerStatusKeepsItsTimeAndIsKnownAfterAKill(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	body := `{"trainerStatus": {"lastUpdatedTime": "2026-01-02T03:04:05.5Z", "metrics": [{"name": "loss", "value": "0.5"}]}}`
	first := startPush(t, journal)
	first.send(http.MethodPost, first.base+trainerPath, body)
	first.stop()
	<-first.done
	second := startPush(t, journal)
	second.send(http.MethodPost, second.base+trainerPath, body)
	second.end()
	points := inOrder(second.rec)
	if want := time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC); len(points) != 1 || !points[0].Time.Equal(want) {
		t.Errorf("points %+v, want one at %v", points, want)
	}
}
