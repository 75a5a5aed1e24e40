package push

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/vernier-ml/vernier/collector"
)

const (
	pathTrainer = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"
	// maxTrainerBody is the limit of Kubeflow Trainer's own server, in bytes.
	maxTrainerBody = 1 << 16
	// maxTrainerMetrics bounds the metrics of one status. Trainer's SDK sends at most
	// 256.
	maxTrainerMetrics = 1000
)

// trainerRequest is the body of Kubeflow Trainer's UpdateTrainJobStatusRequest,
// as far as it matters here.
type trainerRequest struct {
	Status struct {
		Updated string `json:"lastUpdatedTime"`
		Metrics []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"metrics"`
	} `json:"trainerStatus"`
}

// trainer takes the status of a TrainJob. It holds the newest value of every
// metric, measured long ago or just now, so that only a value that differs from
// the last one sent makes a point. Its step is the metric current_step, which HF
// Transformers sends along; its last status has none, and gets the step before.
type trainer struct {
	in     *intake
	newest map[string]string // value of each metric
	step   int64
}

func newTrainer(in *intake) *trainer {
	return &trainer{in: in, newest: map[string]string{}, step: collector.NoStep}
}

func (t *trainer) apply(e entry) {
	if e.Step > 0 {
		t.step = max(t.step, e.Step)
	}
	for _, p := range e.Points {
		if e.Trainer {
			t.newest[p.Metric], t.step = p.Value+p.Text, max(t.step, p.Step)
		}
	}
}

// ServeHTTP implements http.Handler.
func (t *trainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, release, err := t.in.body(w, r, maxTrainerBody)
	if err != nil {
		trainerFault(w, statusOf(err), err.Error())
		return
	}
	defer release()
	var request trainerRequest
	if err := json.Unmarshal(body, &request); err != nil {
		trainerFault(w, http.StatusUnprocessableEntity, fmt.Sprintf("the body is no status: %v", err))
		return
	}
	if n := len(request.Status.Metrics); n > maxTrainerMetrics {
		trainerFault(w, http.StatusUnprocessableEntity, fmt.Sprintf("%d metrics in one status; send at most %d", n, maxTrainerMetrics))
		return
	}
	if err := t.take(request); err != nil {
		trainerFault(w, statusOf(err), err.Error())
		return
	}
	answer(w, http.StatusOK, json.RawMessage(body))
}

// take writes down what is new in a status.
func (t *trainer) take(r trainerRequest) error {
	var samples []collector.Point
	step := collector.NoStep
	for _, m := range r.Status.Metrics {
		isStep := m.Name == "current_step"
		if n, err := strconv.ParseInt(m.Value, 10, 64); isStep && err == nil && n >= 0 {
			step = n
		}
		if (!isStep || t.in.wanted == nil || t.in.wanted[m.Name]) && t.in.wants(m.Name) {
			samples = append(samples, sampleOf(m.Name, m.Value, r.Status.Updated))
		}
	}
	points := t.in.records(samples)
	return t.in.journal.append(func() (entry, bool) {
		e := entry{Trainer: true}
		now := max(t.step, step)
		if now > t.step {
			e.Step = now
		}
		for _, point := range points {
			point.Step = now
			if last, ok := t.newest[point.Metric]; !ok || last != point.Value+point.Text {
				e.Points = append(e.Points, point)
			}
		}
		return e, len(e.Points) > 0 || e.Step > 0
	})
}

// trainerFault answers as Kubernetes does.
func trainerFault(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status,
	})
}
