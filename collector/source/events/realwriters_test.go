//go:build writers

package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// These tests run the packages that people write event files with. `make
// e2e-writers` installs them; envPython names the interpreter that has them.
const (
	envPython = "VERNIER_WRITERS_PYTHON"
	// envWriters names the writers that must be there, parted by spaces.
	envWriters = "VERNIER_WRITERS"
)

func python(t *testing.T, args ...string) []byte {
	t.Helper()
	path := os.Getenv(envPython)
	if path == "" {
		t.Fatalf("set %s to a Python with the packages; make e2e-writers does", envPython)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v: %v: %s", args, err, exit.Stderr[max(0, len(exit.Stderr)-2000):])
		}
		t.Fatal(err)
	}
	return out
}

// writtenScalar is a line of writers.py.
type writtenScalar struct {
	Run, File, Tag, Value string
	Step                  int64
	Wall                  float64
}

func (w writtenScalar) metric() string { return strings.TrimPrefix(w.Run+"/"+w.Tag, "./") }

func (w writtenScalar) source() string {
	return "tfevent:" + strings.TrimPrefix(w.Run+"/"+w.File, "./")
}

// number is the value as Python writes it.
func (w writtenScalar) number(t *testing.T) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(w.Value, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every value that the packages wrote is read, with its tag, step, time and all
// its digits, and nothing else.
func TestFilesOfRealWritersAreReadExactly(t *testing.T) {
	there := strings.Fields(string(python(t, "testdata/writers.py", "list")))
	for _, name := range strings.Fields(os.Getenv(envWriters)) {
		if !slices.Contains(there, name) {
			t.Errorf("the packages of %s are not installed", name)
		}
	}
	for _, name := range there {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var want, metrics []string
			lines := bufio.NewScanner(bytes.NewReader(python(t, "testdata/writers.py", name, dir)))
			for lines.Scan() {
				var w writtenScalar
				if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
					continue // what the package itself prints
				}
				whole, frac := math.Modf(w.Wall)
				at := time.Unix(int64(whole), int64(math.Round(frac*1e9))).UTC()
				want = append(want, fmt.Sprintf("%s %s %d %v %s", w.source(), w.metric(), w.Step, w.number(t), at))
				metrics = append(metrics, w.metric())
			}
			slices.Sort(metrics)
			rec := sourcetest.NewRecord()
			rec.Follow(t.Context(), t, newEvents(t, dir, sourcetest.Closed(), slices.Compact(metrics)...), -1)
			var got []string
			for key, p := range rec.Points {
				got = append(got, fmt.Sprintf("%s %s %d %v %s", key.Source, p.Metric, p.Step, p.Value, p.Time))
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Errorf("%d values (-written +read):\n%s", len(want), diff)
			}
			if rec.Errs != nil {
				t.Errorf("errors %q", rec.Errs)
			}
			t.Logf("%d values of %d metrics", len(got), len(slices.Compact(metrics)))
		})
	}
}

// What add_hparams records is known, and compared with what was given.
func TestParametersThatRealWritersRecord(t *testing.T) {
	there := strings.Fields(string(python(t, "testdata/writers.py", "list")))
	for _, name := range []string{"torch", "tensorboardX"} {
		if !slices.Contains(there, name) {
			continue // make e2e-writers says which must be there, and the test above looks
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			python(t, "testdata/writers.py", name, dir)
			var got []string
			_, errs := play(t, Config{
				Dir: dir, Metrics: []string{"hparam/accuracy"}, Given: map[string]string{"lr": "0.1", "batch": "64", "optimizer": "adam"},
				Recorded: func(_ string, p parse.Recorded) { got = append(got, p.Name+"="+p.Value) },
			}, map[int]func(){0: func() {}})
			slices.Sort(got)
			if diff := cmp.Diff([]string{"batch=32", "lr=0.1", "optimizer=adam"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wantErrors(t, errs, "the program recorded batch=32, the trial was given 64: does it read its arguments?")
		})
	}
}

// A real TensorBoard lists trials with their parameters and metrics.
func TestTensorBoardShowsTrials(t *testing.T) {
	root := t.TempDir()
	started := time.Unix(1_700_000_000, 0)
	for n, rate := range []string{"0.1", "1e-3", "0.5"} {
		trial := fmt.Sprintf("exp-%04d", n)
		file := tensorboard.Start(tensorboard.Session{Group: trial, Started: started, Parameters: []tensorboard.Parameter{
			{Name: "lr", Value: rate}, {Name: "optimizer", Value: "adam"},
		}})
		file = append(file, tensorboard.End(tensorboard.StatusSuccess, started.Add(time.Minute))...)
		sourcetest.Put(t, root, filepath.Join(trial, HparamsFile+"."+trial), file)
		sourcetest.Put(t, root, filepath.Join(trial, "events.out.tfevents.1700000000.host"), sourcetest.EventFile(1.7e9, "loss=2", fmt.Sprintf("loss=%d", n)))
	}
	var shown struct {
		Groups []struct {
			Name    string
			Hparams map[string]any
			Metrics []struct{ Value float64 } `json:"metricValues"`
			Session []struct {
				Status  string
				Started float64 `json:"startTimeSecs"`
				Ended   float64 `json:"endTimeSecs"`
			} `json:"sessions"`
		}
	}
	if err := json.Unmarshal(python(t, "testdata/hparams.py", root, "3"), &shown); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range shown.Groups {
		if len(g.Metrics) != 1 || len(g.Session) != 1 {
			t.Fatalf("group %+v", g)
		}
		s := g.Session[0]
		got = append(got, fmt.Sprintf("%s lr=%v optimizer=%v loss=%v %s %v s", g.Name, g.Hparams["lr"], g.Hparams["optimizer"],
			g.Metrics[0].Value, s.Status, s.Ended-s.Started))
	}
	slices.Sort(got)
	want := []string{
		"exp-0000 lr=0.1 optimizer=adam loss=0 STATUS_SUCCESS 60 s",
		"exp-0001 lr=0.001 optimizer=adam loss=1 STATUS_SUCCESS 60 s",
		"exp-0002 lr=0.5 optimizer=adam loss=2 STATUS_SUCCESS 60 s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what TensorBoard shows (-want +got):\n%s", diff)
	}
}
