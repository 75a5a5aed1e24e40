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
	const colons = `([\w|-]+)\s*:\s*([\d.,]+%?)`
	loss := func(v float64, text string, offset int) []got { return []got{{"loss", v, text, offset}} }
	tests := map[string]lineCase{
		"one value":                                         {line: "loss=0.5", want: loss(0.5, "", 0)},
		"spaces around the sign":                            {line: "loss \t=  0.5", want: loss(0.5, "", 0)},
		"text before and after":                             {line: "epoch 3: loss=0.5, next", want: loss(0.5, "", 9)},
		"several metrics in a line":                         {metrics: []string{"loss", "acc"}, line: "acc=1 loss=2 acc=3", want: []got{{"acc", 1, "", 0}, {"loss", 2, "", 6}, {"acc", 3, "", 13}}},
		"a value as it was written":                         {line: "loss=0.50", want: loss(0.5, "0.50", 0)},
		"a plus sign":                                       {line: "loss=+1", want: loss(1, "+1", 0)},
		"a negative value":                                  {line: "loss=-1.25", want: loss(-1.25, "", 0)},
		"no digit before the point":                         {line: "loss=.5", want: loss(0.5, ".5", 0)},
		"a point without digits is no part":                 {line: "loss=3.", want: loss(3, "", 0)},
		"an exponent":                                       {line: "loss=-7.53e+05", want: loss(-753000, "-7.53e+05", 0)},
		"the shortest form of a big number":                 {line: "loss=1e+06", want: loss(1e6, "", 0)},
		"an exponent without digits":                        {line: "loss=2em", want: loss(2, "", 0)},
		"a unit after the value":                            {line: "loss=95%", want: loss(95, "", 0)},
		"a value too large for a float":                     {line: "loss=1e999", want: loss(inf, "1e999", 0)},
		"not a number":                                      {line: "loss=nan", want: loss(nan, "nan", 0)},
		"infinity":                                          {line: "loss=Inf loss=-inf loss=Infinity", want: []got{{"loss", inf, "Inf", 0}, {"loss", -inf, "-inf", 9}, {"loss", inf, "Infinity", 19}}},
		"a word that begins like infinity":                  {line: "loss=information loss=nano", want: nil},
		"a word instead of a value":                         {line: "loss=mse", want: nil},
		"nothing after the sign":                            {line: "loss=", want: nil},
		"a colon is no sign":                                {line: "loss: 0.5", want: nil},
		"a name that ends alike":                            {line: "val_loss=1 xloss=2 a-loss=3 a|loss=4", want: nil},
		"a name that begins alike":                          {line: "loss2=1 lossy=2", want: nil},
		"a path that ends alike":                            {line: "val/loss=0.3", want: nil},
		"a wanted path":                                     {metrics: []string{"val/loss", "loss"}, line: "val/loss=0.3 loss=2", want: []got{{"val/loss", 0.3, "", 0}, {"loss", 2, "", 13}}},
		"a longer path is another":                          {metrics: []string{"val/loss"}, line: "x/val/loss=0.3", want: nil},
		"a name with other characters":                      {metrics: []string{"acc@5", "f1.macro"}, line: "acc@5=1 f1.macro=2", want: []got{{"acc@5", 1, "", 0}, {"f1.macro", 2, "", 8}}},
		"the longest wanted name counts":                    {metrics: []string{"loss", "val.loss"}, line: "val.loss=1", want: []got{{"val.loss", 1, "", 0}}},
		"a name after punctuation":                          {line: "[INFO]loss=1 (loss=2) é loss=3 éloss=4", want: []got{{"loss", 1, "", 6}, {"loss", 2, "", 14}, {"loss", 3, "", 25}, {"loss", 4, "", 34}}},
		"names are case sensitive":                          {line: "Loss=1", want: nil},
		"groups of thousands":                               {line: "loss=1,234.5", want: loss(1234.5, "1,234.5", 0)},
		"several groups of thousands":                       {line: "loss=1,234,567", want: loss(1234567, "1,234,567", 0)},
		"one group may be a decimal comma":                  {line: "loss=1,234", wantErr: "ambiguous"},
		"a trailing zero and a big number":                  {line: "loss=12345678.50 loss=0.00001", want: []got{{"loss", 12345678.5, "12345678.50", 0}, {"loss", 0.00001, "0.00001", 17}}},
		"a list after the value":                            {metrics: []string{"loss", "acc"}, line: "loss=1,acc=2", want: []got{{"loss", 1, "", 0}, {"acc", 2, "", 7}}},
		"a decimal comma":                                   {line: "loss=0,31", wantErr: "ambiguous"},
		"a decimal comma beside good ones":                  {metrics: []string{"loss", "acc"}, line: "loss=3,1 acc=2", want: []got{{"acc", 2, "", 9}}, wantErr: "ambiguous"},
		"two signs":                                         {line: "loss==1", want: nil},
		"a sign first":                                      {line: "=1", want: nil},
		"an empty line":                                     {line: "", want: nil},
		"a filter for colons":                               {filters: []string{`(\w+): ([-+.\deE]+)`}, line: "x: 1 loss: 0.25", want: loss(0.25, "", 5)},
		"a filter in place of the default":                  {filters: []string{`(\w+): (\S+)`}, line: "loss=1", want: nil},
		"a filter whose value is no number":                 {filters: []string{`(\w+): (\S+)`}, line: "loss: 12s", want: loss(nan, "12s", 0)},
		"a filter that asks for a percentage":               {filters: []string{colons}, line: "loss: 97.5%", want: loss(97.5, "97.5%", 0)},
		"a percentage whose sign the filter leaves":         {filters: []string{`(\w+): ([\d.]+)`}, line: "loss: 97.5%", want: loss(97.5, "", 0)},
		"a filter that asks for groups of thousands":        {filters: []string{colons}, line: "loss : 1,234.5", want: loss(1234.5, "1,234.5", 0)},
		"groups of thousands without a point":               {filters: []string{colons}, line: "loss:12,345", want: loss(12345, "12,345", 0)},
		"groups of thousands and a percent sign":            {filters: []string{colons}, line: "loss:1,234.5%", want: loss(1234.5, "1,234.5%", 0)},
		"a filter that does not capture the groups":         {filters: []string{`(\w+):\s*(\d+)`}, line: "loss: 1,234.5", want: loss(1, "", 0)},
		"a decimal comma that a filter captures stays text": {filters: []string{colons}, line: "loss: 0,31", want: loss(nan, "0,31", 0)},
		"a group that is too long stays text":               {filters: []string{colons}, line: "loss: 1,2345", want: loss(nan, "1,2345", 0)},
		"a comma at the end stays text":                     {filters: []string{colons}, line: "loss: 1,", want: loss(nan, "1,", 0)},
		"a filter sees names with dots and pipes":           {metrics: []string{"a|b-c"}, filters: []string{colons}, line: "a|b-c: 1", want: []got{{"a|b-c", 1, "", 0}}},
		"the filter of Katib's PyTorch example":             {metrics: []string{"loss", "accuracy"}, filters: []string{`{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}`}, line: "2021-12-02T05:47:27Z INFO     {metricName: accuracy, metricValue: 0.9876};{metricName: loss, metricValue: 0.5315}", want: []got{{"accuracy", 0.9876, "", 43}, {"loss", 0.5315, "", 87}}},
		"the filter of Katib's tune()":                      {filters: []string{`'([\w|-]+)'\s*:\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`}, line: "{'loss': 0.4321, 'learning_rate': 5e-05, 'epoch': 1.0}", want: loss(0.4321, "", 2)},
		"colours around the name":                           {line: "\x1b[1;32mloss\x1b[0m=\x1b[31m0.25\x1b[0m", want: loss(0.25, "", 7)},
		"a colour within the value":                         {line: "loss=0\x1b[31m.25", want: loss(0.25, "", 0)},
		"a line that is cleared":                            {line: "\x1b[2K\x1b[1Gloss=0.25 \x1b[Kloss=3", want: []got{{"loss", 0.25, "", 8}, {"loss", 3, "", 21}}},
		"a title of the terminal":                           {line: "\x1b]0;loss=1\aloss=2 \x1b]0;loss=3\x1b\\loss=4", want: []got{{"loss", 2, "", 11}, {"loss", 4, "", 30}}},
		"a sequence without an end":                         {line: "loss=2\x1b", want: loss(2, "", 0)},
		"bytes that are no UTF-8":                           {line: "\xff\xfeloss=0.5\xc3", want: loss(0.5, "", 2)},
		"zeros":                                             {line: "\x00\x00loss=0.5\x00", want: loss(0.5, "", 2)},
		"backspaces of an old progress bar":                 {line: "\b\b\b 10/10 loss=0.5\b\b", want: loss(0.5, "", 10)},
		"a progress bar of tqdm":                            {metrics: []string{"loss", "acc"}, line: " 45%|\u2588\u2588\u258c  | 45/100 [00:10<00:12,  4.50it/s, acc=0.9, loss=0.123]", want: []got{{"acc", 0.9, "", 50}, {"loss", 0.123, "", 59}}},
		"a progress bar of Keras":                           {metrics: []string{"loss", "val_loss"}, filters: []string{`(\w+): ([\d.eE+-]+)`}, line: "1875/1875 [=====] - 2s 1ms/step - loss: 0.2912 - val_loss: 1.4e-01", want: []got{{"loss", 0.2912, "", 34}, {"val_loss", 0.14, "1.4e-01", 49}}},
		"a filter with spaces in its value":                 {filters: []string{`(\w+):(\s*\S+)`}, line: "loss:  2", want: loss(2, "", 0)},
		"a filter with groups in the value":                 {filters: []string{`([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`}, line: "loss=0.5 val_loss=2", want: loss(0.5, "", 0)},
		"two filters that find the same":                    {filters: []string{`(\w+)=(\d+)`, `(\w+)=(\d+);`}, line: "loss=1;", want: loss(1, "", 0)},
		"two filters, in order of place":                    {filters: []string{`(loss)=(\d+)`, `(loss)-(\d+)`}, line: "loss-1 loss=2 loss-3", want: []got{{"loss", 1, "", 0}, {"loss", 2, "", 7}, {"loss", 3, "", 14}}},
		"two values of one name part ways":                  {filters: []string{`(loss)=(\d+)`, `(loss)=\d+,(\d+)`}, line: "loss=1,2", want: []got{{"loss", 1, "", 0}, {"loss", 2, "", 1}}},
		"a group that takes no part":                        {filters: []string{`(loss)=1|(\w+)=2`}, line: "loss=1", want: nil},
	}
	checkLines(t, func(t testing.TB, tc lineCase) Line { return newText(t, tc.metrics, tc.filters) }, tests)
}

func TestTextStepAndTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)
	tests := map[string]stepCase{
		"neither":                          {"loss=1", NoStep, time.Time{}},
		"a step":                           {"step=7 loss=1", 7, time.Time{}},
		"a step after the value":           {"loss=1 step = 7", 7, time.Time{}},
		"an epoch":                         {"Epoch=3 loss=1", 3, time.Time{}},
		"a step is finer than an epoch":    {"epoch=3 step=70 loss=1", 70, time.Time{}},
		"that before a sign counts first":  {"step: 1 loss=1 step=2", 2, time.Time{}},
		"a global step in words":           {"step=1 loss=1 Global_Step: 20", 20, time.Time{}},
		"the first of two counts":          {"step=1 loss=1 step=2", 1, time.Time{}},
		"a global step is the finest":      {"step=5 global_step=70 loss=1", 70, time.Time{}},
		"a step in JSON":                   {`{"step": 12} loss=1`, 12, time.Time{}},
		"a step with a colon":              {"iteration: 9 loss=1", 9, time.Time{}},
		"a step of a total":                {"step=9/10 loss=1", 9, time.Time{}},
		"a whole number with a point":      {"epoch=2.0 loss=1", 2, time.Time{}},
		"a fraction is no step":            {"epoch=2.5 loss=1", NoStep, time.Time{}},
		"a negative number is no step":     {"step=-1 loss=1", NoStep, time.Time{}},
		"a name that ends alike":           {"last_step=3 loss=1", NoStep, time.Time{}},
		"a time":                           {"2026-03-04T05:06:07.123456789Z loss=1", NoStep, at},
		"a time with a zone":               {"2026-03-04T06:06:07.123456789+01:00 loss=1", NoStep, at},
		"a time that is not at the front":  {"x 2026-03-04T05:06:07Z loss=1", NoStep, time.Time{}},
		"a step with groups":               {"step 1,000 loss=1", 1000, time.Time{}},
		"a step with groups and a sign":    {"step=12,345 loss=1", 12345, time.Time{}},
		"a step before a comma":            {"step=12,loss=1", 12, time.Time{}},
		"a step in a list of numbers":      {"step=12, 345 loss=1", 12, time.Time{}},
		"a step in thousands":              {"step 12k loss=1", 12000, time.Time{}},
		"a step in broken thousands":       {"step: 1.5k loss=1", 1500, time.Time{}},
		"a step in millions":               {"step=2M, loss=1", 2000000, time.Time{}},
		"a step as e+":                     {"step=1e+06 loss=1", 1000000, time.Time{}},
		"a duration is no step":            {"step: 37ms loss=1", NoStep, time.Time{}},
		"a percentage is no step":          {"epoch 50% loss=1", NoStep, time.Time{}},
		"a rate is no step":                {"2s 1ms/step loss=1", NoStep, time.Time{}},
		"Epoch 3/10":                       {"Epoch 3/10 loss=1", 3, time.Time{}},
		"Epoch [3/10]":                     {"Epoch [3/10], Step [100/500], loss=1", 100, time.Time{}},
		"an epoch and a batch":             {"Epoch: [3][ 100/5005] loss=1", 3, time.Time{}},
		"a train epoch":                    {"Train Epoch: 3 [25600/60000 (43%)]\tloss=1", 3, time.Time{}},
		"capitals":                         {"EPOCH 3 STEP 40 loss=1", 40, time.Time{}},
		"iter":                             {"iter #300: loss=1", 300, time.Time{}},
		"global_step in a path":            {"trainer/global_step=12 epoch=1 loss=1", 12, time.Time{}},
		"a name that has step in it":       {"steps=3 stepwise 4 max_step=9 loss=1", NoStep, time.Time{}},
		"words between name and number":    {"step was 3 loss=1", NoStep, time.Time{}},
		"a number far from its name":       {"step          3 loss=1", NoStep, time.Time{}},
		"a number at the end":              {"loss=1 step", NoStep, time.Time{}},
		"a step that is too large":         {"step=99999999999999999999 loss=1", NoStep, time.Time{}},
		"a dict of the HF trainer":         {"{'loss': 1, 'epoch': 2.0} loss=1", 2, time.Time{}},
		"a broken epoch of the HF trainer": {"{'loss': 1, 'epoch': 2.13} loss=1", NoStep, time.Time{}},
		"a coloured step":                  {"\x1b[1mstep\x1b[0m=7 loss=1", 7, time.Time{}},
		"a time in brackets":               {"[2026-03-04T05:06:07.123456789Z] loss=1", NoStep, at},
		"a time with a space":              {"2026-03-04 05:06:07.123456789+00:00 loss=1", NoStep, at},
		"a time with more digits":          {"2026-03-04T05:06:07.1234567891234Z loss=1", NoStep, at},
		"seconds since 1970":               {"1772600767.123456789 loss=1", NoStep, at},
		"milliseconds since 1970":          {"1772600767123.456789 loss=1", NoStep, at},
		"whole milliseconds since 1970":    {"1772600767123 loss=1", NoStep, time.UnixMilli(1772600767123)},
		"microseconds since 1970":          {"1772600767123456.789 loss=1", NoStep, at},
		"nanoseconds since 1970":           {"1772600767123456789 loss=1", NoStep, at},
		"a number that is no time":         {"1000 loss=1", NoStep, time.Time{}},
		"a number with a letter":           {"1772600767x loss=1", NoStep, time.Time{}},
		"a date without a zone":            {"2026-03-04 05:06:07,123 INFO loss=1", NoStep, time.Time{}},
		"almost a time":                    {"2026-03-04T25:06:07.123456789Z loss=1", NoStep, time.Time{}},
	}
	checkStepsAndTimes(t, func(t testing.TB) Line { return newText(t, []string{"loss"}, nil) }, tests)
}

