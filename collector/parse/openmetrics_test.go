package parse_test

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/vernier-ml/vernier/collector/parse"
)

// sample is what a line of an exposition says.
type sample struct {
	Series string
	Value  string
	Time   time.Time
}

func exposed(t *testing.T, e *parse.Exposition, line string) (sample, bool, error) {
	t.Helper()
	ok, err := e.Parse([]byte(line))
	if !ok || err != nil {
		return sample{}, ok, err
	}
	return sample{string(e.AppendSeries(nil)), fmt.Sprint(e.Value), e.Time}, true, nil
}

func TestExposition(t *testing.T) {
	tests := map[string]struct {
		openMetrics bool
		line        string
		want        sample
	}{
		"a name and a value":             {line: "loss 0.25", want: sample{Series: "loss", Value: "0.25"}},
		"blanks and tabs":                {line: " \tloss \t 0.25", want: sample{Series: "loss", Value: "0.25"}},
		"colons belong to a name":        {line: "job:loss:min 1", want: sample{Series: "job:loss:min", Value: "1"}},
		"labels":                         {line: `loss{split="test",rank="0"} 3`, want: sample{Series: `loss{split="test",rank="0"}`, Value: "3"}},
		"blanks around labels":           {line: `loss { split = "test" , } 3`, want: sample{Series: `loss{split="test"}`, Value: "3"}},
		"no labels in braces":            {line: `loss{} 3`, want: sample{Series: "loss", Value: "3"}},
		"escapes in a label":             {line: `loss{p="C:\\a\"b\n",q="\\"} 3`, want: sample{Series: `loss{p="C:\\a\"b\n",q="\\"}`, Value: "3"}},
		"braces and commas in a label":   {line: `loss{p="},{"} 3`, want: sample{Series: `loss{p="},{"}`, Value: "3"}},
		"a quoted name":                  {line: `{"val/loss",split="test"} 3`, want: sample{Series: `val/loss{split="test"}`, Value: "3"}},
		"a quoted label":                 {line: `loss{"data set"="a"} 3`, want: sample{Series: `loss{data set="a"}`, Value: "3"}},
		"not a number":                   {line: "loss NaN", want: sample{Series: "loss", Value: "NaN"}},
		"infinity":                       {line: "loss +Inf", want: sample{Series: "loss", Value: "+Inf"}},
		"minus infinity":                 {line: "loss -Inf", want: sample{Series: "loss", Value: "-Inf"}},
		"milliseconds":                   {line: "loss 1 1700000000123", want: sample{"loss", "1", time.UnixMilli(1700000000123).UTC()}},
		"before 1970":                    {line: "loss 1 -1", want: sample{"loss", "1", time.UnixMilli(-1).UTC()}},
		"seconds in OpenMetrics":         {openMetrics: true, line: "loss 1 1700000000.123", want: sample{"loss", "1", time.UnixMilli(1700000000123).UTC()}},
		"an exemplar":                    {openMetrics: true, line: `b_bucket{le="1"} 3 # {trace="x"} 0.5 1.5`, want: sample{Series: `b_bucket{le="1"}`, Value: "3"}},
		"a timestamp before an exemplar": {openMetrics: true, line: `b_total 3 1.5 # {} 0.5`, want: sample{"b_total", "3", time.Unix(1, 5e8).UTC()}},
		"a sum of a histogram":           {line: `loss_sum{a="b"} 12`, want: sample{Series: `loss_sum{a="b"}`, Value: "12"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok, err := exposed(t, &parse.Exposition{OpenMetrics: test.openMetrics}, test.line)
			if !ok || err != nil {
				t.Fatalf("ok %v, error %v", ok, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("sample (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpositionRefuses(t *testing.T) {
	tests := map[string]string{
		"a page of HTML":                 "<html><body>404</body></html>",
		"a name alone":                   "loss",
		"a value that is no number":      "loss high",
		"an underscored number":          "loss 1_000",
		"a hexadecimal number":           "loss 0x1p4",
		"a name that begins with digits": "1loss 3",
		"labels that do not end":         `loss{a="b" 3`,
		"a value that does not end":      `loss{a="b 3`,
		"a label without quotes":         `loss{a=b} 3`,
		"a label without a value":        `loss{a} 3`,
		"a label that stands twice":      `loss{a="b",a="c"} 3`,
		"an unknown escape":              `loss{a="\t"} 3`,
		"a label that is not UTF-8":      "loss{a=\"\xff\"} 3",
		"a timestamp in words":           "loss 3 today",
		"a timestamp in seconds":         "loss 3 1.5",
		"a third number":                 "loss 3 1 2",
		"an exemplar":                    `loss 3 # {} 1`,
		"two names":                      `loss{"a"} 3`,
	}
	for name, line := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok, err := exposed(t, &parse.Exposition{}, line); ok && err == nil {
				t.Errorf("%q was read as %+v", line, got)
			} else if err == nil {
				t.Errorf("%q was passed over without a word", line)
			}
		})
	}
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, `l%d="x",`, i)
	}
	if _, _, err := exposed(t, &parse.Exposition{}, "loss{"+many.String()+"} 3"); err == nil {
		t.Error("a line with 200 labels was read")
	}
}

func TestExpositionPassesOverWhatIsNoSample(t *testing.T) {
	for _, line := range []string{"", "  ", "# HELP loss The loss.", "# TYPE loss gauge", "# EOF", "#"} {
		if ok, err := (&parse.Exposition{}).Parse([]byte(line)); ok || err != nil {
			t.Errorf("%q: ok %v, error %v", line, ok, err)
		}
	}
}

func TestSelector(t *testing.T) {
	tests := map[string]struct {
		metric, line string
		want         bool
	}{
		"the name alone":                  {"loss", "loss 1", true},
		"any labels":                      {"loss", `loss{a="b"} 1`, true},
		"another name":                    {"loss", "val_loss 1", false},
		"the beginning of a name":         {"loss", "loss_total 1", false},
		"a label that is equal":           {`loss{split="test"}`, `loss{rank="0",split="test"} 1`, true},
		"a label that differs":            {`loss{split="test"}`, `loss{split="train"} 1`, false},
		"a label that is missing":         {`loss{split="test"}`, `loss 1`, false},
		"a label that must be missing":    {`loss{split=""}`, `loss 1`, true},
		"not equal":                       {`loss{split!="train"}`, `loss{split="test"} 1`, true},
		"not equal, but equal":            {`loss{split!="train"}`, `loss{split="train"} 1`, false},
		"a pattern":                       {`loss{rank=~"0|1"}`, `loss{rank="1"} 1`, true},
		"a pattern matches whole values":  {`loss{rank=~"0|1"}`, `loss{rank="10"} 1`, false},
		"not a pattern":                   {`loss{rank!~"1.*"}`, `loss{rank="10"} 1`, false},
		"several":                         {`loss { a = "1", b != "2", }`, `loss{a="1",b="3"} 1`, true},
		"several, of which one fails":     {`loss{a="1",b!="2"}`, `loss{a="1",b="2"} 1`, false},
		"an escaped quote":                {`loss{a="x\"y"}`, `loss{a="x\"y"} 1`, true},
		"a name that must be quoted":      {`val/loss`, `{"val/loss"} 1`, true},
		"a quoted name and a label of it": {`val/loss{a="b"}`, `{"val/loss",a="b"} 1`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := parse.NewSelector(test.metric)
			if err != nil {
				t.Fatal(err)
			}
			e := &parse.Exposition{}
			if ok, err := e.Parse([]byte(test.line)); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if got := s.Matches(e); got != test.want {
				t.Errorf("%s matches %s: %v, want %v", test.metric, test.line, got, test.want)
			}
		})
	}
}

