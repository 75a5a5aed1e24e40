package parse

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

func newLogfmt(t testing.TB, metrics ...string) *Logfmt {
	t.Helper()
	p, err := NewLogfmt(metrics)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLogfmt(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]lineCase{
		"a pair":                             {line: "loss=0.5", want: []got{{"loss", 0.5, "", 0}}},
		"a pair behind a byte order mark":    {line: "\ufeffloss=0.5", want: []got{{"loss", 0.5, "", 0}}},
		"pairs and words":                    {metrics: []string{"loss", "val/acc"}, line: "INFO training loss=0.5 done val/acc=97.5% x", want: []got{{"loss", 0.5, "", 0}, {"val/acc", 97.5, "97.5%", 1}}},
		"a value as it was written":          {line: "loss=0.50", want: []got{{"loss", 0.5, "0.50", 0}}},
		"a quoted value":                     {line: `loss="0.5"`, want: []got{{"loss", 0.5, "", 0}}},
		"a quoted value with escapes":        {line: `loss="a \"b\" \u00e9"`, want: []got{{"loss", nan, `a "b" é`, 0}}},
		"escapes that JSON does not have":    {line: `loss="\x41"`, want: []got{{"loss", nan, `\x41`, 0}}},
		"a pair within quotes is none":       {line: `msg="the loss=3" loss=1`, want: []got{{"loss", 1, "", 0}}},
		"quoted text without a key":          {line: `"the loss=3" loss=1`, want: []got{{"loss", 1, "", 0}}},
		"a quote without an end":             {line: `msg="the loss=3`},
		"a wanted quote without an end":      {line: `loss="0.5`, wantErr: "no closing quote"},
		"a wanted quote that ends in escape": {line: `loss="0.5\"`, wantErr: "no closing quote"},
		"good values beside a bad one":       {line: `loss=1 loss="0.5`, want: []got{{"loss", 1, "", 0}}, wantErr: "no closing quote"},
		"nan and the infinities":             {metrics: []string{"a", "b", "c"}, line: "a=NaN b=-Inf c=+Inf", want: []got{{"a", nan, "", 0}, {"b", -inf, "", 1}, {"c", inf, "", 2}}},
		"a value that is no number":          {line: "loss=12ms", want: []got{{"loss", nan, "12ms", 0}}},
		"thousands":                          {line: "loss=1,234", want: []got{{"loss", 1234, "1,234", 0}}},
		"spaces around the sign":             {line: "loss = 0.5"},
		"an empty value":                     {line: `loss= loss="" x=1`},
		"values that say none":               {metrics: []string{"loss", "val_loss", "acc"}, line: `loss=1 val_loss=None acc="null"`, want: []got{{"loss", 1, "", 0}}},
		"a name that ends alike":             {line: "val_loss=1 val.loss=2 xloss=3"},
		"a sign within the value":            {line: "x=loss=3 loss==4", want: []got{{"loss", nan, "=4", 0}}},
		"a key that is there twice":          {line: "loss=1 loss=2", want: []got{{"loss", 2, "", 0}}},
		"a tab between pairs":                {line: "a=1\tloss=2", want: []got{{"loss", 2, "", 0}}},
		"bytes that are no UTF-8":            {line: "\xff=1 loss=2\xff", want: []got{{"loss", nan, "2\xff", 0}}},
		"zeros":                              {line: "\x00\x00loss=2\x00", want: []got{{"loss", 2, "", 0}}},
		"nothing":                            {line: ""},
	}
	checkLines(t, func(t testing.TB, tc lineCase) Line { return newLogfmt(t, tc.metrics...) }, tests)
}

func TestLogfmtStepAndTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 5e8, time.UTC)
	tests := map[string]stepCase{
		"neither":                {"loss=1", collector.NoStep, time.Time{}},
		"a step after the value": {"loss=1 epoch=2 step=40", 40, time.Time{}},
		"a global step":          {"global_step=1,000 step=4 loss=1", 1000, time.Time{}},
		"a quoted step":          {`step="7" loss=1`, 7, time.Time{}},
		"a duration is no step":  {"step=7ms loss=1", collector.NoStep, time.Time{}},
		"ts":                     {"ts=2026-03-04T05:06:07.5Z loss=1", collector.NoStep, at},
		"a quoted time":          {`time="2026-03-04 05:06:07.5+00:00" loss=1`, collector.NoStep, at},
		"timestamp":              {"timestamp=1772600767.5 loss=1", collector.NoStep, at},
		"ts since 1970":          {"ts=1772600767500 loss=1", collector.NoStep, at},
		"a time that was needed": {"time=12.5 loss=1", collector.NoStep, time.Time{}},
		"timestamp is surer":     {"timestamp=1772600767.5 ts=2025-03-04T05:06:07Z loss=1", collector.NoStep, at},
		"the last of two steps":  {"step=1 step=2 loss=1", 2, time.Time{}},
	}
	checkStepsAndTimes(t, func(t testing.TB) Line { return newLogfmt(t, "loss") }, tests)
}

func TestLogfmtRefusesNamesThatAreNoKeys(t *testing.T) {
	for _, name := range []string{"val loss", "a=b", `a"b`, "a\tb"} {
		if _, err := NewLogfmt([]string{name}); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// logfmtToken is the grammar: a pair with a quoted or a bare value, a quoted
// text, or a word. A quote without an end takes all that is left.
var logfmtToken = regexp.MustCompile(`(?s)([^\x00-\x20="]*)=("(?:[^"\\]|\\.)*(?:"|\\?$)|[^\x00-\x20]*)|"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\x00-\x20="]+`)

// slowLogfmt finds by the grammar what the scanner must find.
func slowLogfmt(line string, names ...string) (values map[string]string) {
	values = map[string]string{}
	for _, m := range logfmtToken.FindAllStringSubmatchIndex(line, -1) {
		if m[2] < 0 || m[2] == m[3] {
			continue
		}
		key, value := line[m[2]:m[3]], line[m[4]:m[5]]
		if strings.HasPrefix(value, `"`) {
			if len(value) < 2 || !strings.HasSuffix(value, `"`) || strings.HasSuffix(strings.ReplaceAll(value, `\\`, ""), `\"`) {
				continue
			}
			text := value[1 : len(value)-1]
			if strings.Contains(text, `\`) {
				var unquoted string
				if json.Unmarshal([]byte(value), &unquoted) == nil {
					text = unquoted
				}
			}
			value = text
		}
		if value != "" {
			values[key] = value
		}
	}
	return values
}

func checkLogfmt(t *testing.T, line string) {
	t.Helper()
	samples := checkedParse(t, newLogfmt(t, "loss", "a"), line)
	checkSamples(t, line, samples)
	want := slowLogfmt(line)
	for _, name := range []string{"loss", "a"} {
		var found *collector.Point
		for i := range samples {
			if samples[i].Metric == name {
				found = &samples[i]
			}
		}
		text, ok := want[name]
		if ok != (found != nil) {
			t.Fatalf("%q: %s is %q (%v), the parser says %+v", line, name, text, ok, found)
		}
		if !ok {
			continue
		}
		s := wholeSample(name, []byte(text))
		if s.Text != found.Text || s.Value != found.Value && !math.IsNaN(s.Value) {
			t.Fatalf("%q: %s is %+v, want %+v", line, name, *found, s)
		}
	}
}

func TestLogfmtAgreesWithItsGrammar(t *testing.T) {
	pieces := []string{"loss", "a", "=", "=", `"`, `\`, " ", "1.5", "x", "\t", "é", "\xff"}
	randomLines(20000, pieces, func(line string) { checkLogfmt(t, line) })
}

func FuzzLogfmt(f *testing.F) {
	for _, s := range []string{`ts=2026-03-04T05:06:07Z level=info loss=0.25 msg="all is \"well\""`, `loss="1" a=2 a="x`, `"loss=1" a==3`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) { checkLogfmt(t, line) })
}
