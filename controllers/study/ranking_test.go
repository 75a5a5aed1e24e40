package study

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// result is a trial that succeeded with the latest value of each metric: pairs of
// a name and a value.
func result(n int, pairs ...string) *v1beta1.Trial {
	t := aTrial(n, v1beta1.TrialSucceeded)
	t.Status.Observation = &v1beta1.Observation{}
	for i := 0; i < len(pairs); i += 2 {
		t.Status.Observation.Metrics = append(t.Status.Observation.Metrics,
			v1beta1.Metric{Name: pairs[i], Min: pairs[i+1], Max: pairs[i+1], Latest: pairs[i+1]})
	}
	return t
}

// lossAndSpeed is minimized in loss and maximized in speed.
func lossAndSpeed(change ...func(*v1beta1.ExperimentSpec)) *v1beta1.ExperimentSpec {
	e := &v1beta1.Experiment{}
	e.Spec.Objectives = []v1beta1.ObjectiveMetric{
		{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize},
		{ObjectiveMetricName: "speed", Type: v1beta1.ObjectiveTypeMaximize},
	}
	for _, f := range change {
		f(&e.Spec)
	}
	v1beta1.SetDefaults(e)
	return &e.Spec
}

func bounded(metric string, low, high *float64) func(*v1beta1.ExperimentSpec) {
	return func(s *v1beta1.ExperimentSpec) {
		s.Constraints = append(s.Constraints, v1beta1.MetricConstraint{MetricName: metric, Min: low, Max: high})
	}
}

func aimed(objective int, goal float64) func(*v1beta1.ExperimentSpec) {
	return func(s *v1beta1.ExperimentSpec) { s.Objectives[objective].Goal = &goal }
}

