package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of MLflow's own server for one request.
const (
	maxMLflowMetrics = 1000
	maxMLflowPairs   = 1000
	maxMLflowText    = 8000 // of a tag; a parameter has 6,000
	maxMLflowName    = 250
)

// mlflowRequest is what any of the calls may say.
type mlflowRequest struct {
	ExperimentID   wireString   `json:"experiment_id"`
	ExperimentIDs  []wireString `json:"experiment_ids"`
	ExperimentName string       `json:"experiment_name"`
	Name           string       `json:"name"`
	NewName        string       `json:"new_name"`
	RunID          string       `json:"run_id"`
	RunUUID        string       `json:"run_uuid"` // what run_id was called
	RunName        string       `json:"run_name"`
	UserID         string       `json:"user_id"`
	Status         wireString   `json:"status"`
	StartTime      wireInt      `json:"start_time"`
	EndTime        wireInt      `json:"end_time"`
	mlflowMetric
	Metrics     mlflowMetrics `json:"metrics"`
	Params      mlflowPairs   `json:"params"`
	Tags        mlflowPairs   `json:"tags"`
	Filter      string        `json:"filter"`
	MaxResults  wireInt       `json:"max_results"`
	PageToken   string        `json:"page_token"`
	ViewType    string        `json:"run_view_type"`
	MetricKey   string        `json:"metric_key"`
	ModelType   string        `json:"model_type"`
	SourceRunID string        `json:"source_run_id"`
}

// mlflowMetric is a point as log-metric and log-batch have it. The value of a
// parameter or a tag stands in the same place.
type mlflowMetric struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp *wireInt        `json:"timestamp"` // milliseconds; nil: not given
	Step      wireInt         `json:"step"`
}

func (m mlflowMetric) number() (float64, error) {
	text := strings.Trim(string(m.Value), `"`)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, fmt.Errorf("the value %.40q of metric %.80q is not a number", text, m.Key)
	}
	return v, nil
}

func (m mlflowMetric) text() string {
	var s string
	if json.Unmarshal(m.Value, &s) == nil {
		return s
	}
	return string(m.Value)
}

// mlflowMetrics is a list that is refused while it is read when it is too long.
type mlflowMetrics []mlflowMetric

// UnmarshalJSON implements json.Unmarshaler.
func (m *mlflowMetrics) UnmarshalJSON(b []byte) error {
	return readList(b, (*[]mlflowMetric)(m), maxMLflowMetrics, "metrics")
}

// mlflowPairs are tags or parameters.
type mlflowPairs map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *mlflowPairs) UnmarshalJSON(b []byte) error {
	var list []mlflowMetric
	if err := readList(b, &list, maxMLflowPairs, "tags or params"); err != nil {
		return err
	}
	*p = mlflowPairs{}
	for _, kv := range list {
		if err := p.add(kv.Key, kv.text()); err != nil {
			return err
		}
	}
	return nil
}

func (p mlflowPairs) add(key, value string) error {
	if key == "" || len(key) > maxMLflowName {
		return fmt.Errorf("the key %.40q has %d bytes; it must have 1 to %d", key, len(key), maxMLflowName)
	}
	p[key] = cutMLflow(value, maxMLflowText)
	return nil
}

// cutMLflow keeps the first bytes of a text, without a part of a character: that
// would come back from the journal as another one.
func cutMLflow(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

func readList[T any](b []byte, list *[]T, limit int, what string) error {
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("the %s are no list", what)
	}
	for d.More() {
		if len(*list) == limit {
			return fmt.Errorf("there are more than %d %s in one request", limit, what)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*list = append(*list, v)
	}
	return nil
}

// wireInt is a 64-bit integer, which protobuf's JSON writes as text.
type wireInt int64

// UnmarshalJSON implements json.Unmarshaler.
func (i *wireInt) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, floatErr := strconv.ParseFloat(text, 64)
		if floatErr != nil || math.Abs(f) >= 1<<63 || math.IsNaN(f) {
			return fmt.Errorf("%.40q is no integer", text)
		}
		n = int64(f)
	}
	*i = wireInt(n)
	return nil
}

// wireString is text that some clients write as a number.
type wireString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *wireString) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(s))
	}
	switch text := string(b); {
	case text == "null":
	case text[0] == '{' || text[0] == '[':
		return errors.New("an object or a list stands where a text is expected")
	default:
		*s = wireString(text)
	}
	return nil
}

