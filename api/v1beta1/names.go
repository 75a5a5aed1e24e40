package v1beta1

import (
	"cmp"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations of the objects of this package. Those of Katib keep
// its prefix; our own begin with vernier.ml/.
const (
	// LabelExperiment, on trials, suggestions, jobs and pods, names the experiment.
	LabelExperiment = "katib.kubeflow.org/experiment"
	// LabelTrial, on jobs and pods, names the trial.
	LabelTrial = "katib.kubeflow.org/trial"
	// LabelTrialNumber, on trials, is the trial's number, counted from 0.
	LabelTrialNumber = "vernier.ml/trial-number"
	// AnnotationMeta, on trials, holds the algorithm's own data (a JSON object of
	// strings).
	AnnotationMeta = "vernier.ml/meta"
	// AnnotationAsked, on trials, is what the algorithm was asked and knew when it
	// proposed them, as JSON: vernier replay asks it again.
	AnnotationAsked = "vernier.ml/asked"
	// AnnotationWhy, on trials, is a sentence about why their point was proposed.
	AnnotationWhy = "vernier.ml/why"
	// AnnotationSeed, on trials, is what they train with: ${trialSeed} in the template and
	// the variable VERNIER_TRIAL_SEED, a whole number from 0 to 2^31-1.
	AnnotationSeed = "vernier.ml/seed"
	// AnnotationTraceparent is on a Trial that is traced: W3C's name of the span that
	// created it.
	AnnotationTraceparent = "vernier.ml/traceparent"
	// AnnotationResource, on trials, is the resource that the algorithm gave the
	// trial.
	AnnotationResource = "vernier.ml/resource"
	// AnnotationGPUs, on trials of experiments with maxGPUHours, is how many GPUs their
	// pods ask for.
	AnnotationGPUs = "vernier.ml/gpus"
	// AnnotationStop, on trials, requests that the trial be stopped; its value is
	// the reason. The trial becomes Killed.
	AnnotationStop = "vernier.ml/stop"
	// AnnotationStopEarly, on trials, requests that the trial be stopped early; its
	// value is the reason. The trial becomes EarlyStopped when its pods have ended,
	// with the observation of everything that was reported.
	AnnotationStopEarly = "vernier.ml/stop-early"
	// AnnotationInterrupted, on experiments, is set when a user ends one early: the
	// lowered maxTrialCount and the previous one, such as "4 of 24", or "4" if there
	// was none. It is void once maxTrialCount changes again.
	AnnotationInterrupted = "vernier.ml/interrupted"
	// AnnotationEnd, on experiments, ends them at a user's wish: EndStop once the trials
	// that run have ended, EndCancel at once. Nothing takes it back.
	AnnotationEnd = "vernier.ml/end"
	// AnnotationNotes, on experiments and trials, is text for people, Markdown.
	AnnotationNotes = "vernier.ml/notes"
	// AnnotationTags, on experiments and trials, are words to find them by, separated by
	// commas.
	AnnotationTags = "vernier.ml/tags"
	// AnnotationCollector begins the names of annotations about the collectors of
	// trials. Trials get those of their experiment when they are created. Those of
	// CollectorResources may be on namespaces too; the experiment's take precedence.
	AnnotationCollector = "vernier.ml/collector-"
	// AnnotationCollectorRate, on experiments, caps how many points per second of
	// each metric of a trial are kept in the long run: a whole number from 1 to
	// MaxCollectorRate, or CollectorRateOff. Default: the manager's.
	AnnotationCollectorRate = AnnotationCollector + "rate"
	// AnnotationStalledAfter, on experiments, is how long nothing may happen in one before
	// there is an alert, such as "2h"; "0": for ever. Default: one hour.
	AnnotationStalledAfter = "vernier.ml/stalled-after"
	// AnnotationAlerts, on experiments, names the entries of the Secret SecretAlerts that
	// get its alerts, separated by commas; empty: none. Default: all.
	AnnotationAlerts = "vernier.ml/alerts"
	// AnnotationAlertsSent, on experiments, has the marks of the alerts that were sent (a
	// JSON object by entry and reason).
	AnnotationAlertsSent = "vernier.ml/alerts-sent"
	// AnnotationOrigin, on objects that were restored from a backup, is the UID that
	// they were first created with.
	AnnotationOrigin = "vernier.ml/origin"
)

// SecretAlerts is the Secret of a namespace that says where its alerts are sent.
const SecretAlerts = "vernier-alerts"

// Origin is the UID with which an object was first created. Its own is another one if
// it was restored from a backup.
func Origin(o *metav1.ObjectMeta) types.UID {
	return types.UID(cmp.Or(o.Annotations[AnnotationOrigin], string(o.UID)))
}

// Values of AnnotationEnd.
const (
	EndStop   = "stop"
	EndCancel = "cancel"
)

// Values of AnnotationCollectorRate.
const (
	MaxCollectorRate = 1_000_000
	CollectorRateOff = "off"
)

// CollectorRate parses AnnotationCollectorRate: 0 if it is absent, -1 for
// CollectorRateOff.
func CollectorRate(annotations map[string]string) (int64, error) {
	text, set := annotations[AnnotationCollectorRate]
	switch {
	case !set:
		return 0, nil
	case text == CollectorRateOff:
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxCollectorRate {
		return 0, fmt.Errorf("the points a second of each metric that are kept must be a whole number from 1 to %d, or %s for all", MaxCollectorRate, CollectorRateOff)
	}
	return n, nil
}

// TrialName is the name of the trial of an experiment with the given number. It
// has at least four digits, so that names sort.
func TrialName(experiment string, number int) string {
	return fmt.Sprintf("%s-%04d", experiment, number)
}

// Number is the trial's number; ok is false if its label has none, as on a trial
// that was created by hand.
func (t *Trial) Number() (n int, ok bool) {
	n, err := strconv.Atoi(t.Labels[LabelTrialNumber])
	return n, err == nil && n >= 0
}

// GPUs is how many the trial's pods ask for, if its experiment counts them.
func (t *Trial) GPUs() int {
	n, _ := strconv.Atoi(t.Annotations[AnnotationGPUs]) // what we did not write is none
	return max(0, n)
}

// GPUHoursUsed is GPUHours as a number; 0 where it is not counted.
func (s *ExperimentStatus) GPUHoursUsed() float64 {
	used, _ := strconv.ParseFloat(s.GPUHours, 64) // what we did not write is none
	return used
}

// The labels of the Deployment and the pod of an algorithm's service, as Katib's.
const (
	LabelSuggestion = "katib.kubeflow.org/suggestion"
	LabelDeployment = "katib.kubeflow.org/deployment"
)

// The port of an algorithm's service, as Katib's.
const (
	SuggestionPort     = 6789
	SuggestionPortName = "suggestion-api"
)

// ServiceName is the name of the Deployment and the Service of an algorithm, as Katib's.
func ServiceName(experiment string, a *AlgorithmSpec) string { return VolumeClaimName(experiment, a) }
