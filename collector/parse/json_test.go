package parse

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func newJSON(t testing.TB, metrics ...string) *JSON {
	t.Helper()
	return NewJSON(metrics)
}

func TestJSON(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]lineCase{
		"a number":                            {line: `{"loss": 0.5}`, want: []got{{"loss", 0.5, "", 0}}},
		"a number behind a byte order mark":   {line: "\ufeff" + `{"loss": 0.5}`, want: []got{{"loss", 0.5, "", 0}}},
		"a string, as Katib wants it":         {line: `{"loss": "0.50"}`, want: []got{{"loss", 0.5, "0.50", 0}}},
		"a string that is no number":          {line: `{"loss": "good"}`, want: []got{{"loss", nan, "good", 0}}},
		"an empty string":                     {line: `{"loss": ""}`},
		"what Python writes for NaN":          {line: `{"loss": NaN, "x": -Infinity}`, metrics: []string{"loss", "x"}, want: []got{{"loss", nan, "", 0}, {"x", -inf, "-Infinity", 1}}},
		"null, true and false":                {line: `{"loss": null, "x": true, "loss": false}`},
		"a key that is there twice":           {line: `{"loss": 1, "x": 5, "loss": 2}`, want: []got{{"loss", 2, "", 0}}},
		"a metric under two keys":             {metrics: []string{"val.loss", "a"}, line: `{"val.loss": 1, "a": 7, "val": {"loss": 2}}`, want: []got{{"a", 7, "", 0}, {"val.loss", 2, "", 1}}},
		"a number that a float does not hold": {line: `{"loss": 12345678901234567891}`, want: []got{{"loss", 12345678901234567891, "12345678901234567891", 0}}},
		"a number of a hundred digits":        {line: `{"loss": 1` + strings.Repeat("0", 100) + `}`, want: []got{{"loss", 1e100, "1" + strings.Repeat("0", 100), 0}}},
		"a number too large for a float":      {line: `{"loss": 1e999}`, want: []got{{"loss", inf, "1e999", 0}}},
		"what repr of Python gives":           {line: `{"loss": 0.6931471805599453, "x": 5e-05}`, metrics: []string{"loss", "x"}, want: []got{{"loss", 0.6931471805599453, "", 0}, {"x", 5e-5, "", 1}}},
		"thousands and percent in a string":   {metrics: []string{"loss", "acc"}, line: `{"loss": "1,234", "acc": "97.5%"}`, want: []got{{"acc", 97.5, "97.5%", 0}, {"loss", 1234, "1,234", 1}}},
		"a path through escaped keys":         {metrics: []string{"a\"b.c"}, line: `{"a\"b": {"c": 1}}`, want: []got{{"a\"b.c", 1, "", 0}}},
		"a path of three and back":            {metrics: []string{"a.b.c", "a.d", "e"}, line: `{"a": {"b": {"c": 1}, "d": 2}, "e": 3}`, want: []got{{"a.b.c", 1, "", 0}, {"a.d", 2, "", 1}, {"e", 3, "", 2}}},
		"a path that a literal key has too":   {metrics: []string{"a.b.c"}, line: `{"a.b": {"c": 1}}`, want: []got{{"a.b.c", 1, "", 0}}},
		"bytes that are no UTF-8":             {line: "{\"x\": \"\xff\", \"loss\": 1}", want: []got{{"loss", 1, "", 0}}},
		"a zero byte":                         {line: "\x00", wantErr: "invalid character"},
		"a zero byte after the object":        {line: "{}\x00", wantErr: "after top-level value"},
		"a list is no value":                  {line: `{"loss": [1, 2, {"loss": 3}, "]"]}`},
		"numbers in a list with no spaces":    {line: `{"a":[1,200,3],"loss":1}`, want: []got{{"loss", 1, "", 0}}},
		"a path":                              {metrics: []string{"val.loss"}, line: `{"val": {"loss": 1}, "loss": 2}`, want: []got{{"val.loss", 1, "", 0}}},
		"a deeper path":                       {metrics: []string{"a.b.c"}, line: `{"a": {"x": {"c": 9}, "b": {"c": 1}}}`, want: []got{{"a.b.c", 1, "", 0}}},
		"a key with a dot or a slash":         {metrics: []string{"val.loss", "val/loss"}, line: `{"val.loss": 1, "val/loss": 2}`, want: []got{{"val.loss", 1, "", 0}, {"val/loss", 2, "", 1}}},
		"a key inside another is not it":      {line: `{"val": {"loss": 1}}`},
		"an escaped key":                      {metrics: []string{"loß"}, line: `{"lo\u00df": 1}`, want: []got{{"loß", 1, "", 0}}},
		"a quote in a string":                 {line: `{"m": "say \"loss\": 3", "loss": 1}`, want: []got{{"loss", 1, "", 0}}},
		"the step is a metric too":            {metrics: []string{"epoch"}, line: `{"epoch": 3}`, want: []got{{"epoch", 3, "", 0}}},
		"spaces and a carriage return":        {line: " {\t\"loss\" : 1 } \r", want: []got{{"loss", 1, "", 0}}},
		"an empty line":                       {line: "  "},
		"an object without metrics":           {line: `{}`},
		"text":                                {line: "loss=1", wantErr: "invalid character"},
		"a number alone":                      {line: "1", wantErr: "no object"},
		"a list alone":                        {line: `[{"loss": 1}]`, wantErr: "no object"},
		"an object that is cut":               {line: `{"loss": 1`, wantErr: "unexpected end"},
		"a string that is cut":                {line: `{"loss": "1`, wantErr: "unexpected end"},
		"more after the object":               {line: `{"loss": 1} x`, wantErr: "after top-level value"},
		"a comma too many":                    {line: `{"loss": 1,}`, wantErr: "invalid character"},
		"a key that is no string":             {line: `{loss: 1}`, wantErr: "invalid character"},
		"no colon":                            {line: `{"loss" 1}`, wantErr: "after object key"},
		"two points":                          {line: `{"loss": 1.2.3}`, wantErr: "invalid character"},
		"too deep":                            {line: strings.Repeat(`{"a":`, 20000), wantErr: "max depth"},
		"a word":                              {line: `{"loss": nope}`, wantErr: "invalid character"},
	}
	checkLines(t, func(t testing.TB, tc lineCase) Line { return newJSON(t, tc.metrics...) }, tests)
}

