package experiment

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// budget is one that ends an experiment while its trials run.
type budget struct {
	// left is how long until it is used up, if nothing changes.
	left time.Duration
	// What its end is called: after a trial had a result, and without one.
	reason, reached, withoutResult string
}

// firstToEnd is the budget that is used up first.
func firstToEnd(exp *v1beta1.Experiment, used gpuUse, now time.Time) (b budget, limited bool) {
	b, limited = ofTime(exp, now)
	if g, too := used.left(); too && (!limited || g.left < b.left) {
		return g, true
	}
	return b, limited
}

// ofTime counts since the experiment started, or went on after an end.
func ofTime(exp *v1beta1.Experiment, now time.Time) (b budget, limited bool) {
	limit, began := exp.Spec.MaxDuration, exp.Status.StartTime
	if limit == nil || limit.Duration == 0 || began == nil {
		return b, false
	}
	if c := exp.Condition(v1beta1.ExperimentRestarting); c != nil {
		began = &c.LastTransitionTime
	}
	return budget{
		left: began.Add(limit.Duration).Sub(now), reason: v1beta1.ReasonExperimentMaxDurationReached,
		reached: fmt.Sprintf(messageMaxDuration, limit.Duration), withoutResult: fmt.Sprintf(messageNoResult, "maxDuration", limit.Duration),
	}, true
}

// gpuUse is what the trials have used of GPUs, in hours.
type gpuUse struct {
	limit          *float64 // nil: nothing is counted
	ended, running float64
	// now is how many GPUs the trials have that run.
	now int
}

// noteGPUs writes on a trial how many it asks for, where that counts.
func noteGPUs(exp *v1beta1.Experiment, t *v1beta1.Trial, job *unstructured.Unstructured) {
	if exp.Spec.MaxGPUHours != nil {
		n := trainer.GPUs(job, kind.For(job.GroupVersionKind()))
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationGPUs, strconv.Itoa(n))
	}
}

func gpusUsed(exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) (u gpuUse) {
	if u.limit = exp.Spec.MaxGPUHours; u.limit == nil {
		return u
	}
	for _, t := range trials {
		n, began, ended := t.GPUs(), t.Status.ProgramStartTime, t.Status.CompletionTime
		if began == nil && ranUnseen(t) {
			began = t.Status.StartTime
		}
		switch {
		case n == 0 || began == nil: // it has not started
		case ended != nil:
			u.ended += float64(n) * max(0, ended.Sub(began.Time).Hours())
		default:
			u.running += float64(n) * max(0, now.Sub(began.Time).Hours())
			u.now += n
		}
	}
	return u
}

// ranUnseen says whether the trial's program has run, although its pods did not tell when
// it started. One that failed or was killed may only have waited.
func ranUnseen(t *v1beta1.Trial) bool {
	switch t.State() {
	case v1beta1.TrialSucceeded, v1beta1.TrialEarlyStopped, v1beta1.TrialMetricsUnavailable:
		return true
	}
	return false
}

// left is no limit while nothing is used: then a trial's start brings the next look.
func (u gpuUse) left() (b budget, limited bool) {
	if u.limit == nil {
		return b, false
	}
	rest := max(0, *u.limit-u.ended-u.running)
	if rest > 0 && u.now == 0 {
		return b, false
	}
	return budget{
		left: time.Duration(rest / float64(max(1, u.now)) * float64(time.Hour)), reason: v1beta1.ReasonExperimentMaxGPUHoursReached,
		reached: fmt.Sprintf(messageMaxGPUHours, *u.limit), withoutResult: fmt.Sprintf(messageNoResult, "maxGPUHours", *u.limit),
	}, true
}

// hours are those of the trials that have ended, for the status: what time alone changes
// is not written.
func (u gpuUse) hours() string {
	if u.limit == nil {
		return ""
	}
	return strconv.FormatFloat(u.ended, 'f', 2, 64)
}
