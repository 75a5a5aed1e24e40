package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
)

// corpus creates a directory of Go files in which all lines are alike, so that a
// small model learns something quickly.
func corpus(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 40 {
		sub := filepath.Join(dir, "src", fmt.Sprintf("p%02d", i/4))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("if err != nil {\n\treturn err\n}\n", 20+i)
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.go", i%4)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func flags(t *testing.T, args ...string) config {
	t.Helper()
	cfg, err := parseFlags(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	cfg.now = func() time.Time { return time.Unix(1700000000, 0) }
	return cfg
}

// The gradient agrees with finite differences of the loss for every kind of weight.
func TestGradientAgreesWithFiniteDifferences(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := newModel(7, 3, random)
	text := []uint8{5, 9, 5, 40, 2, 97, 0}
	s := m.newScratch()
	total := func() (sum float64) {
		for at := m.context; at < len(text); at++ {
			sum += m.loss(text, at, s)
		}
		return sum
	}
	gradient := make([]float64, len(m.weights))
	for at := m.context; at < len(text); at++ {
		m.loss(text, at, s)
		m.backward(text, at, s, m.view(gradient), 1)
	}
	const h = 1e-5
	for i := range m.weights {
		w := m.weights[i]
		m.weights[i] = w + h
		up := total()
		m.weights[i] = w - h
		down := total()
		m.weights[i] = w
		if want := (up - down) / (2 * h); math.Abs(want-gradient[i]) > 1e-6*(1+math.Abs(want)) {
			t.Fatalf("weight %d: gradient %v, difference %v", i, gradient[i], want)
		}
	}
}

func TestLossIsThatOfTheUniformGuessWithoutWeights(t *testing.T) {
	m := newModel(4, 2, rand.New(rand.NewPCG(1, 2)))
	clear(m.weights)
	if got := m.loss([]uint8{1, 2, 3}, 2, m.newScratch()); math.Abs(got-math.Log(classes)) > 1e-12 {
		t.Errorf("loss %v, want the logarithm of %d", got, classes)
	}
}

func TestEveryOptimizerLearns(t *testing.T) {
	dir := corpus(t)
	for name, lr := range map[string]string{"sgd": "0.3", "momentum": "0.05", "adam": "0.01"} {
		t.Run(name, func(t *testing.T) {
			cfg := flags(t, "--optimizer", name, "--lr", lr, "--width", "16", "--context", "3")
			train, validation, err := load(dir, cfg.context)
			if err != nil {
				t.Fatal(err)
			}
			cfg.examples = 2000
			tr, err := newTrainer(cfg, train, validation)
			if err != nil {
				t.Fatal(err)
			}
			before := tr.validate()
			first := tr.epoch()
			tr.epoch()
			last, after := tr.epoch(), tr.validate()
			if !(last < first) || !(after < before/4) {
				t.Errorf("training loss from %v to %v, validation loss from %v to %v", first, last, before, after)
			}
		})
	}
}

func TestAdamsFirstStepIsItsRate(t *testing.T) {
	o, err := newOptimizer("adam", 0.1, 2)
	if err != nil {
		t.Fatal(err)
	}
	w := []float64{1, 1}
	o.update(w, []float64{1e-3, -50})
	if math.Abs(w[0]-0.9) > 1e-4 || math.Abs(w[1]-1.1) > 1e-4 {
		t.Errorf("weights %v, want 0.9 and 1.1", w)
	}
}

func TestRunIsDeterministic(t *testing.T) {
	output := func(args ...string) string {
		var out bytes.Buffer
		cfg := flags(t, append(args, "--data", corpus(t), "--epochs", "3", "--examples", "500", "--width", "8")...)
		if err := run(t.Context(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := output("--seed", "7")
	if diff := cmp.Diff(first, output("--seed", "7")); diff != "" {
		t.Errorf("two runs with one seed (-first +second):\n%s", diff)
	}
	if first == output("--seed", "8") {
		t.Error("two seeds give the same numbers")
	}
	if lines := strings.Split(strings.TrimSpace(first), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "epoch=3 train_loss=") {
		t.Errorf("got output %q", first)
	}
}

func TestDivergenceIsReportedAsNaN(t *testing.T) {
	var out bytes.Buffer
	cfg := flags(t, "--data", corpus(t), "--lr", "1e300", "--optimizer", "sgd", "--epochs", "2", "--examples", "500", "--width", "4")
	if err := run(t.Context(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "epoch=2 train_loss=NaN val_loss=NaN") {
		t.Errorf("got output %q", out.String())
	}
}

// The collector reads what is printed, and what is written as events.
func TestEventsAndOutputAreReadByTheCollector(t *testing.T) {
	logdir := filepath.Join(t.TempDir(), "logs")
	var out bytes.Buffer
	cfg := flags(t, "--data", corpus(t), "--logdir", logdir, "--epochs", "3", "--examples", "200", "--width", "4")
	if err := run(t.Context(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	text, err := parse.NewText([]string{"val_loss"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for line := range strings.Lines(out.String()) {
		samples, err := text.Parse(nil, []byte(line))
		if err != nil || len(samples) != 1 {
			t.Fatalf("%q: %d samples, error %v", line, len(samples), err)
		}
		printed = append(printed, fmt.Sprintf("%d %.4f", samples[0].Step, samples[0].Value))
	}
	files, err := filepath.Glob(filepath.Join(logdir, "events.out.tfevents.1700000000.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, error %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var written []string
	_, err = parse.NewEvents().Read(f, 0, parse.NewWanted([]string{"val_loss"}, nil), func(s parse.Scalar) bool {
		written = append(written, fmt.Sprintf("%d %.4f", s.Step, s.Value))
		if s.Time.Unix() != 1700000000 {
			t.Errorf("time %v", s.Time)
		}
		return true
	})
	if diff := cmp.Diff(printed, written); diff != "" || err != nil || len(printed) != 3 {
		t.Errorf("error %v; values (-printed +written):\n%s", err, diff)
	}
}

func TestLoadSplitsAndBounds(t *testing.T) {
	dir := corpus(t)
	for path, text := range map[string]string{
		"src/a/long.go":        strings.Repeat("é", maxFile),
		"src/a/skip_test.go":   "\x00 a test",
		"src/cmd/x/skip.go":    "\x00 a command",
		"src/p/testdata/no.go": "\x00 test data",
		"src/p/notes.txt":      "\x00 not Go",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	train, validation, err := load(dir, 4)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Count(train, []byte{0}) + bytes.Count(validation, []byte{0})
	if other != maxFile {
		t.Errorf("%d bytes are something else than ASCII, want those of one file cut to %d", other, maxFile)
	}
	if share := float64(len(validation)) / float64(len(train)+len(validation)); share < 0.02 || share > 0.2 {
		t.Errorf("the share of validation is %v", share)
	}
	for _, c := range train {
		if c >= classes {
			t.Fatalf("class %d", c)
		}
	}
}

func TestBadFlagsAndDataSayWhy(t *testing.T) {
	for args, want := range map[string]string{
		"--lr=0":            "--lr",
		"--lr=NaN":          "--lr",
		"--width=0":         "--width",
		"--context=65":      "--context",
		"--optimizer=magic": "sgd, momentum or adam",
		"--batch=0":         "--batch",
		"stray":             "unexpected argument",
	} {
		if _, err := parseFlags([]string{args}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
	for name, dir := range map[string]string{"an empty directory": t.TempDir(), "no directory": filepath.Join(t.TempDir(), "none")} {
		cfg := flags(t, "--data", dir)
		if err := run(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "reading the training text") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDataIsFoundWithoutAFlag(t *testing.T) {
	t.Setenv("GOROOT", "/somewhere")
	if dir, err := dataDir(t.Context(), ""); dir != "/somewhere" || err != nil {
		t.Errorf("with GOROOT: %q, error %v", dir, err)
	}
	if dir, err := dataDir(t.Context(), "/flag"); dir != "/flag" || err != nil {
		t.Errorf("with a flag: %q, error %v", dir, err)
	}
	t.Setenv("GOROOT", "")
	t.Setenv("PATH", "")
	if _, err := dataDir(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("with nothing: error %v", err)
	}
}