func TestJSONStepAndTime(t *testing.T) {
	tests := map[string]stepCase{
		"neither":                        {`{"loss": 1}`, collector.NoStep, time.Time{}},
		"a step":                         {`{"step": 3, "loss": 1}`, 3, time.Time{}},
		"an epoch after the value":       {`{"loss": 1, "epoch": 2}`, 2, time.Time{}},
		"a step is finer than an epoch":  {`{"epoch": 2, "step": 40, "loss": 1}`, 40, time.Time{}},
		"a global step is the finest":    {`{"step": 4, "global_step": 40, "loss": 1}`, 40, time.Time{}},
		"a step in a string":             {`{"step": "3", "loss": 1}`, 3, time.Time{}},
		"a step below the top":           {`{"x": {"step": 3}, "loss": 1}`, collector.NoStep, time.Time{}},
		"the steps of LLaMA-Factory":     {`{"current_steps": 5, "total_steps": 30, "loss": 1, "epoch": 0.16, "percentage": 16.67}`, 5, time.Time{}},
		"a result of Ray Tune":           {`{"loss": 1, "training_iteration": 7, "timesteps_total": null, "timestamp": 1638422847}`, 7, time.Unix(1638422847, 0)},
		"its last step":                  {`{"current_steps": 30, "total_steps": 30, "loss": 1, "epoch": 1.0}`, 30, time.Time{}},
		"a fraction is no step":          {`{"epoch": 0.5, "loss": 1}`, collector.NoStep, time.Time{}},
		"a time in words":                {`{"timestamp": "2021-12-02T05:47:27.5Z", "loss": 1}`, collector.NoStep, time.Unix(1638424047, 5e8)},
		"seconds with a fraction":        {`{"timestamp": 1638422847.28721, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287210000)},
		"seconds with nine digits":       {`{"timestamp": 1638422847.123456789, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 123456789)},
		"half a second is no nanosecond": {`{"timestamp": 1638422847.5, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 5e8)},
		"whole seconds":                  {`{"timestamp": 1638422847, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 0)},
		"seconds in a string":            {`{"timestamp": "1638422847.5", "loss": 1}`, collector.NoStep, time.Unix(1638422847, 5e8)},
		"seconds with an exponent":       {`{"timestamp": 1.5e9, "loss": 1}`, collector.NoStep, time.Unix(1500000000, 0)},
		"milliseconds":                   {`{"timestamp": 1638422847287, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287e6)},
		"milliseconds with a fraction":   {`{"timestamp": 1638422847287.123456, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287123456)},
		"microseconds":                   {`{"timestamp": 1638422847287123, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287123000)},
		"nanoseconds":                    {`{"timestamp": 1638422847287123456, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287123456)},
		"milliseconds with an exponent":  {`{"timestamp": 1.638422847287e+12, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 287e6)},
		"a second of 1970":               {`{"timestamp": 12.25, "loss": 1}`, collector.NoStep, time.Unix(12, 25e7)},
		"before 1970":                    {`{"timestamp": -1.25, "loss": 1}`, collector.NoStep, time.Unix(-2, 75e7)},
		"too many digits":                {`{"timestamp": 163842284728712345678, "loss": 1}`, collector.NoStep, time.Time{}},
		"time in place of timestamp":     {`{"time": "2021-12-02T05:47:27.5Z", "loss": 1}`, collector.NoStep, time.Unix(1638424047, 5e8)},
		"ts with the digits of a time":   {`{"ts": 1638422847.5, "loss": 1}`, collector.NoStep, time.Unix(1638422847, 5e8)},
		"a time that was needed":         {`{"time": 12.5, "loss": 1}`, collector.NoStep, time.Time{}},
		"timestamp is surer than time":   {`{"timestamp": 1, "time": "2021-12-02T05:47:27.5Z", "loss": 1}`, collector.NoStep, time.Unix(1, 0)},
		"the last of two steps":          {`{"step": 1, "step": 2, "loss": 1}`, 2, time.Time{}},
		"iter":                           {`{"iter": 7, "epoch": 1, "loss": 1}`, 7, time.Time{}},
		"a time that is none":            {`{"timestamp": "noon", "loss": 1}`, collector.NoStep, time.Time{}},
	}
	checkStepsAndTimes(t, func(t testing.TB) Line { return newJSON(t, "loss") }, tests)
}

func TestParseAllTakesEveryNumber(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    []got
		wantErr bool
	}{
		"an object":                       {text: `{"loss": 1, "step": 3, "note": "x", "val": {"acc": "2"}}`, want: []got{{"loss", 1, "", 0}, {"val.acc", 2, "", 1}}},
		"a list, over lines":              {text: "[{\"loss\": 1},\n {\"loss\": 2}]", want: []got{{"loss", 1, "", 0}, {"loss", 2, "", 1}}},
		"an empty list":                   {text: `[]`},
		"a list with something else":      {text: `[{"loss": 1}, 2]`, wantErr: true},
		"more after the list":             {text: `[] x`, wantErr: true},
		"the time and the step are names": {text: `{"timestamp": 5, "epoch": 1}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			samples, err := NewAnyJSON().ParseAll(nil, []byte(tc.text))
			if diff := cmp.Diff(tc.want, brief(samples)); diff != "" || (err != nil) != tc.wantErr {
				t.Errorf("error %v; samples (-want +got):\n%s", err, diff)
			}
		})
	}
	samples, err := NewAnyJSON().ParseAll(nil, []byte(`[{"loss": 1, "step": 1}, {"loss": 2}]`))
	if err != nil || samples[0].Step != 1 || samples[1].Step != collector.NoStep {
		t.Errorf("each object has its own step: got %+v, error %v", samples, err)
	}
}

