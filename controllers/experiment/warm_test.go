package experiment

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
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

func onlyLoss(s *v1beta1.ExperimentSpec) { s.Objectives = s.Objectives[:1] }

func controllerOver(t *testing.T, at time.Time, objects ...client.Object) *Controller {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	byOwner := func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&v1beta1.Trial{}, index.Owner, byOwner).Build()
	return New(Options{Client: c, Now: func() time.Time { return at }, Metrics: newMetrics(t)})
}

func TestWarmStart(t *testing.T) {
	known := ofExperiment("earlier", "earlier", "0.25", result(0, "loss", "1"))
	other := ofExperiment("earlier", "earlier", "0.25", result(0, "accuracy", "1"))
	without := ofExperiment("earlier", "earlier", "0.25", result(0, "loss", "1"))
	without.Spec.ParameterAssignments[0].Name = "momentum"
	tests := map[string]struct {
		after   time.Duration
		objects []client.Object
		begun   bool
		says    string
		fatal   bool
		assume  []v1beta1.ParameterAssignment
		only    string // the one value of lr
	}{
		"its trials are known":                  {objects: []client.Object{earlier(true), known}},
		"one that still runs is learned from":   {objects: []client.Object{earlier(false), known}},
		"one that has only begun holds nothing": {objects: []client.Object{earlier(false)}},
		"one that is not there yet is awaited":  {says: `experiment "earlier" of spec.warmStartFrom[0]: `},
		"one that never came ends it": {after: time.Minute, fatal: true,
			says: `experiment "earlier" of spec.warmStartFrom[0] is not in namespace ml: create this experiment again without the entry, or with another name`},
		"one that was deleted since is done without": {begun: true, after: time.Minute},
		"one with other metrics is refused": {objects: []client.Object{earlier(true), other}, fatal: true,
			says: `has ended, and none of its 1 trials measured the objectives of this one (loss): name one that did`},
		"one whose trials lie outside of the space is refused": {objects: []client.Object{earlier(true), ofExperiment("earlier", "earlier", "1.5", result(0, "loss", "1"))}, fatal: true,
			says: `has ended, and none of its 1 trials has a value that this one allows for each of its parameters (lr): name one that did, or widen the parameters`},
		"one without a parameter of this one is refused by that name": {objects: []client.Object{earlier(true), without}, fatal: true,
			says: `has ended, and none of its 1 trials has a value of the parameter lr: say which value they had, in parameterAssignments beside the experiment's name`},
		"one without a parameter whose value is assumed is learned from": {objects: []client.Object{earlier(true), without}, assume: assigned("lr", "0.5")},
		"one without a parameter that has one value is learned from":     {objects: []client.Object{earlier(true), without}, only: "0.5"},
		"one with other metrics stops nothing later":                     {objects: []client.Object{earlier(true), other}, begun: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := controllerOver(t, noon.Add(tc.after), tc.objects...)
			exp := later(func(e *v1beta1.Experiment) {
				e.Spec.WarmStartFrom[0].ParameterAssignments = tc.assume
				if tc.only != "" {
					e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: tc.only, Max: tc.only}
				}
			})
			k := use(t, &c.studies, exp)
			err := c.warm(t.Context(), exp, k.Study, !tc.begun)
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
		c := controllerOver(t, noon, objects...)
		k := use(t, &c.studies, exp)
		if err := c.warm(t.Context(), exp, k.Study, true); err != nil {
			t.Fatal(err)
		}
		proposals, err := k.Propose(t.Context(), 8)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range proposals {
			sum += math.Abs(atof(t, p.Assignments[0].Value)-0.8) / float64(len(proposals))
		}
		return sum
	}
	cold := distance(later(func(e *v1beta1.Experiment) { e.Spec.WarmStartFrom = nil }))
	if warm := distance(later()); warm > cold/2 {
		t.Errorf("mean distance from the best %g, without the warm start %g", warm, cold)
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
