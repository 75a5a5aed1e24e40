package main

import (
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// constrain tells the conditions on parameters from the bounds on metrics, by the names in
// them.
func (o *scriptOptions) constrain() error {
	for _, text := range o.constraints {
		names, err := suggest.ConstraintNames(text)
		if err != nil {
			return usageErrorf("--constraint: %w", err)
		}
		isParameter := func(name string) bool {
			return slices.ContainsFunc(o.spec.Parameters, func(p v1beta1.ParameterSpec) bool { return p.Name == name })
		}
		at := slices.IndexFunc(names, func(name string) bool { return !isParameter(name) })
		if at < 0 && len(names) > 0 {
			o.spec.Conditions = append(o.spec.Conditions, text)
			continue
		}
		if slices.ContainsFunc(names, isParameter) {
			return usageErrorf("--constraint %q: %s is none of the parameters that -p names, and a metric is compared with numbers alone, as in 'latency <= 10'", text, names[at])
		}
		bound, err := suggest.ParseConstraint(text)
		if err != nil {
			return usageErrorf("--constraint: %w", err)
		}
		o.spec.Bounds = append(o.spec.Bounds, v1beta1.MetricConstraint{MetricName: bound.Name, Min: bound.Min, Max: bound.Max})
	}
	return nil
}