// slowJSON finds what the parser must find in an object, by the tokens of the
// standard library: the last text of each wanted path.
func slowJSON(t *testing.T, line string, names ...string) map[string]any {
	t.Helper()
	found := map[string]any{}
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	var walk func(path string, wanted bool)
	walk = func(path string, wanted bool) {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case json.Delim:
			for d.More() {
				if token == '[' {
					walk("", false)
					continue
				}
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				next := key.(string)
				if path != "" {
					next = path + "." + next
				}
				walk(next, wanted)
			}
			if _, err := d.Token(); err != nil {
				t.Fatal(err)
			}
		case json.Number, string:
			if wanted && slices.Contains(names, path) && token != "" {
				found[path] = token
			}
		}
	}
	walk("", true)
	return found
}

func checkJSON(t *testing.T, p *JSON, line string) {
	t.Helper()
	var samples []collector.Point
	var err error
	CheckMemory(t, len(line), func() { samples, err = p.Parse(nil, []byte(line)) })
	CheckHeld(t, p)
	checkSamples(t, line, samples)
	if !json.Valid([]byte(line)) || !utf8.ValidString(line) || !strings.HasPrefix(strings.TrimLeft(line, " \t\r\n"), "{") {
		return
	}
	if err != nil {
		if !strings.Contains(err.Error(), "too deeply") {
			t.Fatalf("%q is JSON, but: %v", line, err)
		}
		return
	}
	want := slowJSON(t, line, "loss", "a.b")
	if len(samples) != len(want) {
		t.Fatalf("%q: samples %+v, want %v", line, samples, want)
	}
	for _, s := range samples {
		slow := wholeSample(s.Metric, []byte(fmt.Sprint(want[s.Metric])))
		if s.Text != slow.Text || s.Value != slow.Value && !(math.IsNaN(s.Value) && math.IsNaN(slow.Value)) {
			t.Fatalf("%q: %+v, want %+v", line, s, slow)
		}
	}
}

