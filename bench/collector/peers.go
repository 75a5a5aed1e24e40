package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The peers are TensorBoard's own readers, fetched from PyPI at run time.
//
// Python is too slow for all of the data: it gets this part of it, a file of its
// own, and rates are compared.
const pythonPart = 20

//go:embed peers.py
var peersPy string

// peers reads the same event files with TensorBoard's data server, with its
// Python loader and with our source, in turn, round by round.
func (cfg config) peers(ctx context.Context) (rows table, versions string, err error) {
	if versions, err = ensureVenv(ctx, cfg.venv); err != nil {
		return rows, "", err
	}
	rows.add("data", "reader", "MB/s of a core", "ours is faster by")
	for _, w := range workloads() {
		if w.format != "events" {
			continue
		}
		if err := cfg.duel(ctx, w, &rows); err != nil {
			return rows, versions, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return rows, versions + ".\n", nil
}

func (cfg config) duel(ctx context.Context, w workload, rows *table) error {
	all, err := w.create(cfg.dir, cfg.mb*1e6)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(all.dir) }()
	part, err := w.create(cfg.dir, cfg.mb*1e6/pythonPart)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(part.dir) }()
	readers := []struct {
		name string
		rate func() (float64, error)
	}{
		{"ours, both checksums, every value", func() (float64, error) {
			r, err := measure(func() (int, error) { return sourcePass(ctx, all) })
			return float64(all.bytes) / 1e6 / r.seconds, err
		}},
		{"data server, checksums", func() (float64, error) { return dataServer(ctx, cfg.venv, all, "--checksum") }},
		{"data server, as shipped: no checksums", func() (float64, error) { return dataServer(ctx, cfg.venv, all, "--no-checksum") }},
		{"Python EventAccumulator", func() (float64, error) { return python(ctx, cfg.venv, part) }},
	}
	rates := make([]sample, len(readers))
	for round := range cfg.rounds + 1 { // the first fills the page cache
		for i, r := range readers {
			rate, err := r.rate()
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if round > 0 {
				rates[i] = append(rates[i], rate)
			}
		}
	}
	for i, r := range readers {
		ratio := "1"
		if i > 0 {
			ratio = rates[0].over(rates[i]).spread(2)
		}
		rows.add(w.name, r.name, rates[i].spread(1), ratio)
	}
	return nil
}

// dataServer loads a directory once and returns megabytes a second of CPU time.
func dataServer(ctx context.Context, venv string, d data, checksum string) (float64, error) {
	found, err := filepath.Glob(filepath.Join(venv, "lib", "*", "site-packages", "tensorboard_data_server", "bin", "server"))
	if err != nil || len(found) == 0 {
		return 0, fmt.Errorf("there is no data server in %s: %w", venv, errors.Join(err, os.ErrNotExist))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	// RUST_BACKTRACE off, one thread for the one run; the log says when all is
	// loaded.
	cmd := exec.CommandContext(ctx, found[0], "--logdir", d.dir, "--host", "127.0.0.1", "--port", "0", "--reload", "once", "--verbose", checksum)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	loaded, lines := false, bufio.NewScanner(stderr)
	for !loaded && lines.Scan() {
		loaded = strings.Contains(lines.Text(), "Finished load cycle")
	}
	// Killed at once; what it used is known once it is waited for.
	err = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if err != nil || !loaded {
		return 0, fmt.Errorf("it did not load %s: %w", d.dir, errors.Join(err, lines.Err()))
	}
	seconds := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return float64(d.bytes) / 1e6 / seconds, nil
}

// python loads a directory with TensorBoard's EventAccumulator.
func python(ctx context.Context, venv string, d data) (float64, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), "-c", peersPy, d.path).Output()
	if err != nil {
		return 0, failed(err)
	}
	var said struct {
		Seconds float64 `json:"seconds"`
		Points  int     `json:"points"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return 0, fmt.Errorf("it said %q: %w", out, err)
	}
	if said.Points != d.points {
		return 0, fmt.Errorf("it has %d points of %d", said.Points, d.points)
	}
	return float64(d.bytes) / 1e6 / said.Seconds, nil
}

// failed adds what a command said on its way out.
func failed(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// ensureVenv makes the environment unless it is there, and returns the versions.
func ensureVenv(ctx context.Context, venv string) (string, error) {
	py := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(py); err != nil {
		for _, argv := range [][]string{
			{"python3", "-m", "venv", venv},
			{py, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "tensorboard", "tensorboard-data-server"},
		} {
			if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
				return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
			}
		}
	}
	out, err := exec.CommandContext(ctx, py, "-c", `import platform
from importlib.metadata import version
print("Python", platform.python_version() + ", tensorboard", version("tensorboard") + ", tensorboard-data-server", version("tensorboard-data-server"))`).Output()
	if err != nil {
		return "", failed(err)
	}
	return strings.TrimSpace(string(out)), nil
}
