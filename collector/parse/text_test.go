package parse

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
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
		"one value behind a byte order mark":                {line: "\ufeffloss=0.5", want: loss(0.5, "", 3)},
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
		"a name after punctuation":                          {line: "[INFO]loss=1 (loss=2) é loss=3 éloss=4", want: []got{{"loss", 1, "", 6}, {"loss", 2, "", 14}, {"loss", 3, "", 25}}},
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
		"colours around the name":                           {line: "\x1b[1;32mloss\x1b[0m=\x1b[31m0.25\x1b[0m", want: loss(0.25, "", 0)},
		"a colour within the value":                         {line: "loss=0\x1b[31m.25", want: loss(0.25, "", 0)},
		"a line that is cleared":                            {line: "\x1b[2K\x1b[1Gloss=0.25 \x1b[Kloss=3", want: []got{{"loss", 0.25, "", 0}, {"loss", 3, "", 10}}},
		"a title of the terminal":                           {line: "\x1b]0;loss=1\aloss=2 \x1b]0;loss=3\x1b\\loss=4", want: []got{{"loss", 2, "", 0}, {"loss", 4, "", 7}}},
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

func TestTextRefusesWhatCannotWork(t *testing.T) {
	tests := map[string]struct {
		metrics, filters []string
		want             string
	}{
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

// checkSamples checks what holds for the samples of any line.
func checkSamples(t testing.TB, line string, samples []collector.Point) {
	t.Helper()
	last := int64(-1)
	for _, s := range samples {
		if s.Seq <= last || s.Seq > int64(len(line)) {
			t.Fatalf("%q: offset %d after %d", line, s.Seq, last)
		}
		last = s.Seq
		if s.Metric == "" || s.Step < collector.NoStep || len(s.Text) > maxText {
			t.Fatalf("%q: sample %+v", line, s)
		}
		if v, err := strconv.ParseFloat(strings.ReplaceAll(s.Text, ",", ""), 64); s.Text != "" && err == nil && v != s.Value && !math.IsNaN(s.Value) && len(s.Text) < maxText {
			t.Fatalf("%q: text %q is %v, not %v", line, s.Text, v, s.Value)
		}
	}
}
