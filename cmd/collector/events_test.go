package main

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
	write := func(name string, wall float64, first, n int64) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		must(t, err)
		for i := range n {
			_, err := f.Write(scalarEventAt(wall+float64(i), "loss", first+i, float32(first+i)))
			must(t, err)
		}
		must(t, f.Close())
	}
	const rank0, rank1 = "events.out.tfevents.1700000000.rank0", "events.out.tfevents.1700000010.rank1"
	write(rank0, 1.7e9, 0, 3)
	b.untilPoints(3)
	write(rank1, 1.7e9+10, 0, 2)
	b.untilPoints(5)
	write(rank0, 1.7e9+11, 3, 2) // the rest of rank 0's buffer
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
