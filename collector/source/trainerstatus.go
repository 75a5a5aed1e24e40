package source

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// maxTrainerBody is the limit of Kubeflow Trainer's own server, in bytes.
const maxTrainerBody = 1 << 16

// maxTrainerMetrics bounds the metrics of one status. Trainer's SDK sends at most
// 256.
const maxTrainerMetrics = 1000

// trainerRequest is the body of Kubeflow Trainer's UpdateTrainJobStatusRequest,
// as far as it matters here.
type trainerRequest struct {
	Status *struct {
		Updated string `json:"lastUpdatedTime"`
		Metrics []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"metrics"`
	} `json:"trainerStatus"`
}

// serveTrainer takes the status of a TrainJob. It holds the newest value of every
// metric, measured long ago or just now, so that only a value that differs from
// the last one sent makes a point. Its step is the metric current_step, which HF
// Transformers sends along; its last status has none, and gets the step before.
func (p *Push) serveTrainer(w http.ResponseWriter, r *http.Request) {
	body, release, err := p.body(w, r, maxTrainerBody)
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
	samples, step, err := p.trainerSamples(request)
	if err != nil {
		trainerFault(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	points := p.entryPoints(samples)
	err = p.journal.append(func() (entry, bool) {
		e := entry{Trainer: true}
		now := max(p.state.step, step)
		if now > p.state.step {
			e.Step = now
		}
		for _, point := range points {
			point.Step = now
			if last, ok := p.state.trainer[point.Metric]; !ok || last != point.Value+point.Text {
				e.Points = append(e.Points, point)
			}
		}
		return e, len(e.Points) > 0 || e.Step > 0
	}, p.state.apply)
	if err != nil {
		trainerFault(w, statusOf(err), err.Error())
		return
	}
	answer(w, http.StatusOK, json.RawMessage(body))
}

// trainerSamples returns the wanted metrics and the step, if there is one.
func (p *Push) trainerSamples(r trainerRequest) (samples []parse.Sample, step int64, err error) {
	if r.Status == nil {
		return nil, parse.NoStep, nil
	}
	if len(r.Status.Metrics) > maxTrainerMetrics {
		return nil, 0, fmt.Errorf("%d metrics in one status; send at most %d", len(r.Status.Metrics), maxTrainerMetrics)
	}
	// What cannot be read is left out: the time of arrival stands in.
	at, _ := time.Parse(time.RFC3339Nano, r.Status.Updated)
	step = parse.NoStep
	for _, m := range r.Status.Metrics {
		if m.Name == "current_step" {
			if n, err := strconv.ParseInt(m.Value, 10, 64); err == nil && n >= 0 {
				step = n
			}
		}
		if (m.Name != "current_step" || p.wanted == nil || p.wanted[m.Name]) && p.wants(m.Name) {
			samples = append(samples, sampleOf(m.Name, m.Value))
		}
	}
	for i := range samples {
		samples[i].Time = at
	}
	return samples, step, nil
}

// sampleOf reads a value that was sent as text.
func sampleOf(metric, text string) parse.Sample {
	s := parse.Sample{Metric: metric, Step: parse.NoStep}
	s.Value, s.Text = collector.ParseValue(text, maxValueText)
	return s
}

// maxValueText bounds the text that is kept of one value, in bytes.
const maxValueText = 256

// trainerFault answers as Kubernetes does.
func trainerFault(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status,
	})
}
