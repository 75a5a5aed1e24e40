package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/analysis"
)

const (
	usualGrid, mostGrid = 40, 100
	// analysisTime bounds an analysis; a forest is then less exact.
	analysisTime = 10 * time.Second
	// mostAnalyzed and analyzedFor say how many studies are kept for the next question,
	// and for how long.
	mostAnalyzed, analyzedFor = 16, 10 * time.Minute
)

// analyzed is a study that is kept between questions, so that a trial is translated
// once. Losing it costs time only.
type analyzed struct {
	mu sync.Mutex
	*study.Study
}

// analyzedKey names a study: another generation may have another search space.
type analyzedKey struct {
	uid        types.UID
	generation int64
}

// Analyze implements vernierv1.DashboardServiceHandler.
func (s *service) Analyze(ctx context.Context, r *vernierv1.AnalyzeRequest) (*vernierv1.AnalyzeResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	exp, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	known, err := s.analyzed(exp, trials)
	if err != nil {
		return nil, explain(ctx, err)
	}
	select { // a few at a time, so that the manager's work goes on beside them
	case s.analyzing <- struct{}{}:
		defer func() { <-s.analyzing }()
	case <-ctx.Done():
		return nil, explain(ctx, ctx.Err())
	}
	bounded, cancel := context.WithTimeout(ctx, analysisTime)
	defer cancel()
	out := &vernierv1.AnalyzeResponse{}
	count(known, r, out)
	err = answer(bounded, known, exp.Spec.Algorithm.ResourceParameter(), r, out)
	switch {
	case errors.Is(err, analysis.ErrTooFew):
		return nil, tooFew(err)
	case err != nil:
		return nil, invalid("correct what is named", "%w", err)
	}
	return out, nil
}

// analyzed is the study of an experiment with these trials.
func (s *service) analyzed(exp *v1beta1.Experiment, trials []*v1beta1.Trial) (suggest.Study, error) {
	key := analyzedKey{exp.UID, exp.Generation}
	s.mu.Lock()
	kept, found := s.studies.Get(key)
	if !found {
		kept = &analyzed{}
		s.studies.Add(key, kept, analyzedFor)
	}
	s.mu.Unlock()
	a := kept.(*analyzed)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Study == nil {
		built, err := study.New(exp)
		if err != nil {
			return suggest.Study{}, fmt.Errorf("read experiment %s/%s: %w", exp.Namespace, exp.Name, err)
		}
		a.Study = built
	}
	a.Update(trials)
	return a.Analyzed(), nil
}

// count says how many results an answer is made of.
func count(known suggest.Study, r *vernierv1.AnalyzeRequest, out *vernierv1.AnalyzeResponse) {
	var by analysis.Rule = analysis.Level
	if _, ok := r.GetQuestion().(*vernierv1.AnalyzeRequest_Importance_); ok {
		by = analysis.Broadest
	}
	level, kept, left := analysis.Count(known, by)
	switch r.GetQuestion().(type) {
	case *vernierv1.AnalyzeRequest_History_, *vernierv1.AnalyzeRequest_Pareto_:
		out.Results = int32(kept + left)
	default:
		out.Resource, out.Results, out.LeftOut = level, int32(kept), int32(left)
	}
}