func onlyLoss(s *v1beta1.ExperimentSpec) { s.Objectives = s.Objectives[:1] }

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		spec    *v1beta1.ExperimentSpec
		trials  []*v1beta1.Trial
		top     string
		front   []string
		reached bool
	}{
		"no trials": {spec: lossAndSpeed()},
		"one that is beaten in all is not on the front": {
			spec:   lossAndSpeed(),
			trials: []*v1beta1.Trial{result(0, "loss", "2", "speed", "1"), result(1, "loss", "1", "speed", "2"), result(2, "loss", "3", "speed", "3")},
			top:    "exp-0001", front: []string{"exp-0001", "exp-0002"}},
		"of equals the first stays": {
			spec:   lossAndSpeed(),
			trials: []*v1beta1.Trial{result(0, "loss", "1", "speed", "2"), result(1, "loss", "1", "speed", "2")},
			top:    "exp-0000", front: []string{"exp-0000"}},
		"of equals in the main objective the better in the rest is best": {
			spec:   lossAndSpeed(),
			trials: []*v1beta1.Trial{result(0, "loss", "1", "speed", "2"), result(1, "loss", "1", "speed", "3")},
			top:    "exp-0001", front: []string{"exp-0001"}},
		"what has no finite value in each objective does not count": {
			spec: lossAndSpeed(),
			trials: []*v1beta1.Trial{result(0, "loss", "1"), result(1, "loss", "NaN", "speed", "9"), result(2, "loss", "1", "speed", "+Inf"),
				result(3, "loss", "5", "speed", "1")},
			top: "exp-0003", front: []string{"exp-0003"}},
		"what breaks a bound is never the best": {
			spec:   lossAndSpeed(bounded("memory", nil, ptr.To(16.0))),
			trials: []*v1beta1.Trial{result(0, "loss", "1", "speed", "9", "memory", "17"), result(1, "loss", "2", "speed", "1", "memory", "16")},
			top:    "exp-0001", front: []string{"exp-0001"}},
		"a bound that was not measured is broken": {
			spec:   lossAndSpeed(bounded("memory", ptr.To(1.0), nil)),
			trials: []*v1beta1.Trial{result(0, "loss", "1", "speed", "9"), result(1, "loss", "1", "speed", "9", "memory", "NaN")}},
		"both ends of a bound are inside": {
			spec:   lossAndSpeed(onlyLoss, bounded("memory", ptr.To(1.0), ptr.To(2.0))),
			trials: []*v1beta1.Trial{result(0, "loss", "3", "memory", "0.5"), result(1, "loss", "5", "memory", "1"), result(2, "loss", "4", "memory", "2"), result(3, "loss", "1", "memory", "2.5")},
			top:    "exp-0002"},
		"where all results are texts the last one is shown": {
			spec:   lossAndSpeed(onlyLoss),
			trials: []*v1beta1.Trial{result(0, "loss", "Genotype(a)"), result(1, "loss", "Genotype(b)"), result(2, "loss", "NaN"), result(3, "loss", "unavailable")},
			top:    "exp-0001"},
		"a number goes before a text": {
			spec:   lossAndSpeed(onlyLoss),
			trials: []*v1beta1.Trial{result(0, "loss", "9"), result(1, "loss", "Genotype(b)")},
			top:    "exp-0000"},
		"one objective has no front": {
			spec:   lossAndSpeed(onlyLoss),
			trials: []*v1beta1.Trial{result(0, "loss", "2"), result(1, "loss", "1")},
			top:    "exp-0001"},
		"a goal in one objective": {
			spec:   lossAndSpeed(aimed(1, 9)),
			trials: []*v1beta1.Trial{result(0, "loss", "8", "speed", "9")},
			top:    "exp-0000", front: []string{"exp-0000"}, reached: true},
		"goals in both are reached by one trial or not at all": {
			spec:   lossAndSpeed(aimed(0, 1), aimed(1, 9)),
			trials: []*v1beta1.Trial{result(0, "loss", "8", "speed", "9"), result(1, "loss", "1", "speed", "8")},
			top:    "exp-0001", front: []string{"exp-0000", "exp-0001"}},
		"goals in both are reached": {
			spec:   lossAndSpeed(aimed(0, 1), aimed(1, 9)),
			trials: []*v1beta1.Trial{result(0, "loss", "0.5", "speed", "10"), result(1, "loss", "0.4", "speed", "8")},
			top:    "exp-0001", front: []string{"exp-0000", "exp-0001"}, reached: true},
		"a goal is not reached by what breaks a bound": {
			spec:   lossAndSpeed(onlyLoss, aimed(0, 1), bounded("memory", nil, ptr.To(16.0))),
			trials: []*v1beta1.Trial{result(0, "loss", "0.5", "memory", "17")}},
		"strategies hold for each metric": {
			spec: lossAndSpeed(func(s *v1beta1.ExperimentSpec) {
				s.Objective = &v1beta1.ObjectiveSpec{MetricStrategies: []v1beta1.MetricStrategy{{Name: "loss", Value: v1beta1.ExtractByLatest}}}
			}, onlyLoss),
			trials: []*v1beta1.Trial{measured(0, "1", "9", "5"), measured(1, "2", "4", "4")},
			top:    "exp-0001"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := Rank(tc.spec, tc.trials)
			if bestOf(r) != tc.top || r.Reached() != tc.reached {
				t.Errorf("best %q, reached %v; want %q, %v", bestOf(r), r.Reached(), tc.top, tc.reached)
			}
			if diff := cmp.Diff(tc.front, r.Front(500)); diff != "" {
				t.Errorf("front (-want +got)\n%s", diff)
			}
		})
	}
}

