package api

import (
	"context"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// ListAlgorithms implements vernierv1.DashboardServiceHandler.
func (s *service) ListAlgorithms(context.Context, *vernierv1.ListAlgorithmsRequest) (*vernierv1.ListAlgorithmsResponse, error) {
	algorithms, rules := study.Methods()
	return &vernierv1.ListAlgorithmsResponse{Algorithms: methodsOut(algorithms), StoppingRules: methodsOut(rules)}, nil
}

func methodsOut(methods []study.Method) (out []*vernierv1.Algorithm) {
	for _, m := range methods {
		a := &vernierv1.Algorithm{Name: m.Name, Title: m.Summary}
		for _, s := range m.Settings {
			a.Settings = append(a.Settings, &vernierv1.Algorithm_Setting{Name: s.Name, Title: s.Help, Default: s.Default})
		}
		out = append(out, a)
	}
	return out
}
