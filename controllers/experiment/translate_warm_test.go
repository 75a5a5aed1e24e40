package experiment

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// ofExperiment makes a trial one of an experiment, at a learning rate.
func ofExperiment(owner types.UID, name, lr string, t *v1beta1.Trial) *v1beta1.Trial {
	n, _ := t.Number()
	t.Namespace, t.Name = "ml", v1beta1.TrialName(name, n)
	t.UID = types.UID(t.Name)
	t.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "Experiment", Name: name, UID: owner, Controller: ptr.To(true),
	}}
	t.Spec.ParameterAssignments = assigned("lr", lr)
	return t
}

// later is an experiment over a learning rate that learns from earlier.
func later(change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "later", UID: "later", CreationTimestamp: metav1.NewTime(noon)}}
	e.Spec = *lossAndSpeed(onlyLoss)
	e.Spec.Parameters = []v1beta1.ParameterSpec{{
		Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"},
	}}
	e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "tpe"}
	e.Spec.WarmStartFrom = []v1beta1.WarmStart{{Experiment: "earlier"}}
	e.Spec.Seed = ptr.To[int64](1)
	for _, f := range change {
		f(e)
	}
	v1beta1.SetDefaults(e)
	return e
}

func earlier(done bool) *v1beta1.Experiment {
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "earlier", UID: "earlier"}}
	if done {
		e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.NewTime(noon))
	}
	return e
}

func controllerOver(t *testing.T, at time.Time, objects ...client.Object) *Controller {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	index := func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&v1beta1.Trial{}, ownerIndex, index).Build()
	return New(Options{Client: c, Now: func() time.Time { return at }, Metrics: newMetrics(t)})
}

func TestWarmStart(t *testing.T) {
	known := ofExperiment("earlier", "earlier", "0.25", result(0, "loss", "1"))
	other := ofExperiment("earlier", "earlier", "0.25", result(0, "accuracy", "1"))
	tests := map[string]struct {
		after   time.Duration
		objects []client.Object
		begun   bool
		want    int
		says    string
		fatal   bool
	}{
		"its trials are known":                  {objects: []client.Object{earlier(true), known}, want: 1},
		"one that still runs is learned from":   {objects: []client.Object{earlier(false), known}, want: 1},
		"one that has only begun holds nothing": {objects: []client.Object{earlier(false)}},
		"one that is not there yet is awaited":  {says: `experiment "earlier" of spec.warmStartFrom[0]: `},
		"one that never came ends it": {after: time.Minute, fatal: true,
			says: `experiment "earlier" of spec.warmStartFrom[0] is not in namespace ml: create this experiment again without the entry, or with another name`},
		"one that was deleted since is done without": {begun: true, after: time.Minute},
		"one with other metrics is refused": {objects: []client.Object{earlier(true), other}, fatal: true,
			says: `has ended, and none of its 1 trials measured the objectives of this one (loss): name one that did`},
		"one whose trials lie outside of the space is refused": {objects: []client.Object{earlier(true), ofExperiment("earlier", "earlier", "1.5", result(0, "loss", "1"))}, fatal: true,
			says: `has ended, and none of its 1 trials has a value that this one allows for each of its parameters (lr): name one that did, or widen the parameters`},
		"one with other metrics stops nothing later": {objects: []client.Object{earlier(true), other}, begun: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, exp := controllerOver(t, noon.Add(tc.after), tc.objects...), later()
			m, err := c.searcher(exp)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.warm(t.Context(), exp, m, !tc.begun)
			if len(got) != tc.want {
				t.Errorf("%d trials, want %d", len(got), tc.want)
			}
			fatal := errors.As(err, new(*fatalError))
			if fatal != tc.fatal || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("fatal %v, %v\nwant %v, %s", fatal, err, tc.fatal, tc.says)
			}
		})
	}
}

// What another experiment found changes what is proposed.
func TestProposalsFollowAWarmStart(t *testing.T) {
	objects := []client.Object{earlier(true)}
	for n := range 40 {
		lr := float64(n) / 40
		loss := ftoa(math.Abs(lr - 0.8))
		objects = append(objects, ofExperiment("earlier", "earlier", ftoa(lr), result(n, "loss", loss)))
	}
	distance := func(exp *v1beta1.Experiment) float64 {
		proposals, err := controllerOver(t, noon, objects...).propose(t.Context(), exp, nil, 8)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range proposals {
			sum += math.Abs(atof(t, p.assignments[0].Value)-0.8) / float64(len(proposals))
		}
		return sum
	}
	cold := distance(later(func(e *v1beta1.Experiment) { e.Spec.WarmStartFrom = nil }))
	if warm := distance(later()); warm > cold/2 {
		t.Errorf("mean distance from the best %g, without the warm start %g", warm, cold)
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
	wider, without := ofExperiment("e", "e", "0.1", result(1, "loss", "1")), ofExperiment("e", "e", "0.1", result(2, "loss", "1"))
	wider.Spec.ParameterAssignments = append(wider.Spec.ParameterAssignments, assigned("width", "7")...)
	without.Spec.ParameterAssignments = assigned("width", "7")
	tests := map[string]struct {
		trials []*v1beta1.Trial
		want   []int
	}{
		"those that ran to their end": {
			[]*v1beta1.Trial{ofExperiment("e", "e", "0.1", result(1, "loss", "1")), ofExperiment("e", "e", "0.1", failed), ofExperiment("e", "e", "0.1", pruned)}, []int{1}},
		"those with all of the resource": {
			[]*v1beta1.Trial{resource("3", ofExperiment("e", "e", "0.1", result(1, "loss", "1"))), resource("9", ofExperiment("e", "e", "0.2", result(2, "loss", "1")))}, []int{2}},
		"those with a value for each parameter, of which they may have more": {
			[]*v1beta1.Trial{wider, without, ofExperiment("e", "e", "1.5", result(3, "loss", "1"))}, []int{1}},
		"those that measured the objective": {
			[]*v1beta1.Trial{ofExperiment("e", "e", "0.1", result(1, "loss", "NaN")), ofExperiment("e", "e", "0.1", result(2, "x", "1"))}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := later()
			m, err := newSearcher(&exp.Spec)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			learnt, _ := m.warmTrials(&exp.Spec, "earlier", tc.trials)
			for _, w := range learnt {
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
	exp := later(func(e *v1beta1.Experiment) {
		e.Spec.Objectives = lossAndSpeed().Objectives
		bounded("memory", nil, ptr.To(16.0))(&e.Spec)
	})
	m, err := newSearcher(&exp.Spec)
	if err != nil {
		t.Fatal(err)
	}
	s := m.study(exp, []*v1beta1.Trial{
		ofExperiment("later", "later", "0.1", result(0, "loss", "1", "speed", "2", "memory", "3")),
		ofExperiment("later", "later", "0.1", result(1, "loss", "1", "speed", "2")),
		ofExperiment("later", "later", "0.1", result(2, "loss", "1", "memory", "2")),
	})
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

func ftoa(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func atof(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
