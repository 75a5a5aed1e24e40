package main

import (
	"context"
	"fmt"
)

// checkWarm looks for the experiments to begin with. A name that is mistyped would hold up
// the first trial.
func (o *scriptOptions) checkWarm(ctx context.Context, s *session) error {
	for _, name := range o.spec.WarmStart {
		if _, err := loadExperiment(ctx, s.client, s.key(name)); err != nil {
			return fmt.Errorf("--warm-start: %w", err)
		}
	}
	return nil
}