// answer's fixed is the parameter for the resource, which is the same in all compared results.
func answer(ctx context.Context, known suggest.Study, fixed string, r *vernierv1.AnalyzeRequest, out *vernierv1.AnalyzeResponse) error {
	objective := int(r.GetObjective())
	switch q := r.GetQuestion().(type) {
	case *vernierv1.AnalyzeRequest_Importance_:
		found, err := importance(ctx, known, objective, fixed, q.Importance.GetMethod())
		out.Answer = &vernierv1.AnalyzeResponse_Importance_{Importance: found}
		return err
	case *vernierv1.AnalyzeRequest_Distribution_:
		steps, err := analysis.Distribution(known, objective)
		all := &vernierv1.AnalyzeResponse_Steps{}
		for _, x := range steps {
			all.Value, all.At = append(all.Value, x.Value), append(all.At, x.Fraction)
		}
		out.Answer = &vernierv1.AnalyzeResponse_Distribution{Distribution: all}
		return err
	case *vernierv1.AnalyzeRequest_History_:
		steps, err := analysis.BestSoFar(known, objective, nil)
		all := &vernierv1.AnalyzeResponse_Steps{}
		for _, x := range steps {
			all.Value, all.At = append(all.Value, x.Value), append(all.At, float64(x.Trial))
		}
		out.Answer = &vernierv1.AnalyzeResponse_History{History: all}
		return err
	case *vernierv1.AnalyzeRequest_Contour_:
		found, err := contour(known, objective, q.Contour)
		out.Answer = &vernierv1.AnalyzeResponse_Contour_{Contour: found}
		return err
	case *vernierv1.AnalyzeRequest_Pareto_:
		found, err := front(ctx, known, q.Pareto.GetReference())
		out.Answer = &vernierv1.AnalyzeResponse_Pareto_{Pareto: found}
		return err
	}
	return errors.New("the question is missing; name importance, distribution, history, contour or pareto")
}

func importance(ctx context.Context, known suggest.Study, objective int, fixed string, method vernierv1.AnalyzeRequest_Importance_Method) (*vernierv1.AnalyzeResponse_Importance, error) {
	var found analysis.Importance
	var err error
	switch method {
	case vernierv1.AnalyzeRequest_Importance_METHOD_UNSPECIFIED, vernierv1.AnalyzeRequest_Importance_F_ANOVA:
		found, err = analysis.FunctionalANOVA(ctx, known, objective)
	case vernierv1.AnalyzeRequest_Importance_PED_ANOVA:
		found, err = analysis.PEDANOVA(known, objective)
	default:
		return nil, fmt.Errorf("the method %d is unknown; give F_ANOVA or PED_ANOVA", method)
	}
	out := &vernierv1.AnalyzeResponse_Importance{Interactions: found.Interactions}
	for _, p := range found.Parameters {
		if p.Parameter != fixed {
			out.Parameters, out.Shares = append(out.Parameters, p.Parameter), append(out.Shares, p.Share)
		}
	}
	return out, err
}

func contour(known suggest.Study, objective int, q *vernierv1.AnalyzeRequest_Contour) (*vernierv1.AnalyzeResponse_Contour, error) {
	points := int(q.GetPoints())
	if points == 0 {
		points = usualGrid
	}
	if points < 2 || points > mostGrid {
		return nil, fmt.Errorf("points is %d; give 2 to %d", points, mostGrid)
	}
	found, err := analysis.Contour(known, objective, q.GetX(), q.GetY(), points)
	return &vernierv1.AnalyzeResponse_Contour{X: axisOut(found.X), Y: axisOut(found.Y), Z: found.Z}, err
}

func axisOut(a analysis.Axis) *vernierv1.Column {
	out := &vernierv1.Column{Name: a.Name, Number: a.Values}
	if a.Words != nil {
		out.Text = &vernierv1.TextColumn{Texts: a.Words}
		for i := range a.Words {
			out.Text.Index = append(out.Text.Index, int32(i))
		}
	}
	return out
}

func front(ctx context.Context, known suggest.Study, reference []float64) (*vernierv1.AnalyzeResponse_Pareto, error) {
	growth, used, err := analysis.Hypervolume(ctx, known, reference)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // of many objectives there is the front alone
	}
	out := &vernierv1.AnalyzeResponse_Pareto{Reference: used}
	for _, v := range growth {
		out.Trials, out.Volume = append(out.Trials, int32(v.Trial)), append(out.Volume, v.Volume)
	}
	for _, n := range analysis.Front(known) {
		out.Front = append(out.Front, int32(n))
	}
	return out, err
}
