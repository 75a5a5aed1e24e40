package command

import (
	"fmt"
	"testing"
)

func TestPushEndToEndAcrossAKill(t *testing.T) {
	b := newBench(t)
	args := []string{"--kind=Push", "--metric=loss"}
	s := b.run(args...)
	push := func(loss, step int) {
		t.Helper()
		b.until("pushed", func() bool { return b.post(fmt.Sprintf(`{"loss": %d, "step": %d}`, loss, step)) == nil })
	}
	push(3, 1)
	push(2, 2)
	s.kill(b) // what was accepted is on disk
	s = b.run(args...)
	push(1, 3)
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "losses", []float64{3, 2, 1}, values(series[0].Points))
}

func TestASidecarThatIsKilledAgainAndAgainLosesAndDoublesNothing(t *testing.T) {
	b := newBench(t)
	args := []string{"--kind=StdOut", "--metric=loss"}
	s := b.run(args...)
	program := b.exec("sh", "-c", "i=0; while [ $i -lt 600 ]; do echo loss=$i; i=$((i+1)); [ $((i%20)) -eq 0 ] && sleep 0.05; done; true")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 100, 101, 350} {
		b.untilPoints(n)
		s.kill(b)
		s = b.run(args...)
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	s.term()
	var expected []float64
	for i := range 600 {
		expected = append(expected, float64(i))
	}
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("%d series", len(series))
	}
	want(t, "losses", expected, values(series[0].Points))
	b.wantSummary("loss", 600)
}
