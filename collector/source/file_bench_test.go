package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// BenchmarkFile reads a file from its beginning to its end: the speed that a
// user gets, from the page cache to points.
func BenchmarkFile(b *testing.B) {
	chatter := strings.Repeat("downloading the data set to /data/cache, please wait for it to finish. ", 2)
	corpora := map[string]struct {
		line   func(i int) string
		parser func() (parse.Line, error)
	}{
		"text": {
			func(i int) string { return fmt.Sprintf("epoch=%d step=%d loss=0.%06d accuracy=0.98\n", i/100, i, i) },
			func() (parse.Line, error) { return parse.NewText([]string{"loss", "accuracy"}, nil) },
		},
		"one_missing": {
			func(i int) string { return fmt.Sprintf("epoch=%d step=%d loss=0.%06d accuracy=0.98\n", i/100, i, i) },
			func() (parse.Line, error) { return parse.NewText([]string{"loss", "accuracy", "f1"}, nil) },
		},
		"sparse": {
			func(i int) string { return fmt.Sprintf("%s size=%d MB\n", chatter, i) },
			func() (parse.Line, error) { return parse.NewText([]string{"loss", "accuracy"}, nil) },
		},
		"json": {
			func(i int) string {
				return fmt.Sprintf("{\"epoch\": %d, \"step\": %d, \"loss\": 0.%06d, \"accuracy\": 0.98, \"lr\": 0.001}\n", i/100, i, i)
			},
			func() (parse.Line, error) { return parse.NewJSON([]string{"loss", "accuracy"}) },
		},
	}
	for name, c := range corpora {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "metrics.log")
			var text strings.Builder
			for i := range 100000 {
				text.WriteString(c.line(i))
			}
			if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
				b.Fatal(err)
			}
			parser, err := c.parser()
			if err != nil {
				b.Fatal(err)
			}
			drain := make(chan struct{})
			close(drain)
			format := parse.FormatText
			if name == "json" {
				format = parse.FormatJSON
			}
			metrics := []string{"loss", "accuracy"}
			if name == "one_missing" {
				metrics = append(metrics, "f1")
			}
			// As the sidecar reads it: what is missing is looked for.
			src, err := NewFile(FileConfig{Path: path, Parser: parser, Drain: drain, Wanted: &Wanted{Format: format, Metrics: metrics}})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkSource(b, src, text.Len())
		})
	}
	b.Run("csv", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "metrics.csv")
		var text strings.Builder
		text.WriteString("epoch,step,loss,accuracy,lr\r\n")
		for i := range 100000 {
			fmt.Fprintf(&text, "%d,%d,0.%06d,0.98,0.001\r\n", i/100, i, i)
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			b.Fatal(err)
		}
		drain := make(chan struct{})
		close(drain)
		src, err := NewCSV(CSVConfig{Path: path, Metrics: []string{"loss", "accuracy"}, Drain: drain})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkSource(b, src, text.Len())
	})
}

func benchmarkSource(b *testing.B, src collector.Source, size int) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range src.Points(b.Context()) {
			if missing := (*MissingError)(nil); err != nil && !errors.As(err, &missing) {
				b.Fatal(err)
			}
		}
	}
}
