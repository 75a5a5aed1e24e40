package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

func gpuHours(h float64) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours = &h }
}

// withGPUs gives a trial GPUs. Its job was made two hours before noon, and if it has ended
// it did at noon; its program has run for some time, or is not known to have, with 0.
func withGPUs(t *v1beta1.Trial, gpus string, ran time.Duration) *v1beta1.Trial {
	metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationGPUs, gpus)
	t.Status.StartTime = ptr.To(metav1.NewTime(noon.Add(-2 * time.Hour)))
	if ran != 0 {
		t.Status.ProgramStartTime = ptr.To(metav1.NewTime(noon.Add(-ran)))
	}
	if t.IsCompleted() {
		t.Status.CompletionTime = ptr.To(metav1.NewTime(noon))
	}
	return t
}

func TestPlanOfGPUHours(t *testing.T) {
	const reached = v1beta1.ReasonExperimentMaxGPUHoursReached
	done := withGPUs(aTrial(0, succeeded), "4", time.Hour) // 4 GPU hours
	adds := func(n int) outcome { return outcome{Add: n, First: 2, State: expRunning, Reason: runReason} }
	tests := map[string]struct {
		limit  float64
		more   []func(*v1beta1.Experiment)
		trials []*v1beta1.Trial
		want   outcome
		after  time.Duration
		says   string
		hours  string
	}{
		"the rest, shared by those that run": {8, nil,
			[]*v1beta1.Trial{done, withGPUs(aTrial(1, running), "2", 30*time.Minute)}, adds(2), 90 * time.Minute, messageRunning, "4.00"},
		"all of it": {5, nil,
			[]*v1beta1.Trial{done, withGPUs(aTrial(1, running), "2", 30*time.Minute)}, outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: reached}, 0,
			"Experiment has succeeded because its trials have used its 5 GPU hours", "4.00"},
		"all of it, by one that has ended": {4, nil,
			[]*v1beta1.Trial{done, withGPUs(aTrial(1, created), "2", 0)}, outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: reached}, 0,
			"Experiment has succeeded because its trials have used its 4 GPU hours", "4.00"},
		"all of it, without a result": {0.5, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, failed), "1", 30*time.Minute), aTrial(1, running)}, outcome{Stop: []string{"exp-0001"}, State: expFailed, Reason: failReason}, 0,
			"Experiment has failed because no trial had a result within its maxGPUHours, 0.5", "0.50"},
		"nothing while they wait": {1, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, created), "8", 0), withGPUs(aTrial(1, running), "8", 0)}, adds(1), 0, messageRunning, "0.00"},
		"nothing of one that failed before its program began": {1, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, failed), "8", 0), withGPUs(aTrial(1, killed), "8", 0)}, adds(3), 0, messageRunning, "0.00"},
		"one with a result ran since its job was made, at most": {9, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, succeeded), "2", 0), withGPUs(aTrial(1, running), "5", time.Hour)}, outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: reached}, 0,
			"Experiment has succeeded because its trials have used its 9 GPU hours", "4.00"},
		"a node's clock that is ahead": {1, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, running), "1", -time.Minute), aTrial(1, running)}, adds(1), time.Hour, messageRunning, "0.00"},
		"trials from before it was set, and what is no number": {1, nil,
			[]*v1beta1.Trial{withGPUs(aTrial(0, running), "-3", time.Hour), withGPUs(aTrial(1, running), "many", time.Hour)}, adds(1), 0, messageRunning, "0.00"},
		"time is over first": {8, []func(*v1beta1.Experiment){since(50 * time.Minute)},
			[]*v1beta1.Trial{done, withGPUs(aTrial(1, running), "2", 30*time.Minute)}, adds(2), 10 * time.Minute, messageRunning, "4.00"},
		"GPUs are used up before time": {4, []func(*v1beta1.Experiment){since(50 * time.Minute)},
			[]*v1beta1.Trial{done, aTrial(1, running)}, outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: reached}, 0,
			"Experiment has succeeded because its trials have used its 4 GPU hours", "4.00"},
		"it does not go on while nothing is left": {4, []func(*v1beta1.Experiment){resume(v1beta1.LongRunning), endedBy(reached)},
			[]*v1beta1.Trial{done}, outcome{State: expDone, Reason: reached}, 0, "", "4.00"},
		"nor with more trials": {4, []func(*v1beta1.Experiment){resume(v1beta1.LongRunning), endedBy(v1beta1.ReasonExperimentMaxTrialsReached)},
			[]*v1beta1.Trial{done}, outcome{State: expDone, Reason: v1beta1.ReasonExperimentMaxTrialsReached}, 0, "", "4.00"},
		"it goes on with more hours": {5, []func(*v1beta1.Experiment){resume(v1beta1.LongRunning), endedBy(reached)},
			[]*v1beta1.Trial{done}, outcome{State: v1beta1.ExperimentRestarting, Reason: v1beta1.ReasonExperimentRestarting}, 0, messageRestarting, "4.00"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := anExperiment(append(tc.more, gpuHours(tc.limit))...)
			a := planned(exp, tc.trials, findings{}, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(a)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if c := current(&a.status); a.after != tc.after || c.Message != tc.says || a.status.GPUHours != tc.hours {
				t.Errorf("looked at again after %s, want %s; it used %q, want %q, and says %q", a.after, tc.after, a.status.GPUHours, tc.hours, c.Message)
			}
		})
	}
}

func TestTimeAloneChangesNoStatus(t *testing.T) {
	exp := anExperiment(gpuHours(100))
	trials := []*v1beta1.Trial{withGPUs(aTrial(0, succeeded), "4", time.Hour), withGPUs(aTrial(1, running), "4", time.Hour)}
	exp.Status = planned(exp, trials, findings{}, noon).status
	later := planned(exp, trials, findings{}, noon.Add(time.Hour)).status
	if differ, _ := differs(&exp.Status, &later); differ {
		t.Errorf("a write for nothing:\n%s", cmp.Diff(exp.Status, later))
	}
	exp.Spec.MaxGPUHours = nil
	if got := planned(exp, trials, findings{}, noon).status.GPUHours; got != "" {
		t.Errorf("without the budget it used %q", got)
	}
}

func TestTheStartOfAProgramIsNews(t *testing.T) {
	waits, runs := withGPUs(aTrial(0, running), "1", 0), withGPUs(aTrial(0, running), "1", time.Minute)
	if !stateChanged(waits, runs) || stateChanged(runs, runs.DeepCopy()) {
		t.Error("it does not wake the experiment, or always")
	}
}

func TestTrialsSayTheirGPUsWhereTheyCount(t *testing.T) {
	template := []byte(`{"apiVersion":"batch/v1","kind":"Job","spec":{"parallelism":2,"template":{"spec":{"containers":[
		{"name":"c","resources":{"limits":{"nvidia.com/gpu":"${trialParameters.layers}"}}}]}}}}`)
	for want, limit := range map[string]func(*v1beta1.Experiment){"": func(*v1beta1.Experiment) {}, "6": gpuHours(1)} {
		exp := conditional()
		exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialParameters: []v1beta1.TrialParameterSpec{{Name: "layers", Reference: "layers"}}}
		exp.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
		limit(exp)
		trial, err := newTrial(exp, template, 0, study.Proposal{Assignments: assigned("model", "mlp", "layers", "3")})
		if err != nil {
			t.Fatal(err)
		}
		if got, set := trial.Annotations[v1beta1.AnnotationGPUs]; got != want || set != (want != "") {
			t.Errorf("it has %q GPUs, want %q", got, want)
		}
	}
}