// A line that says only an epoch is the step of the lines after it.
func TestTextRemembersAnEpoch(t *testing.T) {
	tests := map[string]struct {
		lines string
		want  []int64
	}{
		"Keras":                                {"Epoch 1/2\n100/100 - loss=1\nEpoch 2/2\n50/100 - loss=1\n100/100 - loss=1", []int64{1, 2, 2}},
		"Katib's own example":                  {"epoch 1:\nloss=0.3\nloss=0.4\nepoch 2:\nloss=0.1", []int64{1, 1, 2}},
		"the quickstart of PyTorch":            {"Epoch 1\n-------\nloss=2.3", []int64{1}},
		"a frame":                              {"===== Epoch [3/10] =====\nloss=1", []int64{3}},
		"with a sign":                          {"epoch=4\nloss=1", []int64{4}},
		"a line's own epoch counts":            {"Epoch 1/2\nepoch=7 loss=1\nloss=1", []int64{7, 1}},
		"steps that are finer end it":          {"Epoch 1/2\nstep=500 loss=1\nloss=1\nEpoch 2/2\nloss=1", []int64{500, NoStep, NoStep}},
		"a line that says more is none":        {"Epoch 1 begins\nloss=1", []int64{NoStep}},
		"an epoch that took some time is none": {"Epoch 1: 37s\nloss=1", []int64{NoStep}},
		"a word that begins alike":             {"epochs 3\nloss=1", []int64{NoStep}},
		"nothing before":                       {"loss=1\nEpoch 1/2", []int64{NoStep}},
		"colours":                              {"\x1b[1mEpoch 5/9\x1b[0m =\nloss=1", []int64{5}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newText(t, []string{"loss"}, nil)
			for range 2 { // the second time after a reset
				var steps []int64
				for line := range strings.SplitSeq(tc.lines, "\n") {
					samples, err := p.Parse(nil, []byte(line))
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range samples {
						steps = append(steps, s.Step)
					}
				}
				if diff := cmp.Diff(tc.want, steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				p.Reset()
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

func TestStepNamesAreInOrderOfRank(t *testing.T) {
	last := -1
	for _, name := range stepNames {
		rank := rankOf([]byte(strings.ToUpper(name)))
		if rank < last || rank == noRank {
			t.Errorf("%s has rank %d after %d", name, rank, last)
		}
		last = rank
	}
	for _, name := range []string{"", "ste", "xstep", "global-step", "global_stepx", "epochs", "iterations", "last_iteration"} {
		if rank := rankOf([]byte(name)); rank != noRank {
			t.Errorf("%q has rank %d", name, rank)
		}
	}
}

// A filter is tried only where its literal is; the literal must be in every
// match.
func TestFilterLiterals(t *testing.T) {
	tests := map[string]string{
		`(\w+)=(\d+)`: "=",
		`{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}`: ", metricValue: ",
		`(a)|(b)`:         "",
		`(?i)(loss): (.)`: "",
		`(abc)*(d)`:       "d",
		`(abc)+(d)`:       "abc",
		`(abc){2}(d)`:     "abc",
		`(abc){0,2}(d)`:   "d",
		`(abc)?(d+)`:      "d",
		`(\x{fffd})(.)`:   "",
	}
	for expression, want := range tests {
		f, err := newFilter(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(f.literal); got != want {
			t.Errorf("the literal of %s is %q, want %q", expression, got, want)
		}
	}
}

func TestTextDoesNotAllocate(t *testing.T) {
	p := newText(t, []string{"loss", "acc"}, nil)
	line := []byte("2026-03-04T05:06:07.123456789Z epoch=3 step=1200 loss=0.123450 lr=0.001 acc=0.12345678901234567")
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

// The grammar in pieces, for slowText.
var (
	slowNumber  = regexp.MustCompile(`^[+-]?(\d+(\.\d+)?|\.\d+)([Ee][+-]?\d+)?`)
	slowWord    = regexp.MustCompile(`^([+-]?(?i:infinity|nan|inf))(\W|$)`)
	slowCommas  = regexp.MustCompile(`^[+-]?\d+(,\d+)+(\.\d+)?`)
	slowGrouped = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(,\d{3}((,\d{3})+(\.\d+)?|\.\d+))$`)
	slowPower   = regexp.MustCompile(`^[Ee][+-]?\d+`)
	slowName    = regexp.MustCompile(`[\w|/-]$`)
)

// slowText finds what the default grammar must find, in a line without escape
// sequences.
func slowText(line string, names ...string) (found []got) {
	for eq := range len(line) {
		if line[eq] != '=' {
			continue
		}
		before := strings.TrimRight(line[:eq], " \t\n\f\r")
		name := ""
		for _, n := range names {
			if rest, ok := strings.CutSuffix(before, n); ok && len(n) > len(name) && !slowName.MatchString(rest) {
				name = n
			}
		}
		after := strings.TrimLeft(line[eq+1:], " \t\n\f\r")
		value := slowNumber.FindString(after)
		if m := slowWord.FindStringSubmatch(after); m != nil {
			value = m[1]
		}
		if commas := slowCommas.FindString(after); commas != "" {
			if value = ""; slowGrouped.MatchString(commas) {
				value = commas + slowPower.FindString(after[len(commas):])
			}
		}
		if name == "" || value == "" {
			continue
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", ""), 64)
		if err != nil && !math.IsInf(v, 0) { // a NaN with a sign
			v = math.NaN()
		}
		found = append(found, got{name, v, textOf([]byte(value), v), len(before) - len(name)})
	}
	return found
}

func checkText(t *testing.T, p *Text, line string) {
	t.Helper()
	p.Reset()
	samples := checkedParse(t, p, line)
	checkSamples(t, line, samples)
	if strings.Contains(line, "\x1b") {
		return
	}
	if diff := cmp.Diff(slowText(line, "loss", "val/loss", "a b"), brief(samples), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("%q: samples (-slow +fast):\n%s", line, diff)
	}
}

func TestTextAgreesWithItsGrammar(t *testing.T) {
	p := newText(t, []string{"loss", "val/loss", "a b"}, nil)
	pieces := []string{"loss", "loss", "val/", "a b", "=", "=", " = ", "0.5", "12", ",", ",345", ".25", "e-3", "nan", "-inf", "+", "-", " ", "\r", "x", "é", "|", "%"}
	randomLines(30000, pieces, func(line string) { checkText(t, p, line) })
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"loss=0.5", "step=3 loss=1,234.5 val/loss = -inf", "2026-03-04T05:06:07Z loss=1e-3", `{"step": 3} loss=nan`, "\x1b[1mloss\x1b[0m=1"} {
		f.Add(s)
	}
	def := newText(f, []string{"loss", "val/loss", "a b"}, nil)
	f.Fuzz(func(t *testing.T, line string) { checkText(t, def, line) })
}

// With a filter, what is found is what the expression alone finds.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"loss: 0.5", "val/loss = 97.5% loss:1,234", "loss=x loss=y"} {
		f.Add(s)
	}
	filters := []string{`([\w/]+)\s*[:=]\s*(\S*)`, `(loss)=(.)`}
	user := newText(f, []string{"loss", "val/loss"}, filters)
	f.Fuzz(func(t *testing.T, line string) {
		samples := checkedParse(t, user, line)
		checkSamples(t, line, samples)
		if strings.Contains(line, "\x1b") {
			return
		}
		found := map[string]bool{}
		for _, filter := range filters {
			for _, m := range regexp.MustCompile(filter).FindAllStringSubmatch(line, -1) {
				if value := strings.TrimSpace(m[2]); (m[1] == "loss" || m[1] == "val/loss") && value != "" {
					s := wholeSample(&texts{}, []byte(value))
					found[m[1]+s.Text+strconv.FormatFloat(s.Value, 'g', -1, 64)] = true
				}
			}
		}
		for _, s := range samples {
			key := s.Metric + s.Text + strconv.FormatFloat(s.Value, 'g', -1, 64)
			if !found[key] {
				t.Fatalf("%q: %s is not what the filters find: %v", line, key, found)
			}
		}
		if len(found) > 0 && len(samples) == 0 {
			t.Fatalf("%q: nothing is found, the filters find %v", line, found)
		}
	})
}

// checkSamples checks what holds for the samples of any line.
func checkSamples(t testing.TB, line string, samples []Sample) {
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
