package script

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

var (
	// parameterField is a field of a parameter, whose last word is worth keeping.
	parameterField = regexp.MustCompile(`\bspec\.parameters\[(\d+)\](?:\.feasibleSpace)?(?:\.(\w+)(?:\.\w+|\[\d+\])*)?`)
	// objectiveField is a field of one objective, or of several.
	objectiveField = regexp.MustCompile(`\bspec\.objectives?(?:\[(\d+)\])?(?:\.(\w+)(?:\.\w+|\[\d+\])*)?`)
	otherField     = regexp.MustCompile(`\b(?:metadata|spec)(?:\.\w+(?:\[\d+\])?)+`)
)

// fieldFlags are the flags of vernier run by the beginnings of fields, the longest first.
var fieldFlags = []struct{ field, flag string }{
	{"spec.metricsCollectorSpec.source.filter", "--filter"}, {"spec.metricsCollectorSpec", "--metrics"},
	{"spec.algorithm.algorithmSettings", "--setting"}, {"spec.algorithm", "--algorithm"}, {"spec.earlyStopping.algorithmSettings", "--stopping-setting"}, {"spec.earlyStopping", "--stopping"}, {"spec.seed", "--seed"},
	{"spec.maxTrialCount", "--max-trials"}, {"spec.parallelTrialCount", "--parallel"}, {"spec.maxFailedTrialCount", "--max-failed of vernier edit"},
	{"spec.maxDuration", "--max-duration"}, {"spec.maxTrialDuration", "--max-trial-duration"}, {"spec.maxGPUHours", "--max-gpu-hours"},
	{"spec.constraints", "--constraint"}, {"spec.parameterConstraints", "--constraint"}, {"spec.trialTemplate.retry", "--retry"}, {"spec.warmStartFrom", "--warm-start"}, {"metadata.name", "--name"},
}

// Sentences is what is said of a trial in these words. It leaves alone what the trial's
// program printed.
func Sentences(e *v1beta1.Experiment, text string) string {
	if e.Annotations[Annotation] == "" {
		return text
	}
	return strings.NewReplacer(
		"the format that the experiment's metricsCollectorSpec says", "the format that --metrics says",
		"the format in the experiment's metricsCollectorSpec", "--metrics",
		"the filter in the experiment's metricsCollectorSpec", "give a --filter",
		"Set maxFailedTrialCount to allow more", "vernier edit "+e.Name+" --max-failed N allows more",
		"; on a cluster, set trialTemplate.retain to keep the pod", "", // it runs on this machine
	).Replace(text)
}

// InFlags is what is said of an experiment, in words of the command line that made it.
// An experiment that was made from a file keeps its own.
func InFlags(e *v1beta1.Experiment, text string) string {
	if e.Annotations[Annotation] == "" {
		return text
	}
	text = Sentences(e, text)
	text = parameterField.ReplaceAllStringFunc(text, func(field string) string {
		found := parameterField.FindStringSubmatch(field)
		i, err := strconv.Atoi(found[1])
		if err != nil || i >= len(e.Spec.Parameters) {
			return field
		}
		return strings.TrimSuffix("-p '"+Form(e.Spec.Parameters[i])+"', "+found[2], ", ")
	})
	text = objectiveField.ReplaceAllStringFunc(text, func(field string) string {
		found := objectiveField.FindStringSubmatch(field)
		i, _ := strconv.Atoi(found[1]) // without a number it is the first
		all := e.Spec.AllObjectives()
		switch {
		case i >= len(all) || found[2] == "additionalMetricNames":
			return field
		case found[2] == "goal":
			return "--goal"
		}
		return "--" + string(all[i].Type) + " " + all[i].ObjectiveMetricName
	})
	text = otherField.ReplaceAllStringFunc(text, func(field string) string {
		for _, f := range fieldFlags {
			if rest, found := strings.CutPrefix(field, f.field); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return f.flag
			}
		}
		return field
	})
	return strings.NewReplacer("maxTrialCount", "--max-trials", "parallelTrialCount", "--parallel", "maxFailedTrialCount", "--max-failed of vernier edit").Replace(text)
}
