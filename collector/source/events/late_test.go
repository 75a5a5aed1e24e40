package events

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestEventDirReadsDataThatComesAfterTheSize(t *testing.T) {
	whole := stepsOf(100, "loss", 0, 1, 2)
	before := len(stepsOf(100, "loss", 0, 1))
	for name, shown := range map[string]int{
		"nothing of a record": before, "a part of its length": before + 1, "its length": before + 8,
		"a part of its checksum": before + 10, "its head": before + 12, "a part of its data": before + 20, "all but a byte": len(whole) - 1,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clock, drain := sourcetest.Late(t, filepath.Join(dir, "tfevents"), whole, shown)
			src, err := New(Config{Dir: dir, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]float64{0, 1, 2}, sourcetest.Values(t, src)); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}