func TestSelectorRefuses(t *testing.T) {
	tests := map[string]struct{ metric, want string }{
		"no name":            {`{a="b"}`, "has no name"},
		"no end":             {`loss{a="b"`, "do not end"},
		"no quotes":          {`loss{a=b}`, "cannot be read"},
		"more after the end": {`loss{a="b"} x`, "after the closing brace"},
		"a broken pattern":   {`loss{a=~"("}`, "missing closing"},
		"no sign":            {`loss{a}`, "has no value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parse.NewSelector(test.metric); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	names := []string{"val_loss", "train_loss", "accuracy", "lr", "epoch", "Loss/val", ""}
	tests := map[string]struct {
		name string
		want []string
	}{
		"a letter too few":            {"val_los", []string{"val_loss"}},
		"two letters swapped":         {"acucracy", []string{"accuracy"}},
		"another case":                {"Val_Loss", []string{"val_loss"}},
		"a part of several":           {"loss", []string{"Loss/val", "val_loss", "train_loss"}},
		"a name that holds another":   {"final_accuracy", []string{"accuracy"}},
		"nothing like it":             {"perplexity", nil},
		"short names need to be near": {"f1", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parse.Nearest(test.name, names, 3)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// theirs reads a line with Prometheus' own parser, which panics on some lines
// that begin with a brace.
func theirs(line string) (s []sample, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(line + "\n"))
	if err != nil {
		return nil, err
	}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			at := time.Time{}
			if m.TimestampMs != nil {
				at = time.UnixMilli(m.GetTimestampMs()).UTC()
			}
			s = append(s, sample{seriesOf(name, m), fmt.Sprint(m.GetUntyped().GetValue()), at})
		}
	}
	return s, nil
}

func seriesOf(name string, m *dto.Metric) string {
	e := parse.Exposition{Name: name}
	for _, l := range m.GetLabel() {
		e.Labels = append(e.Labels, parse.Label{Name: l.GetName(), Value: l.GetValue()})
	}
	return string(e.AppendSeries(nil))
}

var (
	quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	joined    = regexp.MustCompile(`[^={,\s]""|""[^=},\s]`)
)

// FuzzExposition holds that what Prometheus' own parser accepts is read as it
// reads it.
func FuzzExposition(f *testing.F) {
	for _, line := range []string{
		"loss 0.25", `loss{split="test",rank="0"} 3 1700000000123`, `{"val/loss",a="\\\"\n"} NaN`, "# TYPE a gauge",
		`a{b="c"} +Inf 12`, "a{}\t1e-9", `{a} 1`, `a{,} 1`, `a{b="c",} 0x10`, "a 1_0", `a{"b c"="d"} .5`, "\xff 1", `A{A""=""}0`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") {
			t.Skip("not a line")
		}
		e := &parse.Exposition{}
		for _, openMetrics := range []bool{true, false} {
			e.OpenMetrics = openMetrics
			var ok bool
			var err error
			parse.CheckMemory(t, len(line), func() { ok, err = e.Parse([]byte(line)) })
			if ok && err == nil && (len(e.Name) == 0 || len(e.Raw) == 0) {
				t.Fatalf("%q has no name or no value", line)
			}
		}
		got, ok, err := exposed(t, e, line)
		want, bad := theirs(line)
		if bad != nil || len(want) != 1 {
			return
		}
		if name, _, _ := strings.Cut(line, "{"); strings.Contains(name, `"`) {
			return // theirs takes a quoted name without braces, which the format does not have
		}
		if joined.MatchString(quotation.ReplaceAllString(line, `""`)) {
			return // nor a name of several pieces, as in {a"b"="c"}
		}
		if !ok || err != nil {
			t.Fatalf("%q: ok %v, error %v; want %+v", line, ok, err, want[0])
		}
		if diff := cmp.Diff(want[0], got); diff != "" {
			t.Errorf("%q (-theirs +ours):\n%s", line, diff)
		}
	})
}

