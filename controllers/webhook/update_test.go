package webhook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

func TestUpdates(t *testing.T) {
	none := func(*v1beta1.Experiment) {}
	raise := func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = ptr(int32(20)) }
	ended := func(policy v1beta1.ResumePolicy, reason string) edit {
		return func(e *v1beta1.Experiment) {
			e.Spec.ResumePolicy = policy
			e.Status.Trials = 12
			e.MarkSucceeded(reason, "", metav1.Time{})
		}
	}
	failedByTrials := func(e *v1beta1.Experiment) {
		e.Spec.MaxFailedTrialCount, e.Status.Trials, e.Status.TrialsFailed = ptr(int32(3)), 12, 3
		e.MarkFailed(v1beta1.ReasonExperimentFailed, v1beta1.MessageMaxFailed+": 3 trials failed", metav1.Time{})
	}
	limits := func(trials, failed int32) edit {
		return func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount, e.Spec.MaxFailedTrialCount = &trials, &failed }
	}
	const max, goal = v1beta1.ReasonExperimentMaxTrialsReached, v1beta1.ReasonExperimentGoalReached
	tests := map[string]struct {
		before, after edit
		want          []string
	}{
		"nothing changes": {none, none, nil},
		"nothing changes in an experiment that was never valid": {
			func(e *v1beta1.Experiment) { e.Spec.Objective = nil }, func(e *v1beta1.Experiment) { e.Finalizers = nil }, nil,
		},
		"the counts change": {none, func(e *v1beta1.Experiment) {
			e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount, e.Spec.MaxFailedTrialCount = ptr(int32(5)), ptr(int32(2)), ptr(int32(1))
		}, nil},
		"it is suspended, and times change": {none, func(e *v1beta1.Experiment) {
			hour := &metav1.Duration{Duration: time.Hour}
			e.Spec.Suspend, e.Spec.MaxDuration, e.Spec.MaxTrialDuration, e.Spec.MaxTrialWaitDuration = true, hour, hour, hour
			e.Spec.MaxGPUHours = ptr(2.5)
		}, nil},
		"maxTrialCount is taken away":              {none, func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }, nil},
		"the template is only spelled differently": {none, trialSpec(`{"apiVersion":"batch/v1",`, `{ "apiVersion": "batch/v1" , `), nil},
		"a default is written out":                 {none, func(e *v1beta1.Experiment) { e.Spec.ResumePolicy = v1beta1.NeverResume }, nil},
		"the template changes":                     {none, trialSpec("epochs=1", "epochs=2"), []string{"spec.trialTemplate: Forbidden: cannot be changed: only initialTrials, maxDuration, maxFailedTrialCount, maxGPUHours, maxTrialCount, "}},
		"a point is queued":                        {initially(""), func(e *v1beta1.Experiment) { initially("a")(e); initially("b")(e) }, nil},
		"a queued point is taken away":             {initially("a"), func(e *v1beta1.Experiment) { e.Spec.InitialTrials = nil }, nil},
		"an initial point is added":                {none, initially(""), []string{"spec.initialTrials: Forbidden: cannot be changed, except for those with an id"}},
		"two queued points have one id":            {initially("a"), initially("a"), []string{"spec.initialTrials[1].id: Duplicate value"}},
		"a queued point is outside of the space": {none, func(e *v1beta1.Experiment) {
			initially("a")(e)
			e.Spec.InitialTrials[0].ParameterAssignments[0].Value = "1000"
		}, []string{"spec.initialTrials[0].parameterAssignments: Invalid value"}},
		"several fields change": {none, func(e *v1beta1.Experiment) {
			e.Spec.Seed, e.Spec.Objective.Goal, e.Spec.Parameters[0].FeasibleSpace.Max = ptr(int64(1)), nil, "9"
		}, []string{"spec.objective: Forbidden", "spec.parameters: Forbidden", "spec.seed: Forbidden"}},

		"LongRunning goes on":       {ended(v1beta1.LongRunning, max), raise, nil},
		"FromVolume goes on":        {ended(v1beta1.FromVolume, max), raise, nil},
		"LongRunning without limit": {ended(v1beta1.LongRunning, max), func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }, nil},
		"Never does not go on": {ended(v1beta1.NeverResume, max), raise,
			[]string{"spec.maxTrialCount: Forbidden: the experiment has completed and its resumePolicy is Never: create a new experiment instead; one with LongRunning or FromVolume can go on after its end"}},
		"a goal that is reached": {ended(v1beta1.LongRunning, goal), raise,
			[]string{"spec.maxTrialCount: Forbidden: the experiment has succeeded (ExperimentGoalReached) and has nothing left to do"}},
		"time that is over": {ended(v1beta1.LongRunning, v1beta1.ReasonExperimentMaxDurationReached), raise,
			[]string{"spec.maxTrialCount: Forbidden: the time of the experiment is over: create a new experiment instead; its warmStartFrom can name this one"}},
		"GPU hours that are used up, and more of them": {both(ended(v1beta1.LongRunning, v1beta1.ReasonExperimentMaxGPUHoursReached), usedHours(8, "8.01")), both(raise, usedHours(9, "8.01")), nil},
		"GPU hours that are used up": {both(ended(v1beta1.LongRunning, v1beta1.ReasonExperimentMaxGPUHoursReached), usedHours(8, "8.01")), raise,
			[]string{"spec.maxGPUHours: Invalid value: 8: the trials have used 8.01 GPU hours: raise maxGPUHours above that to go on"}},
		"GPU hours that are used up with the last trial": {both(ended(v1beta1.LongRunning, max), usedHours(8, "8.01")), raise,
			[]string{"spec.maxGPUHours: Invalid value: 8: the trials have used 8.01 GPU hours: raise maxGPUHours above that to go on"}},
		"not enough trials": {ended(v1beta1.LongRunning, max), func(e *v1beta1.Experiment) { e.Spec.ParallelTrialCount = ptr(int32(1)) },
			[]string{"spec.maxTrialCount: Invalid value: 12: the experiment has 12 trials already: raise maxTrialCount above that to go on"}},
		"another algorithm for one that has ended": {ended(v1beta1.LongRunning, max), func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = "tpe" },
			[]string{"spec.algorithm: Forbidden: cannot be changed"}},
		"failed": {func(e *v1beta1.Experiment) {
			e.Spec.ResumePolicy = v1beta1.LongRunning
			e.MarkFailed(v1beta1.ReasonExperimentFailed, "", metav1.Time{})
		}, raise, []string{"spec.maxTrialCount: Forbidden: the experiment has failed and cannot go on"}},
		"failed by its trials, and more may fail now": {failedByTrials, limits(20, 5), nil},
		"failed by its trials, and no more may fail": {failedByTrials, limits(20, 3),
			[]string{"spec.maxFailedTrialCount: Invalid value: 3: 3 trials have failed: raise maxFailedTrialCount above that to go on"}},
		"failed by its trials, and there is no room for more": {failedByTrials, limits(12, 5),
			[]string{"spec.maxTrialCount: Invalid value: 12: the experiment has 12 trials already: raise maxTrialCount above that to go on"}},
		"earlier versions admitted a parameter with two placeholders": {
			func(e *v1beta1.Experiment) { e.Spec.TrialTemplate.TrialParameters[1].Reference = "lr" }, raise, nil,
		},
		"labels of a completed experiment": {ended(v1beta1.NeverResume, max), func(e *v1beta1.Experiment) { e.Labels = map[string]string{"a": "b"} }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := example(t, "random")
			tc.before(old)
			webhook.Default(old)
			exp := old.DeepCopy()
			if name == "a default is written out" {
				old.Spec.ResumePolicy = ""
			}
			tc.after(exp)
			_, errs := rules.Validate(exp, old)
			if len(errs) != len(tc.want) {
				t.Errorf("%d errors, want %d", len(errs), len(tc.want))
			}
			for i, e := range errs {
				if i >= len(tc.want) || !strings.Contains(e.Error(), tc.want[i]) {
					t.Errorf("error %d: %s", i, e)
				}
			}
		})
	}
}

