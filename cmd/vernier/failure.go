package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// whyNone is why no trial has a result.
func whyNone(v experimentView, told bool) string {
	if text := firstFailure(v, told); text != "" {
		return text
	}
	for _, t := range v.Trials {
		if _, ok := t.score(); ok && !v.feasible(t) {
			return "; " + whyNoBest(v)
		}
		if t.notFinite() {
			return fmt.Sprintf("; %s of trial %s is %s, which is not a finite number", v.metricName(), t.Name, t.objective())
		}
	}
	if len(v.Trials) == 0 {
		return "; it has no trials"
	}
	if !slices.ContainsFunc(v.Trials, func(t trialView) bool { return t.State != string(v1beta1.TrialKilled) }) {
		return "; its trials were stopped"
	}
	return "; no trial has a value of " + v.metricName()
}

// firstFailure is the message of the first failed trial: most often all fail for
// the same reason.
func firstFailure(v experimentView, told bool) string {
	for _, t := range v.Trials {
		if isBad(t.State) && t.Message != "" && told {
			return fmt.Sprintf("; the first trial to fail was %s: its line above says why", t.Name)
		}
		if isBad(t.State) && t.Message != "" {
			return fmt.Sprintf("; the first trial to fail was %s: %s", t.Name, cause(t.Message))
		}
	}
	return ""
}

// brief is a message of the experiment without what it says of a trial, where
// firstFailure says as much.
func (v experimentView) brief(message string) string {
	text, newest, _ := strings.Cut(message, v1beta1.NewestSays)
	for _, t := range v.Trials {
		if isBad(t.State) && t.Message != "" {
			if strings.Contains(alike(newest), alike(cause(t.Message))) {
				return text
			}
			break
		}
	}
	return message
}

var numbered = regexp.MustCompile(`(?:\b(?:code|signal) )?\S*\d\S*`)

// alike is a message without what differs from trial to trial: the names of the trial and its
// pod, and the values of parameters. How a program ended is no such thing.
func alike(message string) string {
	return numbered.ReplaceAllStringFunc(message, func(text string) string {
		if strings.Contains(text, " ") {
			return text
		}
		return "#"
	})
}

// notFinite says that the objective was measured, and is NaN or infinite.
func (t trialView) notFinite() bool { return notFinite(t.objective()) }

func notFinite(text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && (math.IsNaN(v) || math.IsInf(v, 0))
}

// divergedTo is the last value of a metric, such as NaN, where the trial has ended and an
// earlier one counts; "" where the last value is finite.
func (t trialView) divergedTo(metric string) string {
	for _, m := range t.Metrics {
		if m.Name == metric && t.finished() && notFinite(m.last) && !notFinite(m.Value) {
			return m.last
		}
	}
	return ""
}

// divergence is " (the last value was NaN: it diverged)", or "".
func (t trialView) divergence(metric string) string {
	if last := t.divergedTo(metric); last != "" {
		return fmt.Sprintf(" (the last value was %s: it diverged)", last)
	}
	return ""
}

// neverBest is how a trial counts whose objective is not finite.
const neverBest = "not a finite number: the trial counts as done, and is never the best"

// divergedText is "; 2 trials have a loss that is not a finite number: ...".
func divergedText(v experimentView) string {
	n := 0
	for _, t := range v.Trials {
		if t.State == string(v1beta1.TrialSucceeded) && t.notFinite() {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; in 1 trial %s is %s", v.metricName(), neverBest)
	}
	return fmt.Sprintf("; in %d trials %s is not a finite number: these count as done, and are never the best", n, v.metricName())
}