// TestExpositionOfTheRealLibrary reads what Prometheus' own writers write, in
// both formats.
func TestExpositionOfTheRealLibrary(t *testing.T) {
	name, help, label, value := "loss", `The "loss" of a\b`+"\nper step.", "split", "te\"s\\t\n"
	gauge, v, at := dto.MetricType_GAUGE, math.Inf(-1), int64(1700000000123)
	family := &dto.MetricFamily{Name: &name, Help: &help, Type: &gauge, Metric: []*dto.Metric{
		{Gauge: &dto.Gauge{Value: &v}, TimestampMs: &at, Label: []*dto.LabelPair{{Name: &label, Value: &value}}},
	}}
	for _, format := range []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeOpenMetrics)} {
		var text bytes.Buffer
		encoder := expfmt.NewEncoder(&text, format)
		if err := encoder.Encode(family); err != nil {
			t.Fatal(err)
		}
		var got []sample
		e := &parse.Exposition{OpenMetrics: strings.Contains(string(format), "openmetrics")}
		for line := range strings.SplitSeq(strings.TrimSuffix(text.String(), "\n"), "\n") {
			s, ok, err := exposed(t, e, line)
			if err != nil {
				t.Fatalf("%s: %q: %v", format, line, err)
			}
			if ok {
				got = append(got, s)
			}
		}
		want := []sample{{`loss{split="te\"s\\t\n"}`, "-Inf", time.UnixMilli(at).UTC()}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}
