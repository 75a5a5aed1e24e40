package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/web"
)

const (
	// Of the trials that are asked for, and in all, a shared file has curves.
	mostShared, usualShared = 200, 100
	// Points of a curve in a shared file: of those that are asked for while they are
	// few, and of the others.
	fewShared, chosenPoints, sharedPoints = 20, 500, 120
	// sharedGrid is how many points a contour has along each axis, and sharedAxes of how
	// many parameters, the most important ones, there are contours.
	sharedGrid, sharedAxes = 32, 6
	// sharedPatience bounds the time for all analyses; those that come too late are left
	// out, which the page says.
	sharedPatience = 20 * time.Second
	maxView        = 4_000
	maxPage        = 32 << 20
)

// ShareExperiment implements vernierv1.DashboardServiceHandler.
func (s *service) ShareExperiment(ctx context.Context, r *vernierv1.ShareExperimentRequest) (*vernierv1.ShareExperimentResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	switch {
	case err != nil:
		return nil, err
	case len(r.GetTrials()) > mostShared:
		return nil, invalid(fmt.Sprintf("name at most %d", mostShared), "%d trials are asked for", len(r.GetTrials()))
	case len(r.GetView()) > maxView:
		return nil, invalid("share a page with a shorter filter", "view has %d bytes; at most %d are kept", len(r.GetView()), maxView)
	}
	if err := s.allow(ctx, "get", "experiments", p); err != nil {
		return nil, err
	}
	select { // a few at a time: each reads many curves and asks for many analyses
	case s.sharing <- struct{}{}:
		defer func() { <-s.sharing }()
	case <-ctx.Done():
		return nil, explain(ctx, ctx.Err())
	}
	snapshot, err := s.snapshot(ctx, p, r)
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return nil, explain(ctx, fmt.Errorf("encode experiment %s: %w", p.key(), err))
	}
	page, err := web.Shared(p.experiment+" · Vernier", data)
	if err != nil {
		return nil, explain(ctx, err)
	}
	if len(page) > maxPage {
		return nil, invalid("export the trials as CSV instead", "the file would have %d MB; at most %d are made", len(page)>>20, maxPage>>20)
	}
	return &vernierv1.ShareExperimentResponse{Page: page}, nil
}

// snapshot is all that a shared file holds.
func (s *service) snapshot(ctx context.Context, p place, r *vernierv1.ShareExperimentRequest) (*vernierv1.Snapshot, error) {
	out := &vernierv1.Snapshot{Time: timestamppb.New(s.Now()), Version: s.Version, View: r.GetView()}
	cached, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	exp := public(cached)
	if out.Experiment, err = experimentOut(exp); err != nil {
		return nil, explain(ctx, err)
	}
	if out.About, err = aboutExperiment(exp); err != nil {
		return nil, explain(ctx, err)
	}
	if out.Trials, err = s.columns(ctx, p, ""); err != nil {
		return nil, err
	}
	if out.Curves, err = s.sharedCurves(ctx, exp, trials, sharedTrials(out.Trials, exp, r.GetTrials()), r.GetTrials()); err != nil {
		return nil, err
	}
	out.Answers = s.sharedAnswers(ctx, exp, r.GetParent())
	return out, ctx.Err()
}

// public is an experiment without what may hold secrets: commands, variables and
// headers of the template and the collector, and annotations of other tools, some of which are
// copies of the whole object.
func public(e *v1beta1.Experiment) *v1beta1.Experiment {
	e = e.DeepCopy()
	e.Spec.TrialTemplate = nil
	if c := e.Spec.MetricsCollectorSpec; c != nil {
		if c.Collector != nil {
			c.Collector.CustomCollector = nil
		}
		if c.Source != nil {
			c.Source.HTTPGet = nil
		}
	}
	maps.DeleteFunc(e.Annotations, func(name, _ string) bool { return !strings.HasPrefix(name, "vernier.ml/") })
	return e
}

