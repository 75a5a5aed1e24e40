package collector

import (
	"fmt"
	"math"
	"testing"
)

func TestParseValue(t *testing.T) {
	for written, want := range map[string]string{
		"0.5":       "0.5 ",
		"0.50":      "0.5 0.50",
		"\t1e-05\n": "1e-05 ",
		"1E-05":     "1e-05 1E-05",
		"nan":       "NaN ",
		"-inf":      "-Inf ",
		"Infinity":  "+Inf ",
		"1e999":     "+Inf 1e999",
		"tensor(1)": "NaN tensor(",
		"":          "NaN ",
		"\xff":      "NaN ?",
	} {
		v, text := ParseValue(written, 7)
		if got := fmt.Sprint(v, " ", text); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}
func TestWritten(t *testing.T) {
	tests := map[string]struct {
		point Point
		want  string
	}{
		"the shortest form":      {Point{Value: 0.5}, "0.5"},
		"as it was written":      {Point{Value: 0.5, Text: "0.50"}, "0.50"},
		"a percentage":           {Point{Value: 97.5, Text: "97.5%"}, "97.5"},
		"groups of thousands":    {Point{Value: 1234.5, Text: "1,234.5"}, "1234.5"},
		"a text":                 {Point{Value: math.NaN(), Text: "bad"}, "bad"},
		"NaN":                    {Point{Value: math.NaN()}, "NaN"},
		"NaN as it was written":  {Point{Value: math.NaN(), Text: "nan"}, "nan"},
		"too large for a number": {Point{Value: math.Inf(1), Text: "1e999"}, "1e999"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.point.Written(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := measure(tc.point); got.Text != tc.want {
				t.Errorf("an observation says %q, want %q", got.Text, tc.want)
			}
		})
	}
}