func TestCountsThatEndTheExperimentAreSaid(t *testing.T) {
	limits := func(trials, failed int32) edit {
		return func(e *v1beta1.Experiment) {
			e.Spec.MaxTrialCount, e.Spec.MaxFailedTrialCount, e.Spec.ParallelTrialCount = &trials, &failed, ptr(int32(2))
		}
	}
	// 9 trials: 7 have ended, 3 of them badly, and 2 are active.
	counts := v1beta1.ExperimentStatus{Trials: 9, TrialsPending: 1, TrialsRunning: 1, TrialsSucceeded: 4, TrialsFailed: 2, TrialMetricsUnavailable: 1}
	allEnded := counts
	allEnded.Trials, allEnded.TrialsPending, allEnded.TrialsRunning = 7, 0, 0
	tests := map[string]struct {
		status v1beta1.ExperimentStatus
		after  edit
		want   []string
	}{
		"room is left":     {counts, limits(8, 4), nil},
		"as many as ended": {counts, limits(7, 4), []string{"spec.maxTrialCount: 7 trials have ended already: the experiment ends now, and the 2 trials that are active are stopped"}},
		"fewer than ended": {counts, limits(5, 4), []string{"spec.maxTrialCount: 7 trials have ended already"}},
		"too many failed":  {counts, limits(8, 3), []string{"spec.maxFailedTrialCount: 3 trials have failed or have no metrics already: the experiment fails now, and the 2 trials that are active are stopped"}},
		"nothing is lost":  {allEnded, limits(7, 3), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := example(t, "random")
			limits(20, 5)(old)
			webhook.Default(old)
			old.Status = tc.status
			exp := old.DeepCopy()
			tc.after(exp)
			got, errs := rules.Validate(exp, old)
			if len(errs) > 0 {
				t.Error(errs)
			}
			if len(got) != len(tc.want) {
				t.Fatalf("warnings %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("warning %q, want %q", got[i], tc.want[i])
				}
			}
			exp.Spec = old.Spec
			exp.Labels = map[string]string{"a": "b"}
			if got, _ := rules.Validate(exp, old); len(got) > 0 {
				t.Errorf("a label brings %q", got)
			}
		})
	}
}

