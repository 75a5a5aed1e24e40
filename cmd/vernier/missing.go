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
