package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// editable are the fields of the spec that may change: Katib's, and those of time.
// Limits of a trial hold for new trials.
var editable = []string{
	"initialTrials", "maxDuration", "maxFailedTrialCount", "maxGPUHours", "maxTrialCount", "maxTrialDuration", "maxTrialWaitDuration", "parallelTrialCount", "suspend",
}

// validateUpdate says whether the spec has changed at all, and which changes
// are not allowed.
func validateUpdate(exp, old *v1beta1.Experiment) (changed bool, errs field.ErrorList) {
	fields, err := changedFields(exp, old)
	if err != nil {
		return true, field.ErrorList{field.InternalError(specPath(), err)}
	}
	if len(fields) == 0 {
		return false, nil
	}
	for _, name := range fields {
		if !slices.Contains(editable, name) {
			errs = append(errs, field.Forbidden(specPath().Child(name), "cannot be changed: only "+strings.Join(editable, ", ")+" can. Create a new experiment instead"))
		}
	}
	if !equality.Semantic.DeepEqual(withoutQueued(exp), withoutQueued(old)) {
		errs = append(errs, field.Forbidden(specPath().Child("initialTrials"), "cannot be changed, except for those with an id, which are queued: give a new one an id"))
	}
	if old.IsCompleted() && len(errs) == 0 { // limits that were not touched are not what is wrong
		errs = append(errs, validateRestart(exp, old)...)
	}
	return true, errs
}

// withoutQueued are the initial trials that were there from the beginning.
func withoutQueued(exp *v1beta1.Experiment) (out []v1beta1.InitialTrial) {
	for _, t := range exp.Spec.InitialTrials {
		if t.ID == "" {
			out = append(out, t)
		}
	}
	return out
}

func validateRestart(exp, old *v1beta1.Experiment) field.ErrorList {
	path := specPath().Child("maxTrialCount")
	if limit, used := exp.Spec.MaxGPUHours, old.Status.GPUHoursUsed(); old.CanResume() && limit != nil && used >= *limit {
		return field.ErrorList{field.Invalid(specPath().Child("maxGPUHours"), *limit, fmt.Sprintf("the trials have used %s GPU hours: raise maxGPUHours above that to go on", old.Status.GPUHours))}
	}
	if m := exp.Spec.MaxTrialCount; (old.CanResume() || old.FailedByTrials()) && m != nil && *m <= old.Status.Trials {
		return field.ErrorList{field.Invalid(path, *m, fmt.Sprintf("the experiment has %d trials already: raise maxTrialCount above that to go on", old.Status.Trials))}
	}
	if old.FailedByTrials() {
		bad, limit := old.Status.TrialsFailed+old.Status.TrialMetricsUnavailable, exp.Spec.MaxFailedTrialCount
		if limit != nil && *limit <= bad {
			return field.ErrorList{field.Invalid(specPath().Child("maxFailedTrialCount"), *limit, fmt.Sprintf("%d trials have failed: raise maxFailedTrialCount above that to go on", bad))}
		}
		return nil
	}
	if !old.CanResume() {
		return field.ErrorList{field.Forbidden(path, whyNoRestart(old))}
	}
	return nil
}

// doubtfulLimits says that new limits end the experiment, and stop what runs, as
// happens when a file with lower ones is applied again.
func doubtfulLimits(exp, old *v1beta1.Experiment) (warnings []string) {
	st := &old.Status
	active := st.TrialsPending + st.TrialsRunning
	if old.IsCompleted() || active == 0 {
		return nil
	}
	over, bad := st.Trials-active, st.TrialsFailed+st.TrialMetricsUnavailable
	switch total, failed := exp.Spec.MaxTrialCount, exp.Spec.MaxFailedTrialCount; {
	case failed != nil && bad > 0 && bad >= *failed:
		return []string{fmt.Sprintf("spec.maxFailedTrialCount: %d trials have failed or have no metrics already: the experiment fails now, and the %d trials that are active are stopped", bad, active)}
	case exp.Spec.MaxGPUHours != nil && st.GPUHoursUsed() >= *exp.Spec.MaxGPUHours:
		return []string{fmt.Sprintf("spec.maxGPUHours: the trials that have ended have used %s GPU hours already: the experiment ends now, and the %d trials that are active are stopped", st.GPUHours, active)}
	case total != nil && over >= *total:
		return []string{fmt.Sprintf("spec.maxTrialCount: %d trials have ended already: the experiment ends now, and the %d trials that are active are stopped", over, active)}
	}
	return nil
}

// uncounted says that the use of GPUs is counted from now on only.
func uncounted(exp, old *v1beta1.Experiment) (warnings []string) {
	if old.Status.Trials > 0 && old.Spec.MaxGPUHours == nil && exp.Spec.MaxGPUHours != nil {
		return []string{"spec.maxGPUHours: trials that were made while it was not set do not count"}
	}
	return nil
}

// whyNoRestart says what to do instead, too.
func whyNoRestart(old *v1beta1.Experiment) string {
	const anew = ": create a new experiment instead"
	c := old.Condition(v1beta1.ExperimentSucceeded)
	switch {
	case old.IsFailed() || c == nil:
		return "the experiment has failed and cannot go on" + anew
	case c.Reason == v1beta1.ReasonExperimentMaxDurationReached:
		return "the time of the experiment is over" + anew + "; its warmStartFrom can name this one"
	case c.Reason != v1beta1.ReasonExperimentMaxTrialsReached && c.Reason != v1beta1.ReasonExperimentMaxGPUHoursReached:
		return "the experiment has succeeded (" + c.Reason + ") and has nothing left to do" + anew
	default:
		return "the experiment has completed and its resumePolicy is Never" + anew + "; one with LongRunning or FromVolume can go on after its end"
	}
}

// SameSpec says whether two experiments have the same spec, as far as changedFields can
// tell, but for the points that were queued. b may have been created from a.
func SameSpec(a, b *v1beta1.Experiment) (bool, error) {
	a, b = a.DeepCopy(), b.DeepCopy()
	DefaultNamespace(a)
	keepKindDefaults(a, b)
	a.Spec.InitialTrials, b.Spec.InitialTrials = withoutQueued(a), withoutQueued(b)
	fields, err := changedFields(a, b)
	return len(fields) == 0, err
}

// changedFields lists the top-level fields of the spec that differ, sorted.
// Both are compared with their defaults and by meaning: how a template is
// spelled as JSON does not count.
func changedFields(exp, old *v1beta1.Experiment) ([]string, error) {
	now, err := specFields(exp)
	if err != nil {
		return nil, err
	}
	before, err := specFields(old)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(now)
	maps.Copy(names, before)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		return equality.Semantic.DeepEqual(now[name], before[name])
	}), nil
}

func specFields(exp *v1beta1.Experiment) (map[string]any, error) {
	exp = exp.DeepCopy()
	DefaultNamespace(exp)
	Default(exp)
	raw, err := json.Marshal(exp.Spec)
	if err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	return fields, nil
}
