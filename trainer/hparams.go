package trainer

import (
	"maps"
	"slices"

	"github.com/vernier-ml/vernier/collector/contract"
)

// showsParameters reports whether the collector writes the trial's parameters beside
// its event files.
func (p pod) showsParameters() bool {
	return p.c.Kind == TensorFlowEvent && len(p.c.Parameters) > 0
}

// parameters are the collector's arguments for that.
func (p pod) parameters() []string {
	if !p.showsParameters() {
		return nil
	}
	args := []string{flag(contract.FlagTrial, p.c.Trial)}
	for _, name := range slices.Sorted(maps.Keys(p.c.Parameters)) {
		args = append(args, flag(contract.FlagParameter, name+"="+p.c.Parameters[name]))
	}
	return args
}
