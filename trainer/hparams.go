package trainer

const (
	flagTrial     = "trial"
	flagParameter = "parameter"
)

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
	args := []string{flag(flagTrial, p.c.Trial)}
	for _, a := range p.c.Parameters {
		args = append(args, flag(flagParameter, a.Name+"="+a.Value))
	}
	return args
}
