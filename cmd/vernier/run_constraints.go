package main

import (
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// constrain sorts the constraints into conditions on parameters and bounds on metrics, by
// the names they contain.
func (o *scriptOptions) constrain() error {
	for _, text := range o.constraints {
		names, err := suggest.ConstraintNames(text)
		if err != nil {
			return usageErrorf("--constraint: %w", err)
		}
		isParameter := func(name string) bool {
			_, flag := o.spec.Flags.Flag(name)
			return flag && o.probe && len(o.parameters) == 0 || // it may propose them all
				slices.ContainsFunc(o.spec.Parameters, func(p v1beta1.ParameterSpec) bool { return p.Name == name })
		}
		at := slices.IndexFunc(names, func(name string) bool { return !isParameter(name) })
		if at < 0 && len(names) > 0 {
			o.spec.Conditions = append(o.spec.Conditions, text)
			continue
		}
		if slices.ContainsFunc(names, isParameter) {
			return usageErrorf("--constraint %q mixes parameters with %s, which is not one of them: a bound on a metric compares it with numbers only, as in 'latency <= 10'", text, names[at])
		}
		bound, err := suggest.ParseConstraint(text)
		if err != nil {
			return usageErrorf("--constraint: %w", err)
		}
		if err := o.bind(bound); err != nil {
			return err
		}
	}
	return nil
}

// bind adds a bound to those of its metric.
func (o *scriptOptions) bind(b suggest.Constraint) error {
	i := slices.IndexFunc(o.spec.Bounds, func(c v1beta1.MetricConstraint) bool { return c.MetricName == b.Name })
	if i < 0 {
		o.spec.Bounds = append(o.spec.Bounds, v1beta1.MetricConstraint{MetricName: b.Name, Min: b.Min, Max: b.Max})
		return nil
	}
	c := &o.spec.Bounds[i]
	if b.Min != nil && (c.Min == nil || *b.Min > *c.Min) {
		c.Min = b.Min
	}
	if b.Max != nil && (c.Max == nil || *b.Max < *c.Max) {
		c.Max = b.Max
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		return usageErrorf("--constraint: no %s is both at least %g and at most %g", b.Name, *c.Min, *c.Max)
	}
	return nil
}
