package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestConstraintsAreOnParametersOrMetrics(t *testing.T) {
	type bound = v1beta1.MetricConstraint
	number := func(v float64) *float64 { return &v }
	for texts, want := range map[string]struct {
		conditions []string
		bounds     []bound
		code       int
	}{
		"latency <= 10":                           {bounds: []bound{{MetricName: "latency", Max: number(10)}}},
		"0.5 <= recall <= 1":                      {bounds: []bound{{MetricName: "recall", Min: number(0.5), Max: number(1)}}},
		"layers * batch <= 512":                   {conditions: []string{"layers * batch <= 512"}},
		"recall <= 1; recall >= 0.5; recall <= 2": {bounds: []bound{{MetricName: "recall", Min: number(0.5), Max: number(1)}}},
		"recall <= 1; recall >= 2":                {code: exitUsage},
		"layers * latency <= 10":                  {code: exitUsage},
		"latency = 10":                            {code: exitUsage},
		"latency":                                 {code: exitUsage},
		"1 < 2":                                   {code: exitUsage},
	} {
		t.Run(texts, func(t *testing.T) {
			o := scriptOptions{constraints: strings.Split(texts, "; ")}
			o.spec.Parameters = []v1beta1.ParameterSpec{{Name: "layers"}, {Name: "batch"}}
			err := o.constrain()
			if exitCode(err) != want.code {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, want.code)
			}
			if diff := cmp.Diff(want.conditions, o.spec.Conditions); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want.bounds, o.spec.Bounds); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
