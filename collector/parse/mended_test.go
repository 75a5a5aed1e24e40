package parse

import (
	"math"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// What was once read wrongly, or in silence.
func TestNumbersAreReadRightOrNotAtAll(t *testing.T) {
	loss := func(v float64, text string) []got { return []got{{"loss", v, text, 0}} }
	tests := map[string]lineCase{
		"points part thousands before a decimal comma": {line: "loss=1.234,56", wantErr: "ambiguous"},
		"points alone part thousands":                  {line: "loss=1.234.567", wantErr: "ambiguous"},
		"a list of two is its first":                   {line: "loss=0.5,0.4", want: loss(0.5, "")},
		"a list of three digits each":                  {line: "loss=1.234,5.6", want: loss(1.234, "")},
		"underscores part thousands":                   {line: "loss=1_000", want: loss(1000, "1_000")},
		"underscores before a point":                   {line: "loss=1_000.5", want: loss(1000.5, "1_000.5")},
		"underscores elsewhere":                        {line: "loss=1_00", wantErr: "ambiguous"},
		"hexadecimal":                                  {line: "loss=0x10", wantErr: "ambiguous"},
		"no digits between point and exponent":         {line: "loss=1.e-3", want: loss(0.001, "1.e-3")},
		"a filter captures a point and an exponent":    {filters: []string{`(\w+): (\S+)`}, line: "loss: 1.e-3", want: loss(0.001, "1.e-3")},
		"a filter leaves out the exponent":             {filters: []string{`(\w+): ([\d.]+)`}, line: "loss: 8.7654e-04", wantErr: "leaves out its exponent"},
		"of one value of two":                          {metrics: []string{"loss", "acc"}, filters: []string{`(\w+): ([\d.]+)`}, line: "loss: 8.7e-04 acc: 0.5", want: []got{{"acc", 0.5, "", 14}}, wantErr: "e-04"},
		"a filter captures a point at the end":         {filters: []string{`(\w+)=\[?([-+.\deE]+)`}, line: "loss=[21.]", want: loss(21, "21.")},
		"a filter captures the end of a sentence":      {filters: []string{`(\w+): (\S+)`}, line: "loss: -0.25.", want: loss(-0.25, "-0.25.")},
		"a filter captures a point alone":              {filters: []string{`(\w+): (\S+)`}, line: "loss: .", want: loss(math.NaN(), ".")},
		"a filter captures a version":                  {filters: []string{`(\w+): (\S+)`}, line: "loss: 1.2.3.", want: loss(math.NaN(), "1.2.3.")},
		"an exponent without digits is none":           {filters: []string{`(\w+): ([\d.]+)`}, line: "loss: 8.5 eV", want: loss(8.5, "")},
	}
	checkLines(t, func(t testing.TB, tc lineCase) Line { return newText(t, tc.metrics, tc.filters) }, tests)
}

func TestNamesAreExact(t *testing.T) {
	at := func(offset int) []got { return []got{{"loss", 0.5, "", offset}} }
	tests := map[string]lineCase{
		"a point":                   {line: "val.loss=0.5"},
		"a colon":                   {line: "val:loss=0.5"},
		"an at sign":                {line: "val@loss=0.5"},
		"a number sign":             {line: "val#loss=0.5"},
		"a letter of two bytes":     {line: "üloss=0.5"},
		"a letter of three bytes":   {line: "验证loss=0.5"},
		"a word of such letters":    {line: "é.loss=0.5"},
		"a name that has a point":   {metrics: []string{"val.loss"}, line: "val.loss=0.5", want: []got{{"val.loss", 0.5, "", 0}}},
		"dots after a sentence":     {line: "Training...loss=0.5", want: at(11)},
		"a number and a colon":      {line: "epoch 3:loss=0.5", want: at(8)},
		"Python's logging":          {line: "INFO:root:loss=0.5", want: at(10)},
		"Python's logging, no name": {line: "INFO:loss=0.5", want: at(5)},
		"a frame of a table":        {line: "│loss=0.5", want: at(3)},
		"bytes that are no text":    {line: "\xffloss=0.5", want: at(1)},
		"a bracket":                 {line: "[val]:loss=0.5", want: at(6)},
	}
	checkLines(t, func(t testing.TB, tc lineCase) Line { return newText(t, tc.metrics, tc.filters) }, tests)
}

func TestDurationsAndRatesAreNoSteps(t *testing.T) {
	tests := map[string]stepCase{
		"a rate with a unit":           {"epoch=3 loss=0.5 time/step: 12 ms", 3, time.Time{}},
		"a rate without a unit":        {"epoch=3 loss=0.5 time/step=12", 3, time.Time{}},
		"milliseconds for each step":   {"epoch=3 loss=0.5 ms/step: 12", 3, time.Time{}},
		"a duration after a space":     {"epoch=3 loss=0.5 step: 12 ms", 3, time.Time{}},
		"seconds in words":             {"step 12.5 seconds loss=0.5", collector.NoStep, time.Time{}},
		"a name that is like a unit":   {"step 12 s=3 loss=0.5", 12, time.Time{}},
		"a path":                       {"train/step=12 loss=0.5", 12, time.Time{}},
		"LightGBM's and XGBoost's":     {"[10]\tloss=0.5", 10, time.Time{}},
		"CatBoost's":                   {"10:\tloss=0.5", 10, time.Time{}},
		"a word is better":             {"[10]\tstep=7 loss=0.5", 7, time.Time{}},
		"a time in brackets is none":   {"[1772600767]\tloss=0.5", collector.NoStep, time.Unix(1772600767, 0)},
		"brackets before a space":      {"[10] loss=0.5", collector.NoStep, time.Time{}},
		"a count that is no iteration": {"[10:\tloss=0.5", collector.NoStep, time.Time{}},
	}
	checkStepsAndTimes(t, func(t testing.TB) Line { return newText(t, []string{"loss"}, nil) }, tests)
}
