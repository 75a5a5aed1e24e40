package file_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/source/file"
)

func TestWholeLinesAreNotTorn(t *testing.T) {
	r, w := io.Pipe()
	var writers sync.WaitGroup
	for _, text := range []string{"aaaa\n", "bbbb\n"} {
		writers.Go(func() {
			lines := file.WholeLines(w)
			for range 1000 {
				for i := range text {
					if _, err := io.WriteString(lines, text[i:i+1]); err != nil {
						t.Error(err)
					}
				}
			}
			if err := lines.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	go func() {
		writers.Wait()
		_ = w.Close() // always nil
	}()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		count[line]++
	}
	if diff := cmp.Diff(map[string]int{"aaaa": 1000, "bbbb": 1000}, count); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWholeLinesWithoutAReaderAreDropped(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close() // always nil
	lines := file.WholeLines(w)
	if n, err := io.WriteString(lines, "late\n"); n != 5 || err != nil {
		t.Errorf("%d bytes, error %v; want that the program goes on", n, err)
	}
}
