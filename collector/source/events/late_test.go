package events

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// A network file system may show a file's new size before the data, and zeros in
// their place.
func TestEventDirReadsDataThatComesAfterTheSize(t *testing.T) {
	whole := stepsOf(100, "loss", 0, 1, 2)
	before := len(stepsOf(100, "loss", 0, 1))
	for name, shown := range map[string]int{
		"nothing of a record": before, "a part of its length": before + 1, "its length": before + 8,
		"a part of its checksum": before + 10, "its head": before + 12, "a part of its data": before + 20, "all but a byte": len(whole) - 1} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tfevents")
			write := func(b []byte) {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				defer sourcetest.Shut(t, f)
				if _, err := f.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			write(append(bytes.Clone(whole[:shown]), make([]byte, len(whole)-shown)...))
			drain, pauses := make(chan struct{}), 0
			clock := source.Clock{After: func(time.Duration) <-chan time.Time {
				switch pauses++; pauses {
				case 3:
					write(whole)
				case 6:
					close(drain)
				}
				return time.After(time.Millisecond)
			}}
			src, err := New(Config{Dir: filepath.Dir(path), Metrics: []string{"loss"}, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for p, err := range src.Points(t.Context()) {
				if err != nil {
					t.Error(err)
					continue
				}
				got = append(got, p.Value)
			}
			if diff := cmp.Diff([]float64{0, 1, 2}, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}