// sharedTrials are the numbers of trials whose curves are shared: the wanted ones, then
// the best by the first objective, then the newest.
func sharedTrials(t *vernierv1.TrialColumns, exp *v1beta1.Experiment, wanted []int32) []int32 {
	rows := make([]int, len(t.GetNumber()))
	for i := range rows {
		rows[i] = i
	}
	objectives := exp.Spec.AllObjectives()
	if len(objectives) > 0 && len(t.GetMetrics()) > 0 {
		value, sign := t.GetMetrics()[0].GetNumber(), 1.0
		if objectives[0].Type == v1beta1.ObjectiveTypeMaximize {
			sign = -1
		}
		slices.SortStableFunc(rows, func(a, b int) int {
			x, y := sign*value[a], sign*value[b]
			switch {
			case math.IsNaN(x) && math.IsNaN(y):
				return b - a
			case math.IsNaN(x): // what has no value comes last
				return 1
			case math.IsNaN(y):
				return -1
			}
			return cmp.Compare(x, y)
		})
	}
	numbers := slices.Clone(wanted)
	for _, i := range rows {
		if len(numbers) >= max(usualShared, len(wanted)) {
			break
		}
		if n := t.GetNumber()[i]; !slices.Contains(wanted, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// sharedCurves are the curves of trials along both axes. A few wanted ones have more
// points.
func (s *service) sharedCurves(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial, numbers, wanted []int32) (out []*vernierv1.Snapshot_Curves, err error) {
	metrics := metricNames(exp)
	metrics = metrics[:min(len(metrics), mostMetrics)]
	for _, axis := range []vernierv1.GetSeriesRequest_Axis{vernierv1.GetSeriesRequest_STEP, vernierv1.GetSeriesRequest_TIME} {
		c := &vernierv1.Snapshot_Curves{Axis: axis}
		groups := map[int32][]int32{sharedPoints: numbers}
		if n := len(wanted); n > 0 && n <= fewShared {
			groups = map[int32][]int32{chosenPoints: wanted, sharedPoints: numbers[n:]}
		}
		for _, points := range []int32{chosenPoints, sharedPoints} {
			ask, err := readSeries(&vernierv1.GetSeriesRequest{Metrics: metrics, MaxPoints: points, Axis: axis}, exp)
			if err != nil {
				return nil, err
			}
			got, err := s.series(ctx, ask, chosen(trials, groups[points]))
			if err != nil {
				return nil, err
			}
			c.LeftOut = append(c.LeftOut, got.GetLeftOut()...)
			for _, line := range got.GetSeries() {
				if points == sharedPoints {
					// Copied: curves that are kept are shared by all who ask.
					line = &vernierv1.Series{Trial: line.GetTrial(), Metric: line.GetMetric(), X: line.GetX(), Value: line.GetValue(), Points: line.GetPoints()}
				}
				c.Series = append(c.Series, line)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// sharedAnswers are the analyses that the dashboard shows, as far as there are results
// enough: of each objective, and contours of the most important parameters.
func (s *service) sharedAnswers(ctx context.Context, exp *v1beta1.Experiment, parent string) (out []*vernierv1.Snapshot_Answer) {
	ctx, cancel := context.WithTimeout(ctx, sharedPatience)
	defer cancel()
	ask := func(r *vernierv1.AnalyzeRequest) *vernierv1.AnalyzeResponse {
		r.Parent = parent
		answer, err := s.Analyze(ctx, r)
		if err != nil {
			return nil // the file says that it has none
		}
		out = append(out, &vernierv1.Snapshot_Answer{Request: r, Response: answer})
		return answer
	}
	for objective := range min(len(exp.Spec.AllObjectives()), 3) {
		at := int32(objective)
		important := func(m vernierv1.AnalyzeRequest_Importance_Method) *vernierv1.AnalyzeResponse {
			return ask(&vernierv1.AnalyzeRequest{Objective: at, Question: &vernierv1.AnalyzeRequest_Importance_{Importance: &vernierv1.AnalyzeRequest_Importance{Method: m}}})
		}
		ask(&vernierv1.AnalyzeRequest{Objective: at, Question: &vernierv1.AnalyzeRequest_Pareto_{Pareto: &vernierv1.AnalyzeRequest_Pareto{}}})
		names := leading(important(vernierv1.AnalyzeRequest_Importance_F_ANOVA).GetImportance())
		for i, x := range names {
			for _, y := range names[i+1:] {
				ask(&vernierv1.AnalyzeRequest{Objective: at, Question: &vernierv1.AnalyzeRequest_Contour_{Contour: &vernierv1.AnalyzeRequest_Contour{X: x, Y: y, Points: sharedGrid}}})
			}
		}
		important(vernierv1.AnalyzeRequest_Importance_PED_ANOVA)
	}
	return out
}

// leading are the parameters whose contours are shared: the most important ones, and
// the first two, which the page shows first.
func leading(i *vernierv1.AnalyzeResponse_Importance) (names []string) {
	names = slices.Clone(i.GetParameters()[:min(2, len(i.GetParameters()))])
	order := make([]int, len(i.GetParameters()))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(i.GetShares()[b], i.GetShares()[a]) })
	for _, k := range order {
		if name := i.GetParameters()[k]; len(names) < sharedAxes && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
