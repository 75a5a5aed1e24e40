package source_test

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/file"
	"github.com/vernier-ml/vernier/collector/source/scrape"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// strange are things that a program may put in the place of a file of ours.
var strange = map[string]func(path string) error{
	"a pipe without a writer": func(path string) error { return unix.Mkfifo(path, 0o600) },
	"a device without an end": func(path string) error { return os.Symlink("/dev/zero", path) },
	"a directory":             func(path string) error { return os.Mkdir(path, 0o700) },
	"a file of a gigabyte": func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
	},
}

// within fails the test when act does not return: what waits for a pipe would
// wait for ever.
func within(t *testing.T, act func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		act()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not return")
	}
}

func TestAnythingMayStandInPlaceOfWhatIsRemembered(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("loss 1\n")) }))
	defer page.Close()
	drain := sourcetest.Closed()
	metrics := []string{"loss"}
	sources := map[string]func(dir, state string) (collector.Source, error){
		"File": func(dir, state string) (collector.Source, error) {
			return file.Open(file.Config{Path: filepath.Join(dir, "log"), Format: parse.FormatText, Metrics: metrics, State: state, Drain: drain, Clock: sourcetest.Quick()})
		},
		"CSV": func(dir, state string) (collector.Source, error) {
			return file.Open(file.Config{Format: file.FormatCSV, Path: filepath.Join(dir, "table"), Metrics: metrics, State: state, Drain: drain, Clock: sourcetest.Quick()})
		},
		"events": func(dir, state string) (collector.Source, error) {
			return events.New(events.Config{Dir: dir, Metrics: metrics, State: state, Drain: drain, Clock: sourcetest.Quick()})
		},
		"sessions of events": func(dir, state string) (collector.Source, error) {
			if err := os.Rename(state, state+".sessions"); err != nil {
				return nil, err
			}
			return events.New(events.Config{Dir: dir, Metrics: metrics, State: state, Drain: drain, Clock: sourcetest.Quick()})
		},
		"PrometheusMetric": func(_, state string) (collector.Source, error) {
			return scrape.New(scrape.Config{URL: page.URL, Metrics: metrics, State: state, Drain: drain, Clock: sourcetest.Quick()})
		},
	}
	for kind, open := range sources {
		for what, place := range strange {
			if kind == "sessions of events" && what == "a file of a gigabyte" {
				continue // that much may be remembered of very many files
			}
			t.Run(kind+": "+what, func(t *testing.T) {
				dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
				if err := place(state); err != nil {
					t.Fatal(err)
				}
				src, err := open(dir, state)
				if err != nil {
					t.Fatal(err)
				}
				var first error
				within(t, func() {
					for _, err := range src.Points(t.Context()) {
						first = cmp.Or(first, err)
					}
				})
				if first == nil {
					t.Error("nothing is said")
				}
			})
		}
	}
}

func TestAnythingMayStandInPlaceOfWhatWasThereBefore(t *testing.T) {
	for what, place := range strange {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := place(filepath.Join(dir, "before")); err != nil {
				t.Fatal(err)
			}
			within(t, func() {
				if _, err := source.RecordBefore(dir, filepath.Join(dir, "before"), true, anything); err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("error %v, want one that tells what is there", err)
				}
			})
		})
	}
}
