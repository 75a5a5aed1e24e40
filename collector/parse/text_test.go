package parse

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// got is the part of a sample that most tests speak of.
type got struct {
	Metric string
	Value  float64
	Text   string
	Offset int
}

func brief(samples []Sample) []got {
	var out []got
	for _, s := range samples {
		out = append(out, got{s.Metric, s.Value, s.Text, s.Offset})
	}
	return out
}

func newText(t testing.TB, metrics, filters []string) *Text {
	t.Helper()
	p, err := NewText(metrics, filters)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestText(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	loss := func(v float64, text string, offset int) []got { return []got{{"loss", v, text, offset}} }
	tests := map[string]struct {
		metrics []string // default: loss
		filters []string
		line    string
		want    []got
		wantErr string
	}{
		"one value":                         {line: "loss=0.5", want: loss(0.5, "", 0)},
		"spaces around the sign":            {line: "loss \t=  0.5", want: loss(0.5, "", 0)},
		"text before and after":             {line: "epoch 3: loss=0.5, next", want: loss(0.5, "", 9)},
		"several metrics in a line":         {metrics: []string{"loss", "acc"}, line: "acc=1 loss=2 acc=3", want: []got{{"acc", 1, "", 0}, {"loss", 2, "", 6}, {"acc", 3, "", 13}}},
		"a value as it was written":         {line: "loss=0.50", want: loss(0.5, "0.50", 0)},
		"a plus sign":                       {line: "loss=+1", want: loss(1, "+1", 0)},
		"a negative value":                  {line: "loss=-1.25", want: loss(-1.25, "", 0)},
		"no digit before the point":         {line: "loss=.5", want: loss(0.5, ".5", 0)},
		"a point without digits is no part": {line: "loss=3.", want: loss(3, "", 0)},
		"an exponent":                       {line: "loss=-7.53e+05", want: loss(-753000, "-7.53e+05", 0)},
		"the shortest form of a big number": {line: "loss=1e+06", want: loss(1e6, "", 0)},
		"an exponent without digits":        {line: "loss=2em", want: loss(2, "", 0)},
		"a unit after the value":            {line: "loss=95%", want: loss(95, "", 0)},
		"a value too large for a float":     {line: "loss=1e999", want: loss(inf, "1e999", 0)},
		"not a number":                      {line: "loss=nan", want: loss(nan, "nan", 0)},
		"infinity":                          {line: "loss=Inf loss=-inf loss=Infinity", want: []got{{"loss", inf, "Inf", 0}, {"loss", -inf, "-inf", 9}, {"loss", inf, "Infinity", 19}}},
		"a word that begins like infinity":  {line: "loss=information loss=nano", want: nil},
		"a word instead of a value":         {line: "loss=mse", want: nil},
		"nothing after the sign":            {line: "loss=", want: nil},
		"a colon is no sign":                {line: "loss: 0.5", want: nil},
		"a name that ends alike":            {line: "val_loss=1 xloss=2 a-loss=3 a|loss=4", want: nil},
		"a name that begins alike":          {line: "loss2=1 lossy=2", want: nil},
		"a path that ends alike":            {line: "val/loss=0.3", want: nil},
		"a wanted path":                     {metrics: []string{"val/loss", "loss"}, line: "val/loss=0.3 loss=2", want: []got{{"val/loss", 0.3, "", 0}, {"loss", 2, "", 13}}},
		"a longer path is another":          {metrics: []string{"val/loss"}, line: "x/val/loss=0.3", want: nil},
		"a name with other characters":      {metrics: []string{"acc@5", "f1.macro"}, line: "acc@5=1 f1.macro=2", want: []got{{"acc@5", 1, "", 0}, {"f1.macro", 2, "", 8}}},
		"the longest wanted name counts":    {metrics: []string{"loss", "val.loss"}, line: "val.loss=1", want: []got{{"val.loss", 1, "", 0}}},
		"a name after punctuation":          {line: "[INFO]loss=1 (loss=2) é loss=3 éloss=4", want: []got{{"loss", 1, "", 6}, {"loss", 2, "", 14}, {"loss", 3, "", 25}, {"loss", 4, "", 34}}},
		"names are case sensitive":          {line: "Loss=1", want: nil},
		"groups of thousands":               {line: "loss=1,234.5", want: loss(1234.5, "1,234.5", 0)},
		"a list after the value":            {metrics: []string{"loss", "acc"}, line: "loss=1,acc=2", want: []got{{"loss", 1, "", 0}, {"acc", 2, "", 7}}},
		"a decimal comma":                   {line: "loss=0,31", wantErr: "ambiguous"},
		"a decimal comma beside good ones":  {metrics: []string{"loss", "acc"}, line: "loss=3,1 acc=2", want: []got{{"acc", 2, "", 9}}, wantErr: "ambiguous"},
		"two signs":                         {line: "loss==1", want: nil},
		"a sign first":                      {line: "=1", want: nil},
		"an empty line":                     {line: "", want: nil},
		"a filter for colons":               {filters: []string{`(\w+): ([-+.\deE]+)`}, line: "x: 1 loss: 0.25", want: loss(0.25, "", 5)},
		"a filter in place of the default":  {filters: []string{`(\w+): (\S+)`}, line: "loss=1", want: nil},
		"a filter whose value is no number": {filters: []string{`(\w+): (\S+)`}, line: "loss: 12%", want: loss(nan, "12%", 0)},
		"a filter with spaces in its value": {filters: []string{`(\w+):(\s*\S+)`}, line: "loss:  2", want: loss(2, "", 0)},
		"a filter with groups in the value": {filters: []string{`([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`}, line: "loss=0.5 val_loss=2", want: loss(0.5, "", 0)},
		"two filters that find the same":    {filters: []string{`(\w+)=(\d+)`, `(\w+)=(\d+);`}, line: "loss=1;", want: loss(1, "", 0)},
		"two filters, in order of place":    {filters: []string{`(loss)=(\d+)`, `(loss)-(\d+)`}, line: "loss-1 loss=2 loss-3", want: []got{{"loss", 1, "", 0}, {"loss", 2, "", 7}, {"loss", 3, "", 14}}},
		"two values of one name part ways":  {filters: []string{`(loss)=(\d+)`, `(loss)=\d+,(\d+)`}, line: "loss=1,2", want: []got{{"loss", 1, "", 0}, {"loss", 2, "", 1}}},
		"a group that takes no part":        {filters: []string{`(loss)=1|(\w+)=2`}, line: "loss=1", want: nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.metrics == nil {
				tc.metrics = []string{"loss"}
			}
			samples, err := newText(t, tc.metrics, tc.filters).Parse(nil, []byte(tc.line))
			if diff := cmp.Diff(tc.want, brief(samples), cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestTextStepAndTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)
	tests := map[string]struct {
		line string
		step int64
		time time.Time
	}{
		"neither":                         {"loss=1", NoStep, time.Time{}},
		"a step":                          {"step=7 loss=1", 7, time.Time{}},
		"a step after the value":          {"loss=1 step = 7", 7, time.Time{}},
		"an epoch":                        {"Epoch=3 loss=1", 3, time.Time{}},
		"a step is finer than an epoch":   {"epoch=3 step=70 loss=1", 70, time.Time{}},
		"the first of two counts":         {"step=1 loss=1 step=2", 1, time.Time{}},
		"a global step is the finest":     {"step=5 global_step=70 loss=1", 70, time.Time{}},
		"a step in JSON":                  {`{"step": 12} loss=1`, 12, time.Time{}},
		"a step with a colon":             {"iteration: 9 loss=1", 9, time.Time{}},
		"a step of a total":               {"step=9/10 loss=1", 9, time.Time{}},
		"a whole number with a point":     {"epoch=2.0 loss=1", 2, time.Time{}},
		"a fraction is no step":           {"epoch=2.5 loss=1", NoStep, time.Time{}},
		"a negative number is no step":    {"step=-1 loss=1", NoStep, time.Time{}},
		"a name that ends alike":          {"last_step=3 loss=1", NoStep, time.Time{}},
		"a time":                          {"2026-03-04T05:06:07.123456789Z loss=1", NoStep, at},
		"a time with a zone":              {"2026-03-04T06:06:07.123456789+01:00 loss=1", NoStep, at},
		"a time that is not at the front": {"x 2026-03-04T05:06:07Z loss=1", NoStep, time.Time{}},
		"almost a time":                   {"2026-03-04T25:06:07.123456789Z loss=1", NoStep, time.Time{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			samples, err := newText(t, []string{"loss"}, nil).Parse(nil, []byte(tc.line))
			if err != nil || len(samples) != 1 {
				t.Fatalf("got %d samples, error %v", len(samples), err)
			}
			if s := samples[0]; s.Step != tc.step || !s.Time.Equal(tc.time) {
				t.Errorf("got step %d and time %v, want %d and %v", s.Step, s.Time, tc.step, tc.time)
			}
		})
	}
}

func TestTextRefusesWhatCannotWork(t *testing.T) {
	tests := map[string]struct {
		metrics, filters []string
		want             string
	}{
		"no metric":               {want: "no metric"},
		"an empty name":           {metrics: []string{""}, want: "empty name"},
		"a filter with one group": {metrics: []string{"a"}, filters: []string{`(\w+)`}, want: "has 1 groups"},
		"a filter that is broken": {metrics: []string{"a"}, filters: []string{`(`}, want: "missing closing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := NewText(tc.metrics, tc.filters); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// katib is the default filter of Katib.
var katib = regexp.MustCompile(`([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`)

// On lines without the differences that the documentation names, the scanner
// finds what Katib's filter finds.
func TestTextAgreesWithKatibsFilter(t *testing.T) {
	p := newText(t, []string{"loss", "acc", "a|b", "top-1"}, nil)
	pieces := []string{"loss", "acc", "a|b", "top-1", "val_", "=", " = ", "=\t", "0.5", "-1", "3e-4", ".25", "12", "+7.5E2", " ", "; ", "é", "x", "(", "9"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		line := b.String()
		var want []got
		for _, m := range katib.FindAllStringSubmatchIndex(line, -1) {
			name, value := line[m[2]:m[3]], line[m[4]:m[5]]
			v, err := strconv.ParseFloat(value, 64)
			known := name == "loss" || name == "acc" || name == "a|b" || name == "top-1"
			// "1e5loss=2": the filter lets a name begin where a value ended.
			if begin := m[2]; !known || err != nil || begin > 0 && isName(line[begin-1]) {
				continue
			}
			want = append(want, got{name, v, textOf([]byte(value), v), m[2]})
		}
		samples, err := p.Parse(nil, []byte(line))
		if diff := cmp.Diff(want, brief(samples)); diff != "" || err != nil {
			t.Fatalf("%q: error %v, samples (-filter +scanner):\n%s", line, err, diff)
		}
	}
}

func TestTextOfKeepsOnlyWhatDiffers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		raw := strconv.FormatFloat(math.Ldexp(random.Float64()-0.5, random.IntN(60)-30), "efg"[random.IntN(3)], random.IntN(18)-1, 64)
		v, err := strconv.ParseFloat(raw, 64)
		if err != nil {
			t.Fatal(err)
		}
		shortest := strconv.FormatFloat(v, 'g', -1, 64)
		want := raw
		if raw == shortest {
			want = ""
		}
		if got := textOf([]byte(raw), v); got != want {
			t.Fatalf("the text of %q (shortest %q) is %q, want %q", raw, shortest, got, want)
		}
	}
}

func TestTextDoesNotAllocate(t *testing.T) {
	p := newText(t, []string{"loss", "acc"}, nil)
	line := []byte("2026-03-04T05:06:07.123456789Z epoch=3 step=1200 loss=0.123456 lr=0.001 acc=0.98")
	dst := make([]Sample, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		out, err := p.Parse(dst, line)
		if err != nil || len(out) != 2 {
			t.Fatal(out, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"loss=0.5", "step=3 loss=1,234.5 val/loss = -inf", "2026-03-04T05:06:07Z loss=1e-3", `{"step": 3} loss=nan`} {
		f.Add(s)
	}
	def := newText(f, []string{"loss", "val/loss"}, nil)
	user := newText(f, []string{"loss", "val/loss"}, []string{`([\w/]+)\s*[:=]\s*(\S*)`, `(\w+)=(.)`})
	f.Fuzz(func(t *testing.T, line string) {
		for _, p := range []*Text{def, user} {
			samples, _ := p.Parse(nil, []byte(line))
			checkSamples(t, line, samples)
		}
	})
}

// checkSamples checks what holds for the samples of any line.
func checkSamples(t *testing.T, line string, samples []Sample) {
	t.Helper()
	last := -1
	for _, s := range samples {
		if s.Offset <= last || s.Offset > len(line) {
			t.Fatalf("%q: offset %d after %d", line, s.Offset, last)
		}
		last = s.Offset
		if s.Metric == "" || s.Step < NoStep || len(s.Text) > maxText {
			t.Fatalf("%q: sample %+v", line, s)
		}
		if v, err := strconv.ParseFloat(strings.ReplaceAll(s.Text, ",", ""), 64); s.Text != "" && err == nil && v != s.Value && !math.IsNaN(s.Value) && len(s.Text) < maxText {
			t.Fatalf("%q: text %q is %v, not %v", line, s.Text, v, s.Value)
		}
	}
}

func BenchmarkTextDense(b *testing.B) {
	benchmarkLine(b, newText(b, []string{"loss", "acc"}, nil), "epoch=3 step=1200 loss=0.123456 acc=0.98")
}

func BenchmarkTextSparse(b *testing.B) {
	benchmarkLine(b, newText(b, []string{"loss"}, nil), strings.Repeat("downloading the data set, please wait. ", 5)+"size=17 MB")
}

func BenchmarkTextFilter(b *testing.B) {
	benchmarkLine(b, newText(b, []string{"loss"}, []string{`(\w+): ([-+.\deE]+)`}), "epoch 3, step 1200: loss: 0.123456")
}

func benchmarkLine(b *testing.B, p Line, line string) {
	b.SetBytes(int64(len(line) + 1))
	b.ReportAllocs()
	dst := make([]Sample, 0, 8)
	text := []byte(line)
	for b.Loop() {
		if _, err := p.Parse(dst, text); err != nil {
			b.Fatal(err)
		}
	}
}
