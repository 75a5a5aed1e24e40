package command

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

func TestTheParametersAreWrittenBesideTheEvents(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, events.HparamsFile+".t-0001")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss", "--trial=t-0001", "--parameter=lr=0.1", "--parameter=opt=a=b")
	var begun []byte
	b.until("the file", func() bool {
		var err error
		begun, err = os.ReadFile(path)
		return err == nil && len(begun) > 0
	})
	if err := os.WriteFile(filepath.Join(dir, "tfevents"), scalarEvent("loss", 1, 2), 0o644); err != nil {
		t.Fatal(err)
	}
	s.term()
	ended, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(ended, begun) || len(ended) == len(begun) {
		t.Fatalf("%d bytes, then %d, error %v", len(begun), len(ended), err)
	}
	next, err := parse.NewEvents().Read(bytes.NewReader(ended), 0, parse.NewWanted(nil, nil), func(parse.Scalar) bool { return true })
	if err != nil || next != int64(len(ended)) {
		t.Errorf("read %d of %d bytes, error %v", next, len(ended), err)
	}
	for _, word := range []string{"lr", "opt", "a=b", "t-0001", "_hparams_/session_start_info", "_hparams_/session_end_info"} {
		if !bytes.Contains(ended, []byte(word)) {
			t.Errorf("%q is not in it", word)
		}
	}
	want(t, "losses", []float64{2}, values(b.points("loss")[0].Points))
}

// The condition of a trial quotes the note.
func TestTheNoteSaysThatTheProgramRecordedOtherParameters(t *testing.T) {
	tests := map[string]struct{ recorded, want string }{
		"another value":  {"0.1", "tfevent: the program recorded lr=0.1, the trial was given 0.01: does it read its arguments?"},
		"the same value": {"0.010", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir := filepath.Join(b.dir, "events")
			s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss", "--trial=t-0001", "--parameter=lr=0.01", "--parameter=opt=adam")
			file := tensorboard.Start(tensorboard.Session{Started: time.Unix(1, 0), Parameters: []tensorboard.Parameter{{Name: "lr", Value: tc.recorded}}})
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "tfevents"), append(file, scalarEvent("loss", 1, 2)...), 0o644); err != nil {
				t.Fatal(err)
			}
			b.untilPoints(1)
			s.term()
			states := b.attempts()
			if len(states) != 1 || states[0].Note != tc.want {
				t.Errorf("%+v, want the note %q", states, tc.want)
			}
			want(t, "losses", []float64{2}, values(b.points("loss")[0].Points))
		})
	}
}

func TestHparamsWhereNothingCanBeWritten(t *testing.T) {
	now := time.Unix(1, 0)
	cfg := runConfig{kind: "TensorFlowEvent", path: filepath.Join(t.TempDir(), "later"), trial: "t", parameters: words{"lr=1"}}
	t.Run("the directory is the program's to make", func(t *testing.T) {
		h := newHparams(cfg, now)
		if err := errors.Join(h.start(), h.end(now)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(cfg.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory was made: %v", err)
		}
	})
	t.Run("a directory that came late has the file at the end", func(t *testing.T) {
		h := newHparams(cfg, now)
		if err := errors.Join(h.start(), os.Mkdir(cfg.path, 0o755), h.end(now)); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(h.path); err != nil || !bytes.Contains(b, []byte("session_end_info")) {
			t.Errorf("%q, error %v", b, err)
		}
	})
	t.Run("an error is an error", func(t *testing.T) {
		h := newHparams(runConfig{kind: "TensorFlowEvent", path: "/dev/null", parameters: words{"lr=1"}}, now)
		if h.start() == nil || h.end(now) == nil {
			t.Error("a file was made in /dev/null")
		}
	})
	t.Run("other kinds and trials without parameters write nothing", func(t *testing.T) {
		for _, other := range []runConfig{{kind: "File", path: t.TempDir(), parameters: words{"lr=1"}}, {kind: "TensorFlowEvent", path: t.TempDir()}} {
			h := newHparams(other, now)
			if err := errors.Join(h.start(), h.end(now)); err != nil || h != nil {
				t.Errorf("%+v: %v, %v", other, h, err)
			}
		}
	})
}
