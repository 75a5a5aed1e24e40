package command

import (
	"strings"
	"testing"
)

// What a killed program printed last, without an end of the line, may be half a
// number. It is no point, and the summary says so.
func TestAKilledProgramLeavesNoHalfNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		end   string
		count int64
		noted bool
	}{
		"killed":                    {"kill -9 $$", 1, true},
		"ended with an error":       {"exit 3", 1, true},
		"ended well":                {"exit 0", 2, false},
		"killed after a whole line": {"echo; kill -9 $$", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.run("--kind=StdOut", "--metric=loss")
			_ = b.exec("sh", "-c", "echo loss=0.75; printf loss=0.5; "+tc.end).Run() // its code is that of the program
			s.term()
			summary := b.wantSummary("loss", tc.count)
			if noted := strings.Contains(summary.Note, "in the middle of a number"); noted != tc.noted {
				t.Errorf("note %q", summary.Note)
			}
			if m, want := summary.Metrics[0], map[int64]float64{1: 0.75, 2: 0.5}[tc.count]; m.Min.Value != want {
				t.Errorf("min %v, want %v", m.Min, want)
			}
		})
	}
}
