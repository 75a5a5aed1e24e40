package parse

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
)

// got is the part of a sample that most tests speak of.
type got struct {
	Metric string
	Value  float64
	Text   string
	Offset int
}

func brief(samples []collector.Point) []got {
	var out []got
	for _, s := range samples {
		out = append(out, got{s.Metric, s.Value, s.Text, int(s.Seq)})
	}
	return out
}

// lineCase is a line, and what a parser finds in it.
type lineCase struct {
	metrics []string // default: loss
	filters []string // of Text alone
	line    string
	want    []got
	wantErr string // a part of it; empty: there is no error
}

// checkLines reads each line with a parser of its own.
func checkLines(t *testing.T, parser func(t testing.TB, tc lineCase) Line, tests map[string]lineCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.metrics == nil {
				tc.metrics = []string{"loss"}
			}
			samples, err := parser(t, tc).Parse(nil, []byte(tc.line))
			if diff := cmp.Diff(tc.want, brief(samples), cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
			if tc.wantErr == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
}

// stepCase is a line with one value of loss, and the step and the time that it
// states.
type stepCase struct {
	line string
	step int64
	time time.Time
}

// checkStepsAndTimes reads each line with a parser of loss of its own.
func checkStepsAndTimes(t *testing.T, parser func(t testing.TB) Line, tests map[string]stepCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			samples, err := parser(t).Parse(nil, []byte(tc.line))
			if err != nil || len(samples) != 1 {
				t.Fatalf("got %d samples, error %v", len(samples), err)
			}
			if s := samples[0]; s.Step != tc.step || !s.Time.Equal(tc.time) {
				t.Errorf("got step %d and time %v, want %d and %v", s.Step, s.Time, tc.step, tc.time)
			}
		})
	}
}
