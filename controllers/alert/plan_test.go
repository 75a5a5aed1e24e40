package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func at(minutes int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
}

// running is an experiment that runs since noon.
func running(change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp", UID: "u", CreationTimestamp: at(0)}, Spec: v1beta1.ExperimentSpec{
		Objective: &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}, TrialTemplate: &v1beta1.TrialTemplate{},
	}}
	e.MarkCreated("Experiment is created", at(0))
	e.MarkRunning("Experiment is running", at(0))
	for _, f := range change {
		f(e)
	}
	return e
}

// with is a trial that began at a minute, and whose newest loss is a text; "": none.
func with(number, minute int, loss string) *v1beta1.Trial {
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.TrialName("exp", number)}}
	t.MarkCreated("Trial is created", at(minute))
	t.MarkRunning("Trial is running", at(minute))
	if loss != "" {
		t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "0.5", Max: "1", Latest: loss}}}
	}
	return t
}

func TestWhatThereIsToTell(t *testing.T) {
	waits := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "exp-0001"}}
	waits.MarkCreated("Trial waits: there is no kind X", at(1))
	unschedulable := with(1, 1, "")
	unschedulable.LastCondition().Message += ". pod p finds no node"
	nameless := with(1, 1, "")
	nameless.LastCondition().Message += ". " + v1beta1.CollectorSays + "so far acc was not found"
	best := func(e *v1beta1.Experiment) {
		e.Status.CurrentOptimalTrial = v1beta1.OptimalTrial{BestTrialName: "exp-0000", Observation: v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "0.1", Max: "1", Latest: "0.2"}}}}
	}
	for name, c := range map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		now    int
		want   []string // reason, mark, trial, minute, and a part of the message
	}{
		"nothing":                  {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "0.5")}, now: 30},
		"a trial has diverged":     {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "0.5"), with(1, 2, "NaN")}, now: 3, want: []string{"TrialDiverged 1 exp-0001 2 loss of trial exp-0001 is NaN: it has diverged"}},
		"to infinity":              {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "-inf")}, now: 3, want: []string{"TrialDiverged 1 exp-0000 1 is -inf"}},
		"three are told of as two": {exp: running(), trials: []*v1beta1.Trial{with(0, 4, "nan"), with(1, 2, "nan"), with(2, 3, "nan")}, now: 5, want: []string{"TrialDiverged 2 exp-0000 4 3 of 3 trials have diverged"}},
		"a text is no divergence":  {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "Genotype(...)")}, now: 3},
		"nothing happens":          {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "")}, now: 61, want: []string{"ExperimentStalled 1893585660  61 since 2030-01-02T12:01:00Z. Experiment is running"}},
		"not long yet":             {exp: running(), trials: []*v1beta1.Trial{with(0, 1, "")}, now: 60},
		"long enough for this one": {exp: running(stalledIn("10m")), trials: []*v1beta1.Trial{with(0, 1, "")}, now: 11, want: []string{"ExperimentStalled 1893585660  11 "}},
		"it may take for ever":     {exp: running(stalledIn("0")), trials: []*v1beta1.Trial{with(0, 1, "")}, now: 9999},
		"a setting that is wrong":  {exp: running(stalledIn("soon")), trials: []*v1beta1.Trial{with(0, 1, "")}, now: 61, want: []string{"ExperimentStalled 1893585660  61 "}},
		"no job can be made":       {exp: running(), trials: []*v1beta1.Trial{waits}, now: 90, want: []string{"ExperimentStalled 1893585660  61 Trial exp-0001 waits: there is no kind X"}},
		"nothing can be scheduled": {exp: running(), trials: []*v1beta1.Trial{with(0, 1, ""), unschedulable}, now: 90, want: []string{"ExperimentStalled 1893585660  61 Trial exp-0001 waits: pod p finds no node"}},
		"a metric is not found":    {exp: running(), trials: []*v1beta1.Trial{nameless}, now: 90, want: []string{"ExperimentStalled 1893585660  61 . Trial exp-0001: The collector says: so far acc was not found"}},
		"no trial yet":             {exp: running(), now: 60, want: []string{"ExperimentStalled 1893585600  60 "}},
		"a trial reports": {exp: running(), now: 90, trials: []*v1beta1.Trial{func() *v1beta1.Trial {
			tr := with(0, 1, "0.5")
			last := at(50)
			tr.Status.LastReconcileTime = &last
			return tr
		}()}},
		"it is suspended":       {exp: running(func(e *v1beta1.Experiment) { e.Spec.Suspend = true }), now: 90},
		"it was resumed":        {exp: running(says("Experiment is running", 100)), trials: []*v1beta1.Trial{with(0, 1, "0.5")}, now: 159},
		"and then does nothing": {exp: running(says("Experiment is running", 100)), trials: []*v1beta1.Trial{with(0, 1, "0.5")}, now: 160, want: []string{"ExperimentStalled 1893591600  160 "}},
		"what holds it up changes": {exp: running(says(v1beta1.MessageHeldUp+"connection refused", 60)), trials: []*v1beta1.Trial{with(0, 1, "0.5")}, now: 61,
			want: []string{"ExperimentStalled 1893585660  61 connection refused"}},
		"its trials run outside": {exp: running(func(e *v1beta1.Experiment) { e.Spec.TrialTemplate = nil }), now: 90},
		"its goal": {exp: running(best, func(e *v1beta1.Experiment) {
			e.MarkSucceeded(v1beta1.ReasonExperimentGoalReached, "Experiment has succeeded", at(7))
		}), now: 90, want: []string{"GoalReached 1893586020 exp-0000 7 Experiment has succeeded. The best trial is exp-0000: loss min=0.1 max=1 latest=0.2"}},
		"its end": {exp: running(func(e *v1beta1.Experiment) {
			e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "Experiment has succeeded", at(7))
		}), now: 90, want: []string{"ExperimentEnded 1893586020  7 Experiment has succeeded"}},
		"its interruption": {exp: running(func(e *v1beta1.Experiment) {
			e.Spec.MaxTrialCount, e.Annotations = ptr.To[int32](4), map[string]string{v1beta1.AnnotationInterrupted: "4 of 24"}
			e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "Experiment has succeeded", at(7))
		}), now: 90, want: []string{"ExperimentEnded 1893586020  7 It was interrupted: 4 of 24 trials ran"}},
		"its failure, and what diverged": {exp: running(func(e *v1beta1.Experiment) {
			e.MarkFailed(v1beta1.ReasonExperimentFailed, "All have failed", at(7))
		}), trials: []*v1beta1.Trial{with(0, 1, "NaN")}, now: 90, want: []string{"ExperimentFailed 1893586020  7 All have failed", "TrialDiverged 1 exp-0000 1 is NaN"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(c.exp, c.trials, at(c.now).Time)
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i, a := range got {
				says := strings.Join([]string{a.Reason, a.Mark, a.Trial, a.Time.Sub(noon).String(), a.Message}, " ")
				parts := strings.SplitN(c.want[i], " ", 5)
				minute, _ := time.ParseDuration(parts[3] + "m")
				head := strings.Join([]string{parts[0], parts[1], parts[2], minute.String()}, " ")
				if !strings.HasPrefix(says, head+" ") || !strings.Contains(a.Message, parts[4]) || a.ID != "u/"+parts[0]+"/"+parts[1] {
					t.Errorf("%s\n%+v\nwant %s", says, a, c.want[i])
				}
				if again := Of(c.exp, c.trials, at(c.now+1).Time); cmp.Diff(got, again) != "" {
					t.Errorf("a minute later it is another one: %s", cmp.Diff(got, again))
				}
			}
		})
	}
}

func stalledIn(text string) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Annotations = map[string]string{v1beta1.AnnotationStalledAfter: text}
	}
}

// says is what the newest condition says since a minute.
func says(message string, minute int) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		c := e.LastCondition()
		c.Message, c.LastUpdateTime = message, at(minute)
	}
}
