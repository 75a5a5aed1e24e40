package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

const usualSamples, mostSamples = 5, 20

// PreviewExperiment implements vernierv1.DashboardServiceHandler.
func (s *service) PreviewExperiment(ctx context.Context, r *vernierv1.PreviewExperimentRequest) (*vernierv1.PreviewExperimentResponse, error) {
	create := &vernierv1.CreateExperimentRequest{Experiment: r.GetExperiment(), Yaml: r.GetYaml(), Parent: r.GetParent()}
	p, err := target(create)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "create", "experiments", place{namespace: p.namespace}); err != nil {
		return nil, err
	}
	samples := int(r.GetSamples())
	if samples == 0 {
		samples = usualSamples
	}
	if samples < 0 || samples > mostSamples {
		return nil, invalid(fmt.Sprintf("give 1 to %d", mostSamples), "samples is %d", samples)
	}
	exp, _, err := wanted(create)
	if err != nil {
		var unread *connect.Error
		if errors.As(err, &unread) {
			return &vernierv1.PreviewExperimentResponse{Problems: []*vernierv1.PreviewExperimentResponse_Problem{{Message: unread.Message()}}}, nil
		}
		return nil, err
	}
	v1beta1.SetDefaults(exp)
	out, err := s.tried(ctx, exp)
	if err != nil {
		return nil, explain(ctx, err)
	}
	if err := shown(exp, out); err != nil {
		return nil, explain(ctx, err)
	}
	s.propose(ctx, exp, samples, out)
	return out, nil
}

// tried says what the API server finds when exp would be created.
func (s *service) tried(ctx context.Context, exp *v1beta1.Experiment) (*vernierv1.PreviewExperimentResponse, error) {
	out := &vernierv1.PreviewExperimentResponse{}
	writer, err := s.as(ctx)
	if err == nil {
		err = writer.Create(ctx, exp.DeepCopy(), client.DryRunAll)
	}
	switch {
	case err == nil:
		out.Warnings, _ = s.Experiments.Rules.Validate(exp, nil)
	case apierrors.IsAlreadyExists(err):
		out.Problems = append(out.Problems, &vernierv1.PreviewExperimentResponse_Problem{Field: "metadata.name", Message: "There is an experiment of this name: use another one."})
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err): // no such namespace; a demo
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Details != nil {
			for _, c := range status.Status().Details.Causes {
				out.Problems = append(out.Problems, &vernierv1.PreviewExperimentResponse_Problem{Field: c.Field, Message: c.Message})
			}
		}
		if len(out.Problems) == 0 {
			out.Problems = append(out.Problems, &vernierv1.PreviewExperimentResponse_Problem{Message: err.Error()})
		}
	default:
		return nil, fmt.Errorf("check experiment %s/%s: %w", exp.Namespace, exp.Name, err)
	}
	return out, nil
}

// shown adds the experiment with its defaults.
func shown(exp *v1beta1.Experiment, out *vernierv1.PreviewExperimentResponse) error {
	var err error
	if out.Experiment, err = experimentOut(exp); err != nil {
		return err
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "Experiment",
		"metadata": map[string]any{"namespace": exp.Namespace, "name": exp.Name}, "spec": exp.Spec,
	})
	out.Yaml = string(text)
	if d := exp.Spec.MaxTrialDuration; d != nil {
		out.MaxTrialDuration = durationpb.New(d.Duration)
	}
	return err
}

// propose adds the size of the search space and points in it. What cannot be built
// has neither: the problems say why.
func (s *service) propose(ctx context.Context, exp *v1beta1.Experiment, n int, out *vernierv1.PreviewExperimentResponse) {
	known, err := study.New(exp)
	if err != nil {
		return
	}
	if size, finite := known.Size(); finite {
		out.Size = float64(size)
	}
	proposals, err := known.Preview(ctx, n)
	if err != nil {
		out.Warnings = append(out.Warnings, fmt.Sprintf("The algorithm proposes nothing yet: %v", err))
	}
	for _, p := range proposals {
		t := &v1beta1.Trial{Spec: v1beta1.TrialSpec{ParameterAssignments: p.Assignments}}
		out.Samples = append(out.Samples, &structpb.Struct{Fields: parametersOut(exp, t)})
	}
}
