package trainer

import "github.com/vernier-ml/vernier/collector/contract"

// showsParameters reports whether the collector writes the parameters of the
// trial beside its event files.
func (p pod) showsParameters() bool {
	return p.c.Kind == TensorFlowEvent && len(p.c.Parameters) > 0
}

// parameters are the collector's arguments for it.
func (p pod) parameters() []string {
	if !p.showsParameters() {
		return nil
	}
	args := []string{flag(contract.FlagTrial, p.c.Trial)}
	for _, a := range p.c.Parameters {
		args = append(args, flag(contract.FlagParameter, a.Name+"="+a.Value))
	}
	return args
}
