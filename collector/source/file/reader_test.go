package file_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/file"
)

func TestReader(t *testing.T) {
	broken := errors.New("the line is cut")
	tests := map[string]struct {
		from io.Reader
		want []string
	}{
		"whole lines":              {strings.NewReader("loss=1\nloss=2\n"), []string{"0 1", "7 2"}},
		"a last line without end":  {strings.NewReader("loss=1\nloss=2"), []string{"0 1", "7 2"}},
		"byte by byte":             {iotest.OneByteReader(strings.NewReader("loss=1\rloss=2\n")), []string{"0 1", "7 2"}},
		"data that come with EOF":  {iotest.DataErrReader(strings.NewReader("loss=1\n")), []string{"0 1"}},
		"nothing":                  {strings.NewReader(""), nil},
		"a reader that breaks off": {io.MultiReader(strings.NewReader("loss=1\nloss=2"), iotest.ErrReader(broken)), []string{"0 1", "7 2", "stdout: the line is cut"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parser, err := parse.NewLine(parse.FormatText, []string{"loss"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for p, err := range file.NewReader(test.from, parser, source.Clock{}).Points(t.Context()) {
				if err != nil {
					got = append(got, err.Error())
					continue
				}
				got = append(got, fmt.Sprint(p.Seq, " ", p.Value))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

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
