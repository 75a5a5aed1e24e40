package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// BenchmarkFile reads a file from its beginning to its end: the speed that a
// user gets, from the page cache to points.
func BenchmarkFile(b *testing.B) {
	chatter := strings.Repeat("downloading the data set to /data/cache, please wait for it to finish. ", 2)
	plain := func(i int) string { return fmt.Sprintf("epoch=%d step=%d loss=0.%06d accuracy=0.98\n", i/100, i, i) }
	corpora := map[string]struct {
		format  string
		metrics []string
		line    func(i int) string
	}{
		"text":        {parse.FormatText, []string{"loss", "accuracy"}, plain},
		"one_missing": {parse.FormatText, []string{"loss", "accuracy", "f1"}, plain},
		"sparse": {parse.FormatText, []string{"loss", "accuracy"}, func(i int) string {
			return fmt.Sprintf("%s size=%d MB\n", chatter, i)
		}},
		"json": {parse.FormatJSON, []string{"loss", "accuracy"}, func(i int) string {
			return fmt.Sprintf("{\"epoch\": %d, \"step\": %d, \"loss\": 0.%06d, \"accuracy\": 0.98, \"lr\": 0.001}\n", i/100, i, i)
		}},
	}
	for name, c := range corpora {
		b.Run(name, func(b *testing.B) {
			path, size := written(b, "", c.line)
			// As the sidecar reads it: what is missing is looked for.
			src, err := Open(Config{Path: path, Format: c.format, Metrics: c.metrics, Explain: true, Drain: sourcetest.Closed()})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkSource(b, src, size)
		})
	}
	b.Run("csv", func(b *testing.B) {
		path, size := written(b, "epoch,step,loss,accuracy,lr\r\n", func(i int) string {
			return fmt.Sprintf("%d,%d,0.%06d,0.98,0.001\r\n", i/100, i, i)
		})
		src, err := Open(Config{Format: FormatCSV, Path: path, Metrics: []string{"loss", "accuracy"}, Drain: sourcetest.Closed()})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkSource(b, src, size)
	})
}

// written is a file of 100,000 lines after a head.
func written(b *testing.B, head string, line func(i int) string) (path string, size int) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "metrics.log")
	var text strings.Builder
	text.WriteString(head)
	for i := range 100000 {
		text.WriteString(line(i))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	return path, text.Len()
}

func benchmarkSource(b *testing.B, src collector.Source, size int) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range src.Points(b.Context()) {
			if missing := (*source.MissingError)(nil); err != nil && !errors.As(err, &missing) {
				b.Fatal(err)
			}
		}
	}
}
