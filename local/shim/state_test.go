package shim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForgetKeepsTheNewestAndTheUnfinished(t *testing.T) {
	run := func(name string, n int, phase Phase) Run { return Run{Name: name, Run: n, Phase: phase} }
	in := []Run{run("a", 0, Running), run("b", 0, Exited), run("a", 1, Exited), run("a", 2, Exited), run("a", 3, Exited), run("a", 4, Exited)}
	want := []Run{in[0], in[1], in[3], in[4], in[5]}
	if diff := cmp.Diff(want, forget(in)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
