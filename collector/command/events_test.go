package command

import (
	"os"
	"path/filepath"
	"testing"
)

// Two ranks write one tag. The first writes late what it measured after the
// second began; then the collector is killed. No point may be stored twice.
func TestTwoWritersOfOneTagAcrossAKill(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	must(t, os.MkdirAll(dir, 0o755))
	args := []string{"--kind=TensorFlowEvent", "--path=" + dir, "--metric=loss"}
	s := b.run(args...)
	rank0, rank1 := filepath.Join(dir, "events.out.tfevents.1700000000.rank0"), filepath.Join(dir, "events.out.tfevents.1700000010.rank1")
	appendTo(t, rank0, lossEvents(1.7e9, 0, 0, 1, 2))
	b.untilPoints(3)
	appendTo(t, rank1, lossEvents(1.7e9+10, 0, 0, 1))
	b.untilPoints(5)
	appendTo(t, rank0, lossEvents(1.7e9+11, 3, 3, 4)) // the rest of rank 0's buffer
	b.untilPoints(7)
	s.kill(b)
	s = b.run(args...)
	s.term()
	var counts []int
	for _, series := range b.points("loss") {
		counts = append(counts, len(series.Points))
	}
	if len(counts) != 2 || counts[0] != 5 || counts[1] != 2 {
		t.Errorf("the attempts have %v points, want 5 and 2", counts)
	}
}
