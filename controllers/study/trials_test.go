package study

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at gives a trial a learning rate.
func at(lr string, t *v1beta1.Trial) *v1beta1.Trial {
	t.Spec.ParameterAssignments = assigned("lr", lr)
	return t
}

// overRates is an experiment over a learning rate.
func overRates(change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{}
	e.Spec = *lossAndSpeed(onlyLoss)
	e.Spec.Parameters = []v1beta1.ParameterSpec{{
		Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"},
	}}
	e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "tpe"}
	for _, f := range change {
		f(e)
	}
	v1beta1.SetDefaults(e)
	return e
}

// A trial is translated again only when its object has changed.
func TestTrialsThatStayAreTheSame(t *testing.T) {
	s, err := New(overRates())
	if err != nil {
		t.Fatal(err)
	}
	version := func(v string, t *v1beta1.Trial) *v1beta1.Trial {
		t.UID, t.ResourceVersion = "uid-"+types.UID(t.Name), v
		return t
	}
	first, second := version("1", at("0.1", result(0, "loss", "1"))), version("2", at("0.2", aTrial(1, v1beta1.TrialRunning)))
	s.Update([]*v1beta1.Trial{first, second})
	before := s.trials.current
	s.Update([]*v1beta1.Trial{first.DeepCopy(), second.DeepCopy()})
	if s.trials.current[0] != before[0] || s.trials.current[1] != before[1] {
		t.Error("trials that are the same were translated again")
	}
	third := version("4", at("0.3", aTrial(2, v1beta1.TrialCreated)))
	s.Update([]*v1beta1.Trial{first, version("3", at("0.2", result(1, "loss", "2"))), third})
	now := s.trials.current
	if len(now) != 3 || now[0] != before[0] || now[1] == before[1] || now[1].State != suggest.Succeeded || now[2].State != suggest.Pending {
		t.Errorf("%+v", now)
	}
	if before[1].State != suggest.Running {
		t.Error("a trial was changed in place")
	}
	again := version("1", at("0.9", result(0, "loss", "1")))
	again.UID = "made again"
	s.Update([]*v1beta1.Trial{again, third})
	if now = s.trials.current; len(now) != 2 || now[0] == before[0] || now[1].Number != 2 {
		t.Errorf("after a deletion: %+v", now)
	}
}

// However objects come and go, the study is what it would be if it were made anew.
func TestChangesLeadToWhatAFreshStudyHas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	follows, err := New(overRates())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]*v1beta1.Trial{}
	for i := range 300 {
		name := fmt.Sprint(random.IntN(20))
		if _, ok := there[name]; ok && random.IntN(3) == 0 {
			delete(there, name)
		} else {
			n := random.IntN(15) // some repeat a number
			state := []v1beta1.TrialConditionType{v1beta1.TrialRunning, v1beta1.TrialSucceeded, v1beta1.TrialFailed}[random.IntN(3)]
			object := at(fmt.Sprintf("0.%d", 1+random.IntN(9)), aTrial(n, state))
			object.Name, object.UID, object.ResourceVersion = name, types.UID(name), fmt.Sprint(i)
			if random.IntN(10) == 0 {
				object.Labels = nil
			}
			there[name] = object
		}
		number := func(t *v1beta1.Trial) int { n, _ := t.Number(); return n }
		sorted := slices.SortedFunc(maps.Values(there), func(a, b *v1beta1.Trial) int {
			if d := number(a) - number(b); d != 0 {
				return d
			}
			return strings.Compare(a.Name, b.Name)
		})
		fresh, err := New(overRates())
		if err != nil {
			t.Fatal(err)
		}
		fresh.Update(sorted)
		follows.Update(sorted)
		seen := func(s *Study) (out []string) {
			for i, trial := range s.trials.current {
				out = append(out, fmt.Sprint(trial.Number, trial.State, trial.Point, s.trials.entries[i].object == sorted[slices.Index(sorted, s.trials.object(trial))]))
			}
			return out
		}
		if diff := cmp.Diff(seen(fresh), seen(follows)); diff != "" {
			t.Fatalf("after %d changes: %s", i+1, diff)
		}
	}
}

