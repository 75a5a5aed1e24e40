package main

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// curves is a store with one trial: loss of two attempts, the second of one step
// only, and acc without steps and times.
func curves(t *testing.T) (collector.Store, collector.TrialID) {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "points.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	trial := collector.TrialID{Namespace: "ns", Name: "e-0001", Experiment: "e", UID: "uid"}
	first, second := collector.Attempt{ID: "pod/0", Started: noon}, collector.Attempt{ID: "pod/1", Started: noon.Add(time.Hour)}
	point := func(metric string, step, seq int64, v float64, at time.Time) collector.Point {
		return collector.Point{Metric: metric, Step: step, Seq: seq, Value: v, Source: metric, Time: at}
	}
	for attempt, points := range map[collector.Attempt][]collector.Point{
		first: {
			point("loss", 0, 0, 4, noon), point("loss", 1, 1, 0.25, noon.Add(time.Second)), point("loss", 2, 2, 3, noon.Add(2*time.Second)),
			point("acc", collector.NoStep, 0, math.NaN(), time.Time{}),
		},
		second: {point("loss", 0, 0, 9, noon.Add(time.Hour))},
	} {
		if err := s.Append(t.Context(), trial, attempt, points); err != nil {
			t.Fatal(err)
		}
	}
	return s, trial
}

func TestCurves(t *testing.T) {
	s, trial := curves(t)
	tests := map[string]struct {
		options curveOptions
		metrics []string
		want    string
		said    string
	}{
		"all that there is": {curveOptions{output: "table", points: 100}, nil, `
METRIC   ATTEMPT   STEP   TIME (UTC)            VALUE
acc      1                                      NaN
loss     1         0      2026-11-21 12:00:00   4
loss     1         1      2026-11-21 12:00:01   0.25
loss     1         2      2026-11-21 12:00:02   3
loss     2         0      2026-11-21 13:00:00   9
`, ""},
		"one metric, condensed": {curveOptions{output: "table", points: 2}, []string{"loss"}, `
ATTEMPT   STEP   TIME (UTC)            VALUE   MIN    MAX   POINTS
1         1      2026-11-21 12:00:01   0.25    0.25   4     2
1         2      2026-11-21 12:00:02   3       3      3     1
2         0      2026-11-21 13:00:00   9       9      9     1
`, "3 rows stand for 4 points: --points 0 shows all\n"},
		"metrics in the order asked for": {curveOptions{output: "csv", points: 100}, []string{"loss", "acc"}, `
metric,attempt,step,time,value,min,max,points
loss,1,0,2026-11-21T12:00:00Z,4,4,4,1
loss,1,1,2026-11-21T12:00:01Z,0.25,0.25,0.25,1
loss,1,2,2026-11-21T12:00:02Z,3,3,3,1
loss,2,0,2026-11-21T13:00:00Z,9,9,9,1
acc,1,,,NaN,NaN,NaN,1
`, ""},
		"each point as it is read": {curveOptions{output: "csv"}, []string{"loss", "acc"}, `
metric,attempt,step,time,value,min,max,points
loss,2,0,2026-11-21T13:00:00Z,9,9,9,1
acc,1,,,NaN,NaN,NaN,1
loss,1,0,2026-11-21T12:00:00Z,4,4,4,1
loss,1,1,2026-11-21T12:00:01Z,0.25,0.25,0.25,1
loss,1,2,2026-11-21T12:00:02Z,3,3,3,1
`, ""},
		"each point of one metric": {curveOptions{output: "table"}, []string{"loss"}, `
ATTEMPT   STEP   TIME (UTC)            VALUE
1         0      2026-11-21 12:00:00   4
1         1      2026-11-21 12:00:01   0.25
1         2      2026-11-21 12:00:02   3
2         0      2026-11-21 13:00:00   9
`, ""},
		"one without steps and times, as JSON": {curveOptions{output: "json", points: 5}, []string{"acc"}, `
[
  {
    "metric": "acc",
    "attempt": 1,
    "points": [
      {
        "step": null,
        "time": null,
        "value": "NaN",
        "min": "NaN",
        "max": "NaN",
        "points": 1
      }
    ]
  }
]
`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, said bytes.Buffer
			if err := tc.options.print(t.Context(), s, trial, tc.metrics, streams{out: &out, err: &said}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, "\n"+out.String()); diff != "" || said.String() != tc.said {
				t.Errorf("said %q, want %q; printed (-want +got):\n%s", said.String(), tc.said, diff)
			}
		})
	}
}

func TestCurvesThatAreNotThere(t *testing.T) {
	s, trial := curves(t)
	other := trial
	other.UID = "another"
	tests := map[string]struct {
		trial   collector.TrialID
		metrics []string
		want    string
	}{
		"a mistyped metric": {trial, []string{"los", "acc", "f1"}, "trial e-0001 has no points of los (did you mean loss?), no points of f1; it has acc, loss"},
		"no points":         {other, nil, "no points of trial e-0001 are stored"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := curveOptions{points: 10}.print(t.Context(), s, tc.trial, tc.metrics, streams{out: &out})
			if exitCode(err) != exitNotFound || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
				t.Errorf("code %d: %v, want %q; printed %q", exitCode(err), err, tc.want, out.String())
			}
		})
	}
}

func TestCurveSaysWhatIsWrongWithItsArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no trial":              {nil, "write curve EXPERIMENT/TRIAL [METRIC...]"},
		"too few rows":          {[]string{"e/1", "--points", "1"}, "--points 1: write 2 to 65536, or 0 for all points"},
		"another format":        {[]string{"e/1", "-o", "yaml"}, "write table, json or csv"},
		"no instance, no store": {[]string{"e/1"}, "--store: name a store"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := newCurveCommand(nil, noInstanceStore)
			cmd.SetArgs(append([]string{}, tc.args...))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.ExecuteContext(t.Context()); exitCode(err) != exitUsage || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("code %d: %v, want %q", exitCode(err), err, tc.want)
			}
		})
	}
}
