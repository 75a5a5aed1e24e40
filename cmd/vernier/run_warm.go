package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// checkWarm looks for the experiments that a new one of a name is to begin with. A name
// that is mistyped would hold up the first trial. One that is there goes on without those
// that were deleted since.
func (o *scriptOptions) checkWarm(ctx context.Context, s *session, key types.NamespacedName, replace bool) error {
	if len(o.spec.WarmStart) == 0 {
		return nil
	}
	if there, err := existing(ctx, s.client, key); err != nil || there != nil && !replace {
		return err
	}
	for _, name := range o.spec.WarmStart {
		if _, err := readExperiment(ctx, s.client, s.key(name)); err != nil {
			return fmt.Errorf("--warm-start: %w", err)
		}
	}
	return nil
}
