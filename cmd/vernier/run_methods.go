package main

import (
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// methods are the algorithm and the stopping rule, with their settings.
func (o *scriptOptions) methods() error {
	s, rule := &o.spec, o.spec.Stopping.AlgorithmName
	if _, known := algorithm.Get(s.Algorithm); !known {
		return unknownMethod("algorithm", s.Algorithm, algorithm.Names())
	}
	settings, err := readSettings("--setting", o.settings)
	if err != nil {
		return err
	}
	for _, setting := range settings {
		s.Settings = append(s.Settings, v1beta1.AlgorithmSetting(setting))
	}
	of, known := stop.Get(rule)
	if !known && rule != "" {
		return unknownMethod("stopping rule", rule, stop.Names())
	}
	if len(o.ofStopping) > 0 && rule == "" {
		return usageErrorf("--stopping-setting is given without --stopping: name the rule")
	}
	if settings, err = readSettings("--stopping-setting", o.ofStopping); err != nil {
		return err
	}
	for _, setting := range settings {
		s.Stopping.AlgorithmSettings = append(s.Stopping.AlgorithmSettings, v1beta1.EarlyStoppingSetting(setting))
	}
	for _, setting := range s.Settings {
		named := func(h suggest.SettingHelp) bool { return h.Name == setting.Name }
		given := func(g v1beta1.EarlyStoppingSetting) bool { return g.Name == setting.Name }
		if slices.ContainsFunc(of.Settings, named) && !slices.ContainsFunc(s.Stopping.AlgorithmSettings, given) {
			return usageErrorf("--setting %[1]s=%[2]s is of the algorithm %[3]s, and the rule %[4]s has a setting %[1]s too: write --stopping-setting %[1]s=%[2]s in its place, or both", setting.Name, setting.Value, s.Algorithm, rule)
		}
	}
	return nil
}
