package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/vernier-ml/vernier/collector"
)

// Limits of MLflow's own server for one request.
const (
	maxMLflowList = 1000
	maxMLflowText = 8000 // of a tag; a parameter has 6,000
	maxMLflowName = 250
)

// mlflowRequest is the body of a call, or what its query says.
type mlflowRequest struct {
	gjson.Result
	model string // of the path
}

func decodeMLflow(body []byte, at *http.Request) (mlflowRequest, error) {
	r := mlflowRequest{model: at.PathValue("model")}
	if at.Method == http.MethodGet || len(body) == 0 {
		query := map[string]string{}
		for name, values := range at.URL.Query() {
			query[name] = values[0]
		}
		body, _ = json.Marshal(query) // texts can be written
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return r, fmt.Errorf("the body cannot be read: %w", err)
	}
	r.Result = gjson.ParseBytes(body)
	return r, nil
}

func (r mlflowRequest) text(name string) string { return r.Get(name).String() }

// id is the object that is meant.
func (r mlflowRequest) id(kind string) string {
	switch {
	case kind == mlflowModel:
		return r.model
	case kind == mlflowExperiment:
		return r.text("experiment_id")
	case r.Get("run_id").Exists():
		return r.text("run_id")
	}
	return r.text("run_uuid") // what run_id was called
}

// list returns the elements of a list, which are counted first: taken apart, they
// need very much more room than the body.
func (r mlflowRequest) list(name string) ([]gjson.Result, error) {
	v := r.Get(name)
	switch n := r.Get(name + ".#").Int(); {
	case v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, fmt.Errorf("%s is no list", name)
	case n > maxMLflowList:
		return nil, fmt.Errorf("there are %d %s in one request, more than %d", n, name, maxMLflowList)
	}
	return v.Array(), nil
}

// pairs reads tags or parameters: a list, or the only one of some calls.
func (r mlflowRequest) pairs(name string) (map[string]string, error) {
	list, err := r.list(name)
	if r.Get("key").Exists() || r.Get("value").Exists() {
		list = append(list, r.Result)
	}
	pairs := map[string]string{}
	for _, one := range list {
		key := one.Get("key").String()
		if key == "" || len(key) > maxMLflowName {
			return nil, fmt.Errorf("the key %.40q has %d bytes; it must have 1 to %d", key, len(key), maxMLflowName)
		}
		pairs[key] = cutMLflow(one.Get("value").String(), maxMLflowText)
	}
	return pairs, err
}

// mlflowInt reads an integer, which protobuf's JSON may write as text; 0 when it is
// not given.
func mlflowInt(v gjson.Result) (int64, error) {
	text := v.String()
	if v.Type == gjson.Null || text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if f, floatErr := strconv.ParseFloat(text, 64); err != nil && floatErr == nil && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return n, err
}

// mlflowSample reads a metric. MLflow's own server too wants a time. The number is
// written as protobuf's JSON has it, where NaN and the infinities are words.
func mlflowSample(one gjson.Result) (s collector.Point, err error) {
	s.Metric = one.Get("key").String()
	at, errTime := mlflowInt(one.Get("timestamp"))
	s.Step, err = mlflowInt(one.Get("step"))
	s.Step, s.Time = max(s.Step, 0), time.UnixMilli(at)
	value := one.Get("value").String()
	v, errValue := strconv.ParseFloat(value, 64)
	switch s.Value = v; {
	case s.Metric == "" || len(s.Metric) > maxMLflowName:
		return s, fmt.Errorf("the name of a metric has %d bytes; it must have 1 to %d", len(s.Metric), maxMLflowName)
	case one.Get("timestamp").Type == gjson.Null:
		return s, fmt.Errorf("metric %.80q has no timestamp: give the time of the value in milliseconds since 1970", s.Metric)
	case errValue != nil && !math.IsInf(v, 0):
		return s, fmt.Errorf("the value %.40q of metric %.80q is not a number", value, s.Metric)
	}
	return s, errors.Join(err, errTime)
}

// cutMLflow keeps the first bytes of a text, without a part of a character: that
// would come back from the journal as another one.
func cutMLflow(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
