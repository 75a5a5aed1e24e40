package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

// pieceBytes is the size of the pieces in which a large input is written: each
// is removed when it was read, so that the disk is not filled.
const pieceBytes = 256_000_000

// sidecars lets a real sidecar read a large input of each kind, and then nothing.
func (cfg config) sidecars(ctx context.Context) (rows table, remark string, err error) {
	rows.add("input", "size", "points", "CPU time", "largest resident memory", "CPU when idle")
	for _, w := range workloads() {
		row, err := cfg.sidecar(ctx, w)
		if err != nil {
			return rows, "", fmt.Errorf("%s: %w", w.name, err)
		}
		rows.add(row...)
	}
	return rows, "", nil
}

func (cfg config) sidecar(ctx context.Context, w workload) (row []string, err error) {
	dir, err := os.MkdirTemp(cfg.dir, "sc-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	key := make([]byte, report.MinKeySize)
	rand.Read(key)
	service, err := startService(ctx, "sqlite:"+filepath.Join(dir, "points.db"), key)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, stopped := service.stop()
		err = errors.Join(err, stopped)
	}()
	s, err := cfg.startSidecar(ctx, w, dir, service.url, key)
	if s != nil {
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if err != nil {
		return nil, err
	}
	points, size, err := cfg.feed(ctx, w, s)
	if err != nil {
		return nil, err
	}
	busy, err := s.cpu()
	if err != nil {
		return nil, err
	}
	idle, err := s.idle(ctx, cfg.idle)
	if err != nil {
		return nil, err
	}
	peak, err := peakOf(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return []string{w.name, fmt.Sprintf("%.1f GB", float64(size)/1e9), strconv.Itoa(points), fmt.Sprintf("%.1f s", busy.Seconds()),
		fmt.Sprintf("%.1f MiB", float64(peak)/(1<<20)), fmt.Sprintf("%.2f %%", 100*idle)}, nil
}

// sidecar is a running "collector run".
type sidecar struct {
	cmd        *exec.Cmd
	dir, input string
	said       bytes.Buffer
	client     *http.Client
}

func (cfg config) startSidecar(ctx context.Context, w workload, dir, url string, key []byte) (*sidecar, error) {
	token, err := report.Sign(key, report.Claims{Trial: trialOf(0), Expires: time.Now().Add(24 * time.Hour)})
	if err != nil {
		return nil, err
	}
	s := &sidecar{dir: dir, input: filepath.Join(dir, "metrics.log")}
	args := []string{"run", "--dir=" + dir, "--termination-log=" + filepath.Join(dir, "end")}
	switch w.format {
	case "events":
		s.input = filepath.Join(dir, "events")
		args = append(args, "--kind=TensorFlowEvent", "--path="+s.input)
	case "json":
		args = append(args, "--kind=File", "--format=JSON", "--path="+s.input)
	default:
		args = append(args, "--kind=File", "--path="+s.input)
	}
	for _, tag := range tags {
		args = append(args, "--metric="+tag)
	}
	s.cmd = exec.CommandContext(ctx, cfg.collector, args...)
	s.cmd.Env = []string{contract.EnvURL + "=" + url, contract.EnvToken + "=" + token, contract.EnvPodUID + "=pod"}
	s.cmd.Stderr = &s.said
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "metrics.sock"))
	}}}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	return s, s.awaitReady(ctx)
}

// awaitReady waits until the sidecar is ready, as the pod does before it starts the
// program: what is there before that is of an earlier run.
func (s *sidecar) awaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(s.dir, "ready"))
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the sidecar is not ready: %w\n%s", err, s.said.String())
	}
	return nil
}

// feed writes the input piece by piece, each once the one before was read.
func (cfg config) feed(ctx context.Context, w workload, s *sidecar) (points int, size int64, err error) {
	n, piece, wanted := 0, 0, int64(cfg.gb*1e9)
	for size < wanted {
		path, before := s.place(w, piece)
		if before != "" {
			if err := os.Rename(s.input, before); err != nil {
				return points, size, err
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return points, size, err
		}
		f, err := os.Create(path)
		if err != nil {
			return points, size, err
		}
		next, more, written, err := w.write(f, n, min(pieceBytes, wanted-size))
		if err := errors.Join(err, f.Close()); err != nil {
			return points, size, err
		}
		n, points, size, piece = next, points+more, size+written, piece+1
		if err := s.awaitPoints(ctx, points); err != nil {
			return points, size, err
		}
		if before != "" {
			err = os.Remove(before)
		} else if w.format == "events" && piece > 1 {
			err = os.Remove(filepath.Join(s.input, eventFile(piece-2)))
		}
		if err != nil {
			return points, size, err
		}
	}
	return points, size, nil
}

func eventFile(piece int) string {
	return fmt.Sprintf("events.out.tfevents.%010d.host", 1_790_000_000+piece)
}

// place is where a piece goes. A log that is there is renamed to before.
func (s *sidecar) place(w workload, piece int) (path, before string) {
	if w.format == "events" {
		return filepath.Join(s.input, eventFile(piece)), ""
	}
	if piece > 0 {
		before = s.input + "." + strconv.Itoa(piece)
	}
	return s.input, before
}

// awaitPoints waits until the sidecar has read so many points and all of them
// are acknowledged, or left out by the cap.
func (s *sidecar) awaitPoints(ctx context.Context, points int) error {
	var done float64
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 20*time.Minute, true, func(ctx context.Context) (bool, error) {
		m, err := s.metrics(ctx) // an error: it is not up yet
		if err == nil {
			done = m["vernier_collector_points_sent_total"] + m["vernier_collector_points_capped_total"]
		}
		if int(done) > points {
			return false, errors.New("that is too many")
		}
		return int(done) == points, nil
	})
	if err != nil {
		return fmt.Errorf("%v points were sent or left out, and %d written: %w\n%s", done, points, err, s.said.String())
	}
	return nil
}

// metrics are the sidecar's own, those without labels.
func (s *sidecar) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://collector/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, err // not up yet
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = v
		}
	}
	return values, err
}

// cpu is the CPU time that the sidecar has used.
func (s *sidecar) cpu() (time.Duration, error) {
	process, err := procfs.NewProc(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// idle is the part of a core that the sidecar takes while nothing happens.
func (s *sidecar) idle(ctx context.Context, d time.Duration) (float64, error) {
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := s.cpu()
	return (after - before).Seconds() / d.Seconds(), err
}

// peakOf is the largest resident size of a process, in bytes. The figure of wait4
// includes the process that it was forked from.
func peakOf(pid int) (int64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return int64(status.VmHWM), err
}

func (s *sidecar) stop() error {
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the sidecar: %w\n%s", err, s.said.String())
	}
	return nil
}