func usedHours(limit float64, used string) edit {
	return func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours, e.Status.GPUHours = &limit, used }
}

func TestThatEarlierTrialsDoNotCountIsSaid(t *testing.T) {
	hours := func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours = ptr(8.0) }
	asking := trialSpec(`"memory":"1Gi"`, `"nvidia.com/gpu":1`)
	tests := map[string]struct {
		old    edit
		trials int32
		want   []string
	}{
		"there are trials":    {asking, 3, []string{"spec.maxGPUHours: trials that were made while it was not set do not count"}},
		"there are none yet":  {asking, 0, nil},
		"it was set before":   {both(asking, func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours = ptr(4.0) }), 3, nil},
		"and they ask for no": {func(*v1beta1.Experiment) {}, 0, []string{noGPUs}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := example(t, "random")
			tc.old(old)
			webhook.Default(old)
			old.Status.Trials = tc.trials
			exp := old.DeepCopy()
			hours(exp)
			got, errs := rules.Validate(exp, old)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(errs) > 0 {
				t.Errorf("errors %v, warnings (-want +got):\n%s", errs, diff)
			}
		})
	}
}

// An update of the rate and of the counts brings the warnings of both.
func TestAnUpdateBringsAllWarnings(t *testing.T) {
	old := example(t, "random")
	old.Spec.Objective.MetricStrategies = []v1beta1.MetricStrategy{{Name: old.Spec.Objective.ObjectiveMetricName, Value: "mean-last-5"}}
	webhook.Default(old)
	exp := old.DeepCopy()
	exp.Annotations = map[string]string{v1beta1.AnnotationCollectorRate: "10"}
	exp.Spec.MaxTrialCount = ptr(int32(20))
	got, errs := rules.Validate(exp, old)
	if len(errs) > 0 || len(got) != 1 || !strings.HasPrefix(got[0], "metadata.annotations[vernier.ml/collector-rate]: it has no effect") {
		t.Errorf("warnings %q, errors %v", got, errs)
	}
}

// initially adds a point with an id to the initial trials.
func initially(id string) edit {
	return func(e *v1beta1.Experiment) {
		t := v1beta1.InitialTrial{ID: id}
		for _, p := range e.Spec.Parameters {
			value := p.FeasibleSpace.Min
			if len(p.FeasibleSpace.List) > 0 {
				value = p.FeasibleSpace.List[0]
			}
			t.ParameterAssignments = append(t.ParameterAssignments, v1beta1.ParameterAssignment{Name: p.Name, Value: value})
		}
		e.Spec.InitialTrials = append(e.Spec.InitialTrials, t)
	}
}

// A program that makes its experiment again finds the one that is there, whatever was
// queued in it meanwhile.
func TestAQueuedPointLeavesTheSpecTheSame(t *testing.T) {
	for id, want := range map[string]bool{"a": true, "": false} {
		there := example(t, "random")
		here := there.DeepCopy()
		there.Spec.InitialTrials = append(there.Spec.InitialTrials, v1beta1.InitialTrial{ID: id})
		if same, err := webhook.SameSpec(here, there); err != nil || same != want {
			t.Errorf("a point with the id %q: %v, %v; want %v", id, same, err, want)
		}
	}
}

// A service proposes all trials itself, and would never try a point that is queued.
func TestNoPointsForAService(t *testing.T) {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "katib-config"},
		Data:       map[string]string{"katib-config.yaml": "runtime: {suggestions: [{algorithmName: elsewhere, image: i}]}"},
	}
	old := example(t, "random")
	old.Spec.Algorithm.AlgorithmName = "elsewhere"
	rules, err := webhook.Rules{Reader: fake.NewClientBuilder().WithObjects(config).Build()}.For(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	with := old.DeepCopy()
	with.Spec.InitialTrials = []v1beta1.InitialTrial{{ID: "a", ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "lr", Value: "0.02"}}}}
	for name, c := range map[string]struct {
		exp, old *v1beta1.Experiment
		refused  bool
	}{
		"a new experiment with points": {with, nil, true},
		"a point is queued":            {with, old, true},
		"one that has them already":    {with, with, false},
		"none":                         {old, nil, false},
	} {
		_, errs := rules.Validate(c.exp, c.old)
		refused := slices.ContainsFunc(errs, func(e *field.Error) bool {
			return e.Field == "spec.initialTrials" && strings.Contains(e.Detail, "elsewhere is a service")
		})
		if refused != c.refused {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
