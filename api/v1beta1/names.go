package v1beta1

import (
	"fmt"
	"strconv"
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
	// AnnotationMeta, on trials, holds what the algorithm wants back (JSON, an
	// object of strings).
	AnnotationMeta = "vernier.ml/meta"
	// AnnotationWhy, on trials, says in a sentence why their point was proposed.
	AnnotationWhy = "vernier.ml/why"
	// AnnotationResource, on trials, is how much of the resource the algorithm
	// gave the trial.
	AnnotationResource = "vernier.ml/resource"
	// AnnotationStop, on trials, asks that the trial be stopped; its value says
	// why. The trial becomes Killed.
	AnnotationStop = "vernier.ml/stop"
	// AnnotationStopEarly, on trials, asks that the trial be stopped as not worth
	// going on with; its value says why. The trial becomes EarlyStopped when its
	// pods have ended, with the observation of all that was reported.
	AnnotationStopEarly = "vernier.ml/stop-early"
	// AnnotationInterrupted, on experiments, is set when a user ends one early: the
	// maxTrialCount that it was lowered to and the one before, such as "4 of 24", or
	// "4" where there was none. It means nothing once maxTrialCount is another one.
	AnnotationInterrupted = "vernier.ml/interrupted"
	// AnnotationCollectorRate, on experiments, caps the points a second of each
	// metric of a trial that are kept in the long run: a whole number from 1 to
	// MaxCollectorRate, or CollectorRateOff. Default: the manager's. Trials get it
	// when they are made.
	AnnotationCollectorRate = "vernier.ml/collector-rate"
)

// Values of AnnotationCollectorRate.
const (
	MaxCollectorRate = 1_000_000
	CollectorRateOff = "off"
)

// CollectorRate is what the AnnotationCollectorRate of annotations says: 0 when it
// is not there, -1 for CollectorRateOff.
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

// Number is the trial's number; ok is false when its label holds none, as on a
// trial that was made by hand.
func (t *Trial) Number() (n int, ok bool) {
	n, err := strconv.Atoi(t.Labels[LabelTrialNumber])
	return n, err == nil && n >= 0
}