func TestJSONAgreesWithTheStandardLibrary(t *testing.T) {
	p := newJSON(t, "loss", "a.b")
	pieces := []string{`"loss": `, `"a": `, `"b": `, `"a.b": `, "{", "}", "{", "}", ",", ",", "1.5", `"2"`, `"x\\n"`, "[", "]", "null", "true", "1e-3", "-0", " "}
	randomLines(30000, pieces, func(line string) {
		checkJSON(t, p, line)
		checkJSON(t, p, "{"+line+"}")
	})
	// Random text is seldom JSON, so some that is.
	random := rand.New(rand.NewPCG(31, 32))
	var value func(depth int) string
	value = func(depth int) string {
		switch n := random.IntN(8); {
		case n < 2 && depth < 5:
			var members []string
			for range random.IntN(5) {
				members = append(members, []string{`"loss"`, `"a"`, `"b"`, `"a.b"`, `"\u0061"`, `""`}[random.IntN(6)]+":"+value(depth+1))
			}
			return "{" + strings.Join(members, ", ") + "}"
		case n == 2 && depth < 5:
			return "[" + value(depth+1) + " , " + value(depth+1) + "]"
		}
		return []string{"1", "-2.50", `"3"`, `"1,234"`, `"bad"`, `""`, "null", "false", "12345678901234567890", `"\"\u00e9"`}[random.IntN(10)]
	}
	for range 100 { // keys that come again and again
		checkJSON(t, p, members(1000, func(i int) string {
			return []string{`"loss":`, `"a.b":`, `"x":`}[random.IntN(3)] + fmt.Sprint(i)
		}))
	}
	for range 30000 {
		checkJSON(t, p, `{"loss": `+value(0)+`, "a": `+value(0)+`, "b": `+value(0)+"}")
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"loss": 1, "a": {"b": "2"}}`, `[{"loss": NaN}, {"timestamp": 1.5}]`, `{"a\n": [1, {"b": null}], "a.b": 3}`, `{"loss": 1,}`} {
		f.Add(s)
	}
	p, all := newJSON(f, "loss", "a.b"), NewAnyJSON()
	f.Fuzz(func(t *testing.T, line string) {
		checkJSON(t, p, line)
		var samples []collector.Point
		var err error
		CheckMemory(t, len(line), func() { samples, err = all.ParseAll(nil, []byte(line)) })
		CheckHeld(t, all)
		if err != nil && len(samples) > 0 {
			t.Fatalf("%q: samples beside %v", line, err)
		}
		checkSamples(t, line, samples)
	})
}
