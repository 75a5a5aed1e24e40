package study

import (
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/architecture"
)

// codec writes points as the assignments of trials, and reads them.
type codec interface {
	Assignments(p suggest.Point) []suggest.Assignment
	Parse(assignments []suggest.Assignment) (p suggest.Point, ok bool)
}

var _ codec = suggest.Space{}

// spaceOf is the search space of an experiment.
func spaceOf(spec *v1beta1.ExperimentSpec) (suggest.Space, codec, error) {
	if spec.NasConfig != nil && len(spec.Parameters) == 0 {
		return architectures(spec)
	}
	space, err := suggest.NewSpace(parametersOf(spec.Parameters))
	if err != nil {
		return space, nil, err
	}
	space, err = space.WithConstraints(spec.ParameterConstraints)
	return space, space, err
}

// architectures is the search space of Katib's nasConfig: for DARTS the one point
// that its trial searches from, else chains of layers.
func architectures(spec *v1beta1.ExperimentSpec) (suggest.Space, codec, error) {
	graph := spec.NasConfig.GraphConfig
	config := architecture.Config{
		Layers: int(ptr.Deref(graph.NumLayers, 0)), InputSizes: ints(graph.InputSizes), OutputSizes: ints(graph.OutputSizes),
	}
	for _, o := range spec.NasConfig.Operations {
		config.Operations = append(config.Operations, architecture.Operation{Type: o.OperationType, Parameters: parametersOf(o.Parameters)})
	}
	if spec.Algorithm != nil && spec.Algorithm.AlgorithmName == "darts" {
		search, err := architecture.NewDARTS(config, settingsOf(spec.Algorithm.AlgorithmSettings))
		if err != nil {
			return suggest.Space{}, nil, err
		}
		return search.Space(), search.Space(), nil
	}
	chains, err := architecture.NewENAS(config)
	if err != nil {
		return suggest.Space{}, nil, err
	}
	return chains.Space(), chains, nil
}

func ints(sizes []int32) []int {
	out := make([]int, len(sizes))
	for i, n := range sizes {
		out[i] = int(n)
	}
	return out
}

func parametersOf(specs []v1beta1.ParameterSpec) []suggest.ParameterSpec {
	params := make([]suggest.ParameterSpec, len(specs))
	for i, p := range specs {
		params[i] = suggest.ParameterSpec{
			Name: p.Name, Kind: suggest.Kind(p.ParameterType),
			Min: p.FeasibleSpace.Min, Max: p.FeasibleSpace.Max, Step: p.FeasibleSpace.Step,
			List: p.FeasibleSpace.List, Distribution: suggest.Distribution(p.FeasibleSpace.Distribution),
		}
		if p.FeasibleSpace.Prior != nil {
			params[i].Prior = (*suggest.Prior)(p.FeasibleSpace.Prior)
		}
		if p.When != nil {
			params[i].When = (*suggest.When)(p.When)
		}
	}
	return params
}

// pointOf is the point that assignments stand for; ok is false when it is not in
// the space.
func pointOf(codec codec, assignments []v1beta1.ParameterAssignment) (p suggest.Point, ok bool) {
	assigned := make([]suggest.Assignment, len(assignments))
	for i, a := range assignments {
		assigned[i] = suggest.Assignment(a)
	}
	return codec.Parse(assigned)
}