func TestWarmTrials(t *testing.T) {
	resource := func(r string, t *v1beta1.Trial) *v1beta1.Trial {
		t.Annotations = map[string]string{v1beta1.AnnotationResource: r, v1beta1.AnnotationMeta: `{"theta":"1"}`}
		return t
	}
	failed := aTrial(7, v1beta1.TrialFailed)
	pruned := result(8, "loss", "3")
	pruned.Status.Conditions = aTrial(8, v1beta1.TrialEarlyStopped).Status.Conditions
	wider, without := at("0.1", result(1, "loss", "1")), at("0.1", result(2, "loss", "1"))
	wider.Spec.ParameterAssignments = append(wider.Spec.ParameterAssignments, assigned("width", "7")...)
	without.Spec.ParameterAssignments = assigned("width", "7")
	tests := map[string]struct {
		trials []*v1beta1.Trial
		want   []int
	}{
		"those that ran to their end": {
			[]*v1beta1.Trial{at("0.1", result(1, "loss", "1")), at("0.1", failed), at("0.1", pruned)}, []int{1}},
		"those with all of the resource": {
			[]*v1beta1.Trial{resource("3", at("0.1", result(1, "loss", "1"))), resource("9", at("0.2", result(2, "loss", "1")))}, []int{2}},
		"those with a value for each parameter, of which they may have more": {
			[]*v1beta1.Trial{wider, without, at("1.5", result(3, "loss", "1"))}, []int{1}},
		"those that measured the objective": {
			[]*v1beta1.Trial{at("0.1", result(1, "loss", "NaN")), at("0.1", result(2, "x", "1"))}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := overRates()
			s, err := New(exp)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			if learned := s.Warm([]Earlier{{v1beta1.WarmStart{Experiment: "earlier"}, tc.trials}}); learned[0].Trials != len(tc.want) {
				t.Errorf("%+v", learned)
			}
			for _, w := range s.question().Warm {
				got = append(got, w.Number)
				if diff := cmp.Diff(suggest.Meta{"study": "earlier"}, w.Meta); diff != "" || w.Resource != 0 || len(w.Values) != 1 {
					t.Errorf("trial %d: resource %v, values %v, meta %s", w.Number, w.Resource, w.Values, diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStudyHasObjectivesAndConstraints(t *testing.T) {
	exp := overRates(func(e *v1beta1.Experiment) {
		e.Spec.Objectives = lossAndSpeed().Objectives
		bounded("memory", nil, ptr.To(16.0))(&e.Spec)
	})
	kept, err := New(exp)
	if err != nil {
		t.Fatal(err)
	}
	kept.Update([]*v1beta1.Trial{
		at("0.1", result(0, "loss", "1", "speed", "2", "memory", "3")),
		at("0.1", result(1, "loss", "1", "speed", "2")),
		at("0.1", result(2, "loss", "1", "memory", "2")),
	})
	s := kept.question()
	want := []suggest.Objective{{Name: "loss", Direction: suggest.Minimize}, {Name: "speed", Direction: suggest.Maximize}}
	if diff := cmp.Diff(want, s.Objectives); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]suggest.Constraint{{Name: "memory", Max: ptr.To(16.0)}}, s.Constraints); diff != "" {
		t.Error(diff)
	}
	type row struct {
		State               suggest.State
		Values, Constraints []float64
	}
	var got []row
	for _, one := range s.Trials {
		got = append(got, row{one.State, one.Values, one.Constraints})
	}
	rows := []row{
		{suggest.Succeeded, []float64{1, 2}, []float64{3}},
		{suggest.Succeeded, []float64{1, 2}, []float64{math.NaN()}},
		{suggest.Unmeasured, nil, nil},
	}
	equalNaN := cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
	if diff := cmp.Diff(rows, got, equalNaN); diff != "" {
		t.Error(diff)
	}
}

func TestTheDurationOfATrialBeginsWithItsProgram(t *testing.T) {
	at := func(seconds int) *metav1.Time { return &metav1.Time{Time: time.Unix(int64(1000+seconds), 0)} }
	for name, c := range map[string]struct {
		status v1beta1.TrialStatus
		want   float64
	}{
		"it runs":                        {v1beta1.TrialStatus{StartTime: at(0)}, 0},
		"it has ended":                   {v1beta1.TrialStatus{StartTime: at(0), CompletionTime: at(90)}, 90},
		"it waited for a node first":     {v1beta1.TrialStatus{StartTime: at(0), ProgramStartTime: at(60), CompletionTime: at(90)}, 30},
		"the clock of the node is ahead": {v1beta1.TrialStatus{StartTime: at(0), ProgramStartTime: at(95), CompletionTime: at(90)}, 0.5},
		"it took less than a second":     {v1beta1.TrialStatus{StartTime: at(7), CompletionTime: at(7)}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := duration(&v1beta1.Trial{Status: c.status}); got != c.want {
				t.Errorf("%g s, want %g", got, c.want)
			}
		})
	}
}
