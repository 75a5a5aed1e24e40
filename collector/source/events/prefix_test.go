package events

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestAMetricIsFoundAmongAnyNumberOfTags(t *testing.T) {
	var tags []string
	for i := range maxPlaces + 1 {
		tags = append(tags, fmt.Sprintf("weights/%d=1", i))
	}
	dir := t.TempDir()
	sourcetest.Put(t, dir, "events.out.tfevents.1700000000.host", sourcetest.EventFile(1.7e9, append(tags, "accuracy_1=0.5")...))
	points, errs := sourcetest.Collected(t, newEvents(t, dir, sourcetest.Closed(), "accuracy", "loss"))
	if len(points) != 1 || points[0].Metric != "accuracy" || points[0].Value != 0.5 {
		t.Errorf("points %v", points)
	}
	if len(errs) != 2 || !strings.Contains(errs[1], "loss was not found") || len(errs[1]) > 100*maxTags {
		t.Errorf("errors %.200q", errs)
	}
}

func TestTheLookForAMissingMetricEndsWithTheReading(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		sourcetest.Put(t, dir, fmt.Sprintf("events.out.tfevents.170000000%d.host", n), sourcetest.EventFile(1.7e9+float64(n), fmt.Sprintf("loss_1=%d", n)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	read := 0
	for _, err := range newEvents(t, dir, sourcetest.Closed(), "loss").Points(ctx) {
		if last = err; err == nil {
			read++
			cancel()
		}
	}
	if read != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d points were read, the last error is %v", read, last)
	}
}

// A program that goes on for hours is not waited for to say that a name is wrong.
func TestWhatIsNotFoundIsSaidWhileTheProgramRuns(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		// every minute the program writes one of these.
		tags []string
		want []string
	}{
		"after two minutes, once":         {[]string{"acc"}, []string{"lr", "lr", "lr", "lr", "loss"}, []string{"so far acc was not found; there is lr"}},
		"again when less is missing":      {[]string{"acc", "f1"}, []string{"lr", "lr", "lr", "f1"}, []string{"so far acc was not found; f1 was not found; there is lr", "so far acc was not found; there is lr"}},
		"what has come is not said":       {[]string{"acc"}, []string{"lr", "acc", "lr", "lr"}, nil},
		"what Katib would take":           {[]string{"acc"}, []string{"lr", "acc_1", "lr", "lr"}, nil},
		"nothing while there is no value": {[]string{"acc"}, []string{"", "", "", "", ""}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir, drain, now := t.TempDir(), make(chan struct{}), time.Unix(1_700_000_000, 0)
			path := filepath.Join(dir, "events.out.tfevents.1700000000.host")
			sourcetest.Append(t, path, sourcetest.EventFile(1.7e9))
			minute := 0
			clock := source.Clock{Now: func() time.Time { return now }, After: func(time.Duration) <-chan time.Time {
				if minute < len(tc.tags) && tc.tags[minute] != "" {
					sourcetest.Append(t, path, sourcetest.Event(1.7e9, int64(minute), tc.tags[minute], 1))
				}
				if minute++; minute == len(tc.tags)+1 {
					close(drain)
				}
				now = now.Add(time.Minute)
				passed := make(chan time.Time, 1)
				passed <- now
				return passed
			}}
			src, err := New(Config{Dir: dir, Metrics: tc.metrics, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, err := range src.Points(t.Context()) {
				var missing *source.MissingError
				if errors.As(err, &missing) && missing.Yet {
					said = append(said, missing.Error())
				}
			}
			if d := cmp.Diff(tc.want, said); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
