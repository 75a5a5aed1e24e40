package source

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFileTroublesAreSaid(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, dir string) FileConfig
		want    []string
	}{
		"a file that is never written": {
			prepare: func(t *testing.T, dir string) FileConfig { return FileConfig{Path: filepath.Join(dir, "none")} },
			want:    []string{"none was never written"},
		},
		"a directory in place of the file": {
			prepare: func(t *testing.T, dir string) FileConfig { return FileConfig{Path: dir} },
			want:    []string{"is not a regular file", "was never written"},
		},
		"a state that is damaged": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m"), State: filepath.Join(dir, "state")}
				for _, path := range []string{cfg.Path, cfg.State} {
					if err := os.WriteFile(path, []byte("{\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				return cfg
			},
			want: []string{"state of an earlier collector is lost"},
		},
		"a state that cannot be written": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m"), State: filepath.Join(dir, "no", "state")}
				if err := os.WriteFile(cfg.Path, []byte("loss=1\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return cfg
			},
			want: []string{"remembering the files that were seen"},
		},
		"a line that is too long": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m")}
				text := "loss=1 " + strings.Repeat("x", 3<<20) + " loss=2\nloss=3\n"
				if err := os.WriteFile(cfg.Path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return cfg
			},
			want: []string{"the line at byte 0 is longer than 1048576 bytes"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := tc.prepare(t, t.TempDir())
			drain := make(chan struct{})
			close(drain)
			cfg.Parser, cfg.Drain = lossParser(t), drain
			src, err := NewFile(cfg)
			if err != nil {
				t.Fatal(err)
			}
			rec := newRecord()
			if !rec.follow(t.Context(), t, src, -1) {
				t.Error("the source did not end")
			}
			if len(rec.errs) != len(tc.want) {
				t.Fatalf("got errors %q, want %q", rec.errs, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(rec.errs[i], want) {
					t.Errorf("got error %q, want one with %q", rec.errs[i], want)
				}
			}
			if name == "a line that is too long" {
				if got := slices.Sorted(maps.Keys(rec.values)); !slices.Equal(got, []float64{1, 3}) {
					t.Errorf("got values %v, want those before the cut and after the line", got)
				}
			}
		})
	}
}

func TestConstructorsRefuseWhatCannotWork(t *testing.T) {
	for name, err := range map[string]error{
		"a file without a path":                  second(NewFile(FileConfig{Parser: lossParser(t)})),
		"a file without a parser":                second(NewFile(FileConfig{Path: "x"})),
		"a stream without a directory":           second(NewStream(StreamConfig{Parser: lossParser(t)})),
		"an event directory without metrics":     second(NewEventDir(EventDirConfig{Dir: "x"})),
		"a push source without a listener":       second(NewPush(PushConfig{})),
		"a stream writer with hardly any room":   second(NewStreamWriter(t.TempDir(), 1)),
		"a stream writer that gets no directory": second(NewStreamWriter("/dev/null/x", 0)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