// decodeMLflow reads the body of a request and its query.
func decodeMLflow(body []byte, query url.Values) (r mlflowRequest, err error) {
	if len(bytes.TrimSpace(body)) > 0 {
		if !json.Valid(body) {
			body = quoteNonFinite(body)
		}
		if err := json.Unmarshal(body, &r); err != nil {
			return mlflowRequest{}, fmt.Errorf("the body cannot be read: %w", err)
		}
	}
	for name, field := range map[string]*string{
		"experiment_id": (*string)(&r.ExperimentID), "experiment_name": &r.ExperimentName,
		"run_id": &r.RunID, "run_uuid": &r.RunUUID, "metric_key": &r.MetricKey, "page_token": &r.PageToken, "filter": &r.Filter,
	} {
		if v := query.Get(name); v != "" {
			*field = v
		}
	}
	if v := query.Get("max_results"); v != "" {
		if err := r.MaxResults.UnmarshalJSON([]byte(v)); err != nil {
			return mlflowRequest{}, fmt.Errorf("max_results: %w", err)
		}
	}
	if r.RunID == "" {
		r.RunID = r.RunUUID
	}
	return r, nil
}

// quoteNonFinite puts quotes around NaN and the infinities, which Python's json
// writes though JSON has no such numbers.
func quoteNonFinite(body []byte) []byte {
	var out []byte
	inText, done := false, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++
		case !inText && (c == 'N' || c == 'I' || c == '-'):
			for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
				if bytes.HasPrefix(body[i:], []byte(word)) {
					out = append(append(append(append(out, body[done:i]...), '"'), word...), '"')
					i += len(word) - 1
					done = i + 1
					break
				}
			}
		}
	}
	return append(out, body[done:]...)
}

// Answers, in MLflow's words.

func (s *mlflowState) experimentJSON(o *mlflowObject) map[string]any {
	return map[string]any{
		"experiment_id": o.ID, "name": o.Name, "artifact_location": s.location(o.ID), "lifecycle_stage": o.Lifecycle,
		"creation_time": o.Start, "last_update_time": max(o.Start, o.End), "tags": pairsJSON(o.Tags),
	}
}

func (s *mlflowState) runInfoJSON(o *mlflowObject) map[string]any {
	info := map[string]any{
		"run_id": o.ID, "run_uuid": o.ID, "run_name": o.Name, "experiment_id": o.Experiment, "user_id": o.User,
		"status": o.Status, "start_time": o.Start, "artifact_uri": s.location(o.Experiment, o.ID, "artifacts"),
		"lifecycle_stage": o.Lifecycle,
	}
	if o.End != 0 {
		info["end_time"] = o.End
	}
	return info
}

func (s *mlflowState) runJSON(o *mlflowObject) map[string]any {
	metrics := []map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(o.Metrics)) {
		metrics = append(metrics, metricJSON(key, o.Metrics[key]))
	}
	return map[string]any{
		"info": s.runInfoJSON(o),
		"data": map[string]any{"metrics": metrics, "params": pairsJSON(o.Params), "tags": pairsJSON(o.Tags)},
	}
}

func metricJSON(key string, m mlflowValue) map[string]any {
	return map[string]any{"key": key, "value": numberJSON(m.value), "timestamp": m.time, "step": m.step}
}

// numberJSON writes a number as protobuf's JSON does.
func numberJSON(text string) any {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return v
}

func (s *mlflowState) modelJSON(o *mlflowObject) map[string]any {
	return map[string]any{
		"info": map[string]any{
			"model_id": o.ID, "experiment_id": o.Experiment, "name": o.Name, "model_type": o.Type, "source_run_id": o.Run,
			"creation_timestamp_ms": o.Start, "last_updated_timestamp_ms": max(o.Start, o.End),
			"artifact_uri": s.location(o.Experiment, "models", o.ID, "artifacts"), "status": o.Status, "tags": pairsJSON(o.Tags),
		},
		"data": map[string]any{"params": pairsJSON(o.Params), "metrics": []any{}},
	}
}

func pairsJSON(pairs map[string]string) []map[string]string {
	list := make([]map[string]string, 0, len(pairs))
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, map[string]string{"key": k, "value": pairs[k]})
	}
	return list
}
