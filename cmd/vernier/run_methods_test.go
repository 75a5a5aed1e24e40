package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTheStoppingRuleHasSettings(t *testing.T) {
	inDirectory(t, map[string]os.FileMode{"train": 0o700})
	for name, c := range map[string]struct {
		rule     string
		settings []string
		want     []v1beta1.EarlyStoppingSetting
		code     int
	}{
		"given":         {"asha", []string{"r_max=27", "eta=3"}, []v1beta1.EarlyStoppingSetting{{Name: "r_max", Value: "27"}, {Name: "eta", Value: "3"}}, 0},
		"none":          {"medianstop", nil, nil, 0},
		"without rule":  {"", []string{"r_max=27"}, nil, exitUsage},
		"without value": {"asha", []string{"r_max"}, nil, exitUsage},
		"no such rule":  {"asah", nil, nil, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			o := scriptOptions{ofStopping: c.settings}
			o.spec.Algorithm, o.spec.Stopping.AlgorithmName = "auto", c.rule
			err := o.methods()
			if exitCode(err) != c.code {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, c.code)
			}
			if diff := cmp.Diff(c.want, o.spec.Stopping.AlgorithmSettings); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
