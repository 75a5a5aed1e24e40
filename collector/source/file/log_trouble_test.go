package file

import (
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFileTroublesAreSaid(t *testing.T) {
	tests := map[string]struct {
		path, state string // below a directory
		files       map[string]string
		want        []string // parts of the errors
		values      []float64
	}{
		"a file that is never written":     {path: "none", want: []string{"none was never written"}},
		"a directory in place of the file": {path: ".", want: []string{"is not a regular file", "was never written"}},
		"a state that is damaged": {
			path: "m", state: "state", files: map[string]string{"m": "{\n", "state": "{\n"},
			want: []string{"state of an earlier collector is lost"},
		},
		"a state that cannot be written": {
			path: "m", state: "no/state", files: map[string]string{"m": "loss=1\n"},
			want: []string{"remembering what was seen"}, values: []float64{1},
		},
		"a line that is too long": { // read are the values before the cut and after the line
			path: "m", files: map[string]string{"m": "loss=1 " + strings.Repeat("x", 3<<20) + " loss=2\nloss=3\n"},
			want: []string{"the line at byte 0 is longer than 1048576 bytes"}, values: []float64{1, 3},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range tc.files {
				sourcetest.Put(t, dir, path, []byte(text))
			}
			cfg := Config{Path: filepath.Join(dir, tc.path), Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed()}
			if tc.state != "" {
				cfg.State = filepath.Join(dir, tc.state)
			}
			src, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			rec := sourcetest.NewRecord()
			if !rec.Follow(t.Context(), t, src, -1) {
				t.Error("the source did not end")
			}
			if got := slices.Sorted(maps.Keys(rec.Values)); !slices.Equal(got, tc.values) {
				t.Errorf("got values %v, want %v", got, tc.values)
			}
			if len(rec.Errs) != len(tc.want) {
				t.Fatalf("got errors %q, want %q", rec.Errs, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(rec.Errs[i], want) {
					t.Errorf("got error %q, want one with %q", rec.Errs[i], want)
				}
			}
		})
	}
}

func TestConstructorsRefuseWhatCannotWork(t *testing.T) {
	for name, err := range map[string]error{
		"a file without a path":                  second(Open(Config{Format: "TEXT", Metrics: []string{"loss"}})),
		"a file without a format":                second(Open(Config{Path: "x", Metrics: []string{"loss"}})),
		"a stream without a directory":           second(OpenStream(Config{Format: "TEXT", Metrics: []string{"loss"}})),
		"a stream writer with hardly any room":   second(NewStreamWriter(t.TempDir(), 1)),
		"a stream writer that gets no directory": second(NewStreamWriter("/dev/null/x", 0)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
