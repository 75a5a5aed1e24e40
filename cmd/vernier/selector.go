package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A target names an experiment, and perhaps one of its trials: "EXPERIMENT",
// "EXPERIMENT/12", "EXPERIMENT/best", "EXPERIMENT/latest" or
// "EXPERIMENT/EXPERIMENT-0012".
type target struct {
	Experiment types.NamespacedName
	// Trial is a number, "best", "latest", a trial's name, or "".
	Trial string
}

func parseTarget(text, namespace string) (target, error) {
	experiment, trial, found := strings.Cut(text, "/")
	if experiment == "" || (found && trial == "") || strings.Contains(trial, "/") {
		return target{}, usageErrorf("%q does not name an experiment or a trial: write EXPERIMENT, EXPERIMENT/12, EXPERIMENT/best or EXPERIMENT/TRIAL-NAME", text)
	}
	return target{
		Experiment: types.NamespacedName{Namespace: namespace, Name: experiment},
		Trial:      trial,
	}, nil
}

// find returns the trial that the target names.
func (t target) find(v experimentView) (trialView, error) {
	switch t.Trial {
	case "best":
		if best, ok := v.best(); ok {
			return best, nil
		}
		return trialView{}, notFoundErrorf("experiment %q has no best trial: %s", t.Experiment.Name, whyNoBest(v))
	case "latest":
		if n := len(v.Trials); n > 0 {
			return v.Trials[n-1], nil
		}
		return trialView{}, notFoundErrorf("experiment %q has no trials yet", t.Experiment.Name)
	}
	number, err := strconv.Atoi(t.Trial)
	for _, trial := range v.Trials {
		if trial.Name == t.Trial || (err == nil && trial.Number == number) {
			return trial, nil
		}
	}
	return trialView{}, notFoundErrorf("experiment %q has no trial %q: it has %s", t.Experiment.Name, t.Trial, trialRange(v))
}

// findTrial is the trial that a text names, which must not name an experiment.
func findTrial(ctx context.Context, c client.Client, text, namespace string) (types.NamespacedName, trialView, error) {
	t, err := parseTarget(text, namespace)
	if err != nil {
		return types.NamespacedName{}, trialView{}, err
	}
	if t.Trial == "" {
		return types.NamespacedName{}, trialView{}, usageErrorf("name a trial: %s/12, %s/best or %s/latest", text, text, text)
	}
	view, err := loadExperiment(ctx, c, t.Experiment)
	if err != nil {
		return types.NamespacedName{}, trialView{}, err
	}
	found, err := t.find(view)
	return types.NamespacedName{Namespace: t.Experiment.Namespace, Name: found.Name}, found, err
}

func trialRange(v experimentView) string {
	if len(v.Trials) == 0 {
		return "none yet"
	}
	first, last := v.Trials[0], v.Trials[len(v.Trials)-1]
	return fmt.Sprintf("%d, %s to %s", len(v.Trials), first.Name, last.Name)
}
