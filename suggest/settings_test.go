package suggest_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// read asks for one setting of each type.
func read(settings suggest.Settings) (values []any, err error) {
	r := settings.Read()
	values = []any{
		r.Int("count", 24, suggest.AtLeast(1)),
		r.Float("gamma", 0.25, suggest.Between(0, 1)),
		r.Float("weight", 1, suggest.Range{OpenMin: true, Max: math.Inf(1)}),
		r.Choice("restart", "none", "none", "ipop"),
		r.Bool("lazy", true),
		r.Text("resource", ""),
		r.Has("seed"),
	}
	return values, r.Err()
}

func TestSettingsAreReadByType(t *testing.T) {
	cases := map[string]struct {
		settings suggest.Settings
		want     []any
	}{
		"none": {nil, []any{int64(24), 0.25, 1.0, "none", true, "", false}},
		"all": {
			suggest.Settings{
				{"count", "7"}, {"gamma", "1e-1"}, {"weight", "2"}, {"restart", "ipop"},
				{"lazy", "False"}, {"resource", "epochs"}, {"seed", ""},
			},
			[]any{int64(7), 0.1, 2.0, "ipop", false, "epochs", true},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := read(c.settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSettingsErrorsNameTheSetting(t *testing.T) {
	cases := map[string]struct {
		setting suggest.Setting
		want    string
	}{
		"a word for an int":             {suggest.Setting{Name: "count", Value: "many"}, "whole number, at least 1"},
		"a fraction for an int":         {suggest.Setting{Name: "count", Value: "1.5"}, "whole number"},
		"an int below its range":        {suggest.Setting{Name: "count", Value: "0"}, "at least 1"},
		"a word for a number":           {suggest.Setting{Name: "gamma", Value: "x"}, "above 0 and below 1"},
		"a number at its open low end":  {suggest.Setting{Name: "gamma", Value: "0"}, "above 0 and below 1"},
		"a number at its open high end": {suggest.Setting{Name: "gamma", Value: "1.0"}, "above 0 and below 1"},
		"NaN":                           {suggest.Setting{Name: "weight", Value: "NaN"}, "above 0"},
		"infinity":                      {suggest.Setting{Name: "weight", Value: "inf"}, "above 0"},
		"an unknown word":               {suggest.Setting{Name: "restart", Value: "bipop"}, "none, ipop"},
		"a word for a truth":            {suggest.Setting{Name: "lazy", Value: "perhaps"}, "true or false"},
		"an unknown setting":            {suggest.Setting{Name: "gama", Value: "1"}, "use one of count, gamma"},
		"an empty name":                 {suggest.Setting{Value: "1"}, "is unknown"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			values, err := read(suggest.Settings{c.setting})
			var problem *suggest.SettingError
			if !errors.As(err, &problem) || problem.Name != c.setting.Name {
				t.Fatalf("got %v, want an error about %q", err, c.setting.Name)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q alone", err, c.want)
			}
			defaults, _ := read(nil)
			if diff := cmp.Diff(defaults, values); diff != "" {
				t.Error("values other than the defaults:", diff)
			}
		})
	}
}

func TestSettingsErrorsComeAllAtOnce(t *testing.T) {
	_, err := read(suggest.Settings{{"count", "x"}, {"other", "1"}, {"lazy", "true"}, {"lazy", "false"}})
	want := []string{
		`setting "lazy" is given twice; remove one`,
		`setting "count" is "x"; it must be a whole number, at least 1`,
		`setting "other" is unknown; remove it or use one of count, gamma, lazy, resource, restart, seed, weight`,
	}
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestObjective(t *testing.T) {
	goal := 0.9
	up := suggest.Objective{Direction: suggest.Maximize, Goal: &goal}
	down := suggest.Objective{Goal: &goal}
	cases := map[string]struct {
		objective suggest.Objective
		value     float64
		wantLoss  float64
		reached   bool
	}{
		"above a maximum":          {up, 0.95, -0.95, true},
		"at a maximum":             {up, 0.9, -0.9, true},
		"below a maximum":          {up, 0.85, -0.85, false},
		"above a minimum":          {down, 0.95, 0.95, false},
		"below a minimum":          {down, 0.85, 0.85, true},
		"infinity reaches nothing": {up, math.Inf(1), math.Inf(-1), false},
		"NaN reaches nothing":      {down, math.NaN(), math.NaN(), false},
		"no goal":                  {suggest.Objective{}, 0, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			loss := c.objective.Loss(c.value)
			if loss != c.wantLoss && !(math.IsNaN(loss) && math.IsNaN(c.wantLoss)) {
				t.Errorf("loss %v, want %v", loss, c.wantLoss)
			}
			if got := c.objective.Reached(c.value); got != c.reached {
				t.Errorf("reached %v, want %v", got, c.reached)
			}
		})
	}
}
