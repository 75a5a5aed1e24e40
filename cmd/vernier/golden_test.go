package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/plot"
)

var update = flag.Bool("update", false, "write the golden files and docs/cli-reference.md")

// aSearch has what is hard to show: a long value, a trial that failed, one that runs,
// and one that waits.
func aSearch() experimentView {
	e := anExperiment()
	e.CreationTimestamp = metav1.NewTime(noon)
	e.Spec.Parameters = append(e.Spec.Parameters,
		v1beta1.ParameterSpec{Name: "optimizer", ParameterType: v1beta1.ParameterTypeCategorical},
		v1beta1.ParameterSpec{Name: "pretrained", ParameterType: v1beta1.ParameterTypeCategorical})
	point := func(trial v1beta1.Trial, optimizer string) v1beta1.Trial {
		trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments,
			v1beta1.ParameterAssignment{Name: "optimizer", Value: optimizer},
			v1beta1.ParameterAssignment{Name: "pretrained", Value: "s3://models/large/2026-11-20/checkpoint-000120000"})
		return trial
	}
	waits := point(aTrial(4, v1beta1.TrialRunning, ""), "sgd")
	waits.Status.Conditions[1].Message = "Trial is running. pod p finds no node (0/1 nodes are available: 1 Insufficient nvidia.com/gpu.): request less"
	trials := []v1beta1.Trial{
		point(aTrial(0, v1beta1.TrialSucceeded, "2.25"), "adam"),
		point(aTrial(1, v1beta1.TrialFailed, ""), "adamw"),
		point(aTrial(2, v1beta1.TrialSucceeded, "1.0625"), "学习"),
		point(aTrial(3, v1beta1.TrialRunning, "1.75"), "sgd"),
		waits,
	}
	return newExperimentView(withBest(e, trials[2]), trials)
}

// charted is a chart of a search in two parameters.
func charted(t *testing.T, make func(context.Context, *plotOptions, *session, experimentView) ([]plot.Chart, error), o *plotOptions, style plot.Style) []string {
	t.Helper()
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "width", ParameterType: v1beta1.ParameterTypeInt})
	var trials []v1beta1.Trial
	for i, loss := range []string{"3", "2.25", "1.0625", "1.5", "2.75"} {
		trial := aTrial(i, v1beta1.TrialSucceeded, loss)
		trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "width", Value: strconv.Itoa(64 - 7*i*i)})
		acc := fmt.Sprint(0.5 + float64(i)/20)
		trial.Status.Observation.Metrics[0] = v1beta1.Metric{Name: "acc", Min: acc, Max: acc, Latest: acc}
		trials = append(trials, trial)
	}
	charts, err := make(t.Context(), o, nil, newExperimentView(withBest(e, trials[2]), trials))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, chart := range charts {
		lines = append(lines, chart.Text(style)...)
	}
	return lines
}

// TestViewsLookAsIntended compares what is shown with golden files, which were looked at.
func TestViewsLookAsIntended(t *testing.T) {
	now := noon.Add(90 * time.Second)
	views := map[string]func() []string{
		"get_trials":      func() []string { return trialList(aSearch(), false, now).lines(false) },
		"get_trials_wide": func() []string { return trialList(aSearch(), true, now).lines(false) },
		"get_experiments": func() []string {
			return experimentTable([]v1beta1.Experiment{*aSearch().Experiment, *anEnded()}, true, now).lines(false)
		},
		"get_trials_80":   func() []string { return trialScreen(aSearch(), 80, false, false, now) },
		"get_trials_200":  func() []string { return trialScreen(aSearch(), 200, false, false, now) },
		"get_trials_dumb": func() []string { return trialScreen(aSearch(), 80, false, true, now) },
		"watch_dumb": func() []string {
			return (&plainDisplay{states: map[string]string{}, lastSummary: now}).update(aSearch(), now)
		},
	}
	styles := map[string]plot.Style{"80": {Width: 80, Height: 14}, "200": {Width: 200, Height: 14}, "dumb": {Width: 80, Height: 14, ASCII: true}, "color": {Width: 80, Height: 14, Color: true}}
	for name, style := range styles {
		views["plot_parallel_"+name] = func() []string { return charted(t, parallelCharts, &plotOptions{top: 2}, style) }
		views["plot_pareto_"+name] = func() []string { return charted(t, paretoCharts, &plotOptions{metric: "acc"}, style) }
	}
	for _, s := range []size{{40, 12}, {80, 24}, {200, 50}} {
		for color, suffix := range map[bool]string{true: "_color", false: ""} {
			views[fmt.Sprintf("watch_%d%s", s.width, suffix)] = func() []string { return frame(aSearch(), now, s, color) }
		}
	}
	for name, view := range views {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(strings.Join(view(), "\n"), "\x1b", "ESC") + "\n"
			path := filepath.Join("testdata", "views", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("look at it, then run with -update\n(-want +got):\n%s", diff)
			}
		})
	}
}
