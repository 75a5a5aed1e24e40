package study

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
)

// CheckLimits says what is wrong with the early stopping rule of spec for callers that
// judge trials themselves, by Limits.
func CheckLimits(spec *v1beta1.ExperimentSpec) error {
	stopper, err := stopperOf(spec)
	if err != nil {
		return err
	}
	if _, ok := stopper.(suggest.Limiter); stopper != nil && !ok {
		return fmt.Errorf("the rule %q looks at trials while they run, which this protocol cannot say: use medianstop or percentile", spec.EarlyStopping.AlgorithmName)
	}
	return nil
}

// Limits are the rules by which trials that start now may be stopped; none while too
// little is known.
func (s *Study) Limits(ctx context.Context, scan Scan) ([]v1beta1.EarlyStoppingRule, error) {
	limiter, ok := s.stopper.(suggest.Limiter)
	if !ok || len(s.base.Objectives) == 0 {
		return nil, nil
	}
	_, from, _ := limiter.Limit(s.question())
	if err := s.ReadCurves(ctx, firstPoints(scan, from)); err != nil {
		return nil, err
	}
	value, from, ok := limiter.Limit(s.question())
	if !ok {
		return nil, nil
	}
	worse := v1beta1.ComparisonTypeGreater
	if s.base.Objectives[0].Direction == suggest.Maximize {
		worse = v1beta1.ComparisonTypeLess
	}
	return []v1beta1.EarlyStoppingRule{{
		Name: s.base.Objectives[0].Name, Value: strconv.FormatFloat(value, 'g', -1, 64), Comparison: worse, StartStep: from,
	}}, nil
}

// firstPoints reads the first n points only: those that come later have no part in a
// limit, and would thin out a long curve.
func firstPoints(scan Scan, n int) Scan {
	enough := errors.New("enough")
	return func(ctx context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
		read := 0
		err := scan(ctx, uid, metrics, func(a collector.Attempt, p collector.Point) error {
			if read++; read > n {
				return enough
			}
			return yield(a, p)
		})
		if errors.Is(err, enough) {
			return nil
		}
		return err
	}
}
