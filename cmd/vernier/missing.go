package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// lacks says which wanted metrics the first trial that succeeded without them has
// no value of, and what its collector says there is; empty when there is none.
// The name is most often mistyped, and no other trial will have it either.
func (v experimentView) lacks() string {
	for _, t := range v.Trials {
		if t.State != string(v1beta1.TrialSucceeded) {
			continue
		}
		names := v.lacking(t)
		if len(names) == 0 {
			continue
		}
		text := fmt.Sprintf("trial %s has no value of %s", t.Name, strings.Join(names, ", "))
		if _, said, ok := strings.Cut(t.Message, v1beta1.CollectorSays); ok {
			text += ": " + said
		}
		return text
	}
	return ""
}

// lacksYet is what the collector of the first running trial did not find so far; empty
// when a trial has all wanted metrics, since the names are right then.
func (v experimentView) lacksYet() (text string) {
	for _, t := range v.Trials {
		if len(t.Metrics) > 0 && len(v.lacking(t)) == 0 {
			return ""
		}
		if text == "" && t.Lacks != "" {
			text = fmt.Sprintf("trial %s: %s", t.Name, t.Lacks)
		}
	}
	return text
}

func (v experimentView) lacking(t trialView) (names []string) {
	wanted := v.shownMetrics()
	for _, m := range t.Metrics {
		if !slices.Contains(wanted, m.Name) {
			wanted = append(wanted, m.Name)
		}
	}
	for _, name := range wanted {
		if value := t.metric(name); value == "" || value == collector.Unavailable {
			names = append(names, name)
		}
	}
	return names
}
