package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
