package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// target names an experiment and perhaps one of its trials: "EXPERIMENT",
// "EXPERIMENT/12", "EXPERIMENT/best", "EXPERIMENT/latest" or
// "EXPERIMENT/EXPERIMENT-0012".
type target struct {
	Experiment string
	// Trial is a number, "best", "latest", a trial's name, or "".
	Trial string
}

func parseTarget(text string) (target, error) {
	experiment, trial, found := strings.Cut(text, "/")
	if experiment == "" || (found && trial == "") || strings.Contains(trial, "/") {
		return target{}, usageErrorf("%q does not name an experiment or a trial: write EXPERIMENT, EXPERIMENT/12, EXPERIMENT/best or EXPERIMENT/TRIAL-NAME", text)
	}
	return target{Experiment: experiment, Trial: trial}, nil
}

func (t target) find(v experimentView) (trialView, error) {
	switch t.Trial {
	case "best":
		if best, ok := v.best(); ok {
			return best, nil
		}
		return trialView{}, notFoundErrorf("experiment %q has no best trial: %s", t.Experiment, whyNoBest(v))
	case "latest":
		if n := len(v.Trials); n > 0 {
			return v.Trials[n-1], nil
		}
		return trialView{}, notFoundErrorf("experiment %q has no trials yet", t.Experiment)
	}
	number, err := strconv.Atoi(t.Trial)
	for _, trial := range v.Trials {
		if trial.Name == t.Trial || (err == nil && trial.Number == number) {
			return trial, nil
		}
	}
	return trialView{}, notFoundErrorf("experiment %q has no trial %q: it has %s", t.Experiment, t.Trial, trialRange(v))
}

func (s *session) findTrial(ctx context.Context, text string) (trialView, error) {
	t, err := parseTarget(text)
	if err != nil {
		return trialView{}, err
	}
	if t.Trial == "" {
		return trialView{}, usageErrorf("name a trial: %s/12, %s/best or %s/latest", text, text, text)
	}
	view, err := loadExperiment(ctx, s.client, s.key(t.Experiment))
	if err != nil {
		return trialView{}, err
	}
	found, err := t.find(view)
	if err == nil && found.Object == nil {
		err = notFoundErrorf("trial %s was deleted", found.Name)
	}
	return found, err
}

func trialRange(v experimentView) string {
	if len(v.Trials) == 0 {
		return "none yet"
	}
	first, last := v.Trials[0], v.Trials[len(v.Trials)-1]
	return fmt.Sprintf("%d, %s to %s", len(v.Trials), first.Name, last.Name)
}
