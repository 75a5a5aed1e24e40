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
		settings []string // of the rule
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

// A setting that the algorithm and the rule both have is most often meant for the rule.
func TestASettingOfTheRuleIsNotGivenToTheAlgorithm(t *testing.T) {
	for name, c := range map[string]struct {
		settings, ofStopping []string
		code                 int
	}{
		"for the algorithm alone": {[]string{"r_max=27"}, nil, exitUsage},
		"for both":                {[]string{"r_max=27"}, []string{"r_max=27"}, 0},
		"for the rule":            {nil, []string{"r_max=27"}, 0},
		"which the rule has not":  {[]string{"resource_name=epochs"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := scriptOptions{settings: c.settings, ofStopping: c.ofStopping}
			o.spec.Algorithm, o.spec.Stopping.AlgorithmName = "auto", "asha"
			if err := o.methods(); exitCode(err) != c.code {
				t.Errorf("code %d (%v), want %d", exitCode(err), err, c.code)
			}
		})
	}
}
