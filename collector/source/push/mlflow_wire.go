package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Limits of MLflow's own server for one request.
const (
	maxMLflowList = 1000
	maxMLflowText = 8000 // of a tag; a parameter has 6,000
	maxMLflowName = 250
	// maxMLflowHistory is about how many points of a metric are shown.
	maxMLflowHistory = 25_000
)

// tagRunName is the tag that holds the name of a run.
const tagRunName = "mlflow.runName"

// mlflowRequest is what any of the calls may say.
type mlflowRequest struct {
	ExperimentID   string      `json:"experiment_id"`
	ExperimentName string      `json:"experiment_name"`
	Name           string      `json:"name"`
	RunID          string      `json:"run_id"`
	RunUUID        string      `json:"run_uuid"` // what run_id was called
	RunName        string      `json:"run_name"`
	UserID         string      `json:"user_id"`
	Status         string      `json:"status"`
	StartTime      mlflowInt   `json:"start_time"`
	EndTime        mlflowInt   `json:"end_time"`
	mlflowPair                 // of log-metric, log-parameter and set-tag
	Metrics        mlflowList  `json:"metrics"`
	Params         mlflowPairs `json:"params"`
	Tags           mlflowPairs `json:"tags"`
	ModelType      string      `json:"model_type"`
	SourceRunID    string      `json:"source_run_id"`
	MetricKey      string      `json:"metric_key"`

	model string // of the path
	untag []string
}

// id is the object that is meant.
func (r *mlflowRequest) id(kind string) string {
	switch kind {
	case mlflowExperiment:
		return r.ExperimentID
	case mlflowRun:
		return r.RunID
	}
	return r.model
}

// mlflowPair is a point of a metric, a parameter or a tag: the value of each
// stands in the same place.
type mlflowPair struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp mlflowInt       `json:"timestamp"` // milliseconds; empty: not given
	Step      mlflowInt       `json:"step"`
}

// number reads a value as protobuf's JSON writes it, where NaN and the infinities
// are words.
func (m mlflowPair) number() (float64, error) {
	text := strings.Trim(string(m.Value), `"`)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, fmt.Errorf("the value %.40q of metric %.80q is not a number", text, m.Key)
	}
	return v, nil
}

func (m mlflowPair) text() string {
	var s string
	if json.Unmarshal(m.Value, &s) == nil {
		return s
	}
	return string(m.Value)
}

// mlflowInt is a 64-bit integer, which protobuf's JSON may write as text.
type mlflowInt json.Number

// UnmarshalJSON implements json.Unmarshaler.
func (i *mlflowInt) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*json.Number)(i)) }

func (i mlflowInt) int() int64 {
	n, err := json.Number(i).Int64()
	if f, floatErr := json.Number(i).Float64(); err != nil && floatErr == nil && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return n
}

// mlflowList is refused while it is read when it is too long: decoded, it would
// take very much more room than the body.
type mlflowList []mlflowPair

// UnmarshalJSON implements json.Unmarshaler.
func (l *mlflowList) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return errors.New("metrics, params or tags are no list")
	}
	for d.More() {
		if len(*l) == maxMLflowList {
			return fmt.Errorf("there are more than %d metrics, params or tags in one request", maxMLflowList)
		}
		var v mlflowPair
		if err := d.Decode(&v); err != nil {
			return err
		}
		*l = append(*l, v)
	}
	return nil
}

// cutMLflow keeps the first bytes of a text, without a part of a character: that
// would come back from the journal as another one.
func cutMLflow(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// decodeMLflow reads the body of a request, its query, and the one pair that some
// calls have.
func decodeMLflow(path string, body []byte, at *http.Request) (r mlflowRequest, err error) {
	if len(bytes.TrimSpace(body)) > 0 {
		if err := json.Unmarshal(body, &r); err != nil {
			return r, fmt.Errorf("the body cannot be read: %w", err)
		}
	}
	query := at.URL.Query()
	for name, field := range map[string]*string{
		"experiment_id": &r.ExperimentID, "experiment_name": &r.ExperimentName, "run_id": &r.RunID, "run_uuid": &r.RunUUID,
		"metric_key": &r.MetricKey,
	} {
		if v := query.Get(name); v != "" {
			*field = v
		}
	}
	if r.RunID == "" {
		r.RunID = r.RunUUID
	}
	r.model = at.PathValue("model")
	switch path {
	case "/runs/log-metric":
		r.Metrics, r.Params, r.Tags = mlflowList{r.mlflowPair}, nil, nil
	case "/runs/log-parameter":
		r.Metrics, r.Params, r.Tags = nil, mlflowPairs{}, nil
		err = r.Params.add(r.mlflowPair)
	case "/runs/set-tag", "/experiments/set-experiment-tag":
		r.Params, r.Tags = nil, mlflowPairs{}
		err = r.Tags.add(r.mlflowPair)
	case "/runs/delete-tag":
		r.Params, r.Tags, r.untag = nil, nil, []string{r.Key}
	}
	return r, err
}
