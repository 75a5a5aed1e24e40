package collector_test

import (
	"fmt"
	"testing"

	"github.com/vernier-ml/vernier/collector"
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
		v, text := collector.ParseValue(written, 7)
		if got := fmt.Sprint(v, " ", text); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}