// The front is what comparing each trial with each other gives, and the best one
// is on it.
func TestFrontIsThatOfAllPairs(t *testing.T) {
	spec := lossAndSpeed(func(s *v1beta1.ExperimentSpec) {
		s.Objectives = append(s.Objectives, v1beta1.ObjectiveMetric{ObjectiveMetricName: "size", Type: v1beta1.ObjectiveTypeMinimize})
	})
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var trials []*v1beta1.Trial
		var all [][]float64
		for n := range 1 + r.IntN(30) {
			loss, speed, size := r.IntN(5), r.IntN(5), r.IntN(5) // many ties
			trials = append(trials, result(n, "loss", fmt.Sprint(loss), "speed", fmt.Sprint(speed), "size", fmt.Sprint(size)))
			all = append(all, []float64{float64(loss), -float64(speed), float64(size)})
		}
		var want []string
		for i := range all {
			beaten := false
			for j := range all {
				beaten = beaten || noWorse(all[j], all[i]) && (!noWorse(all[i], all[j]) || j < i)
			}
			if !beaten {
				want = append(want, trials[i].Name)
			}
		}
		// Growing in any order of results, it is what it is when made at once.
		grown := &Study{trials: history{spec: spec}, ranking: newRanking(spec)}
		shown := make([]*v1beta1.Trial, len(trials))
		for n := range trials {
			shown[n] = aTrial(n, v1beta1.TrialRunning)
		}
		for _, n := range r.Perm(len(trials)) {
			shown[n] = trials[n]
			grown.Update(shown)
		}
		for how, ranking := range map[string]*Ranking{"at once": Rank(spec, trials), "grown": grown.Ranking()} {
			got := ranking.Front(500)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s, %v (-want +got)\n%s", how, all, diff)
			}
			if !slices.Contains(got, bestOf(ranking)) {
				t.Fatalf("the best, %s, is not on the front %v", bestOf(ranking), got)
			}
		}
	}
}

func noWorse(a, b []float64) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

func bestOf(r *Ranking) string {
	if t := r.Best(); t != nil {
		return t.Name
	}
	return ""
}

// A result that changes or goes takes what it had beaten back into the ranking.
func TestRankingFollowsResultsThatChange(t *testing.T) {
	spec := lossAndSpeed()
	first, second := result(0, "loss", "1", "speed", "9"), result(1, "loss", "2", "speed", "8")
	s := &Study{trials: history{spec: spec}, ranking: newRanking(spec)}
	for i, step := range []struct {
		trials []*v1beta1.Trial
		best   string
		front  []string
	}{
		{[]*v1beta1.Trial{first, second}, "exp-0000", []string{"exp-0000"}},
		{[]*v1beta1.Trial{second}, "exp-0001", []string{"exp-0001"}},
		{[]*v1beta1.Trial{first, second}, "exp-0000", []string{"exp-0000"}},
		{[]*v1beta1.Trial{result(0, "loss", "3", "speed", "9"), second}, "exp-0001", []string{"exp-0000", "exp-0001"}},
		{nil, "", nil},
	} {
		s.Update(step.trials)
		if got := bestOf(s.Ranking()); got != step.best {
			t.Errorf("step %d: best %q, want %q", i, got, step.best)
		}
		if diff := cmp.Diff(step.front, s.Ranking().Front(500)); diff != "" {
			t.Errorf("step %d: front (-want +got)\n%s", i, diff)
		}
	}
}

// A front of 10,000 trials takes a second to compare anew.
func TestNewResultsJoinTheFrontThatThereIs(t *testing.T) {
	spec := lossAndSpeed()
	s := &Study{trials: history{spec: spec}, ranking: newRanking(spec)}
	trials := []*v1beta1.Trial{result(0, "loss", "1", "speed", "1")}
	s.Update(trials)
	before := &s.ranking.front[0].losses[0]
	s.Update(append(trials, result(1, "loss", "2", "speed", "2")))
	if got := s.ranking.Front(500); len(got) != 2 || &s.ranking.front[0].losses[0] != before {
		t.Errorf("the front %v was made anew", got)
	}
}

func TestFrontGivesTheNewest(t *testing.T) {
	var trials []*v1beta1.Trial
	for n := range 20 {
		trials = append(trials, result(n, "loss", fmt.Sprint(n), "speed", fmt.Sprint(n)))
	}
	got := Rank(lossAndSpeed(), trials).Front(7)
	if len(got) != 7 || got[6] != trials[19].Name {
		t.Errorf("%v", got)
	}
}
