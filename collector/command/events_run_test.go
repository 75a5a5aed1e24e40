package command

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

func TestTensorFlowEventEndToEnd(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss")
	must(t, os.MkdirAll(dir, 0o755))
	appendTo(t, filepath.Join(dir, "events.out.tfevents.1700000000.host"), lossEvents(1.7e9, 0, 1, 0.5, 0.25, 0.125, 0.0625))
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "losses", []float64{1, 0.5, 0.25, 0.125, 0.0625}, values(series[0].Points))
}

// A trainer that is started again in its pod goes on from a checkpoint in a new
// file: an attempt of its own, which replaces what was measured beyond it.
func TestTensorFlowEventRestartsAreAttempts(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss")
	must(t, os.MkdirAll(dir, 0o755))
	appendTo(t, filepath.Join(dir, "events.out.tfevents.1700000000.host.1"), lossEvents(1.7e9, 0, 9, 8, 7, 0.001))
	b.untilPoints(4)
	appendTo(t, filepath.Join(dir, "events.out.tfevents.1700000100.host.1"), lossEvents(1.7e9+100, 2, 6, 5))
	b.until("the second attempt", func() bool { return len(b.points("loss")) == 2 })
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 2 || series[0].Attempt.ID != podUID+"/0" || series[1].Attempt.ID != podUID+"/1" {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "before", []float64{9, 8, 7, 0.001}, values(series[0].Points))
	want(t, "after", []float64{6, 5}, values(series[1].Points))
	for _, a := range b.attempts() {
		if !a.Final {
			t.Errorf("the attempt %s is not final", a.Attempt.ID)
		}
	}
	if o := collector.Observe(series, "loss"); o.Min.Value != 5 || o.Latest.Value != 5 || o.Points != 4 {
		t.Errorf("observed %+v", o)
	}
}

// Sessions of one pod end together, in any order.
func TestWhereTheServiceRefusesTheSummaryIsOfTheLastSession(t *testing.T) {
	b := newBench(t)
	b.token = "of no trial" // such a service is given up at once
	dir := filepath.Join(b.dir, "events")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss")
	must(t, os.MkdirAll(dir, 0o755))
	for n, losses := range [][]float32{{0.5, 0.25, 8, 0.125}, {2, 3}, {4}} {
		appendTo(t, filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.host.1", 1700000000+100*n)), lossEvents(1.7e9+float64(100*n), int64(n), losses...))
	}
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	_ = s.cmd.Wait()
	summary := b.wantSummary("loss", 1)
	m := summary.Metrics[0]
	if summary.Final || summary.Attempt.ID != podUID+"/2" || m.Min.Value != 4 || m.Max.Value != 4 || m.Last.Value != 4 || m.Step != 2 {
		t.Errorf("summary %+v", summary)
	}
}

// lossEvents are records of losses, a second and a step apart.
func lossEvents(wall float64, first int64, losses ...float32) string {
	var events []byte
	for i, v := range losses {
		events = append(events, scalarEventAt(wall+float64(i), "loss", first+int64(i), v)...)
	}
	return string(events)
}

// scalarEvent is a record of a TensorBoard event file.
func scalarEvent(tag string, step int64, value float32) []byte {
	return scalarEventAt(1.7e9, tag, step, value)
}

func scalarEventAt(wall float64, tag string, step int64, value float32) []byte {
	v := append([]byte{0x0a, byte(len(tag))}, tag...)
	v = binary.LittleEndian.AppendUint32(append(v, 0x15), math.Float32bits(value))
	summary := append([]byte{0x0a, byte(len(v))}, v...)
	event := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(wall))
	event = binary.AppendUvarint(append(event, 0x10), uint64(step))
	event = append(append(event, 0x2a, byte(len(summary))), summary...)
	return tensorboard.Record(event)
}
