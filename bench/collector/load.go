package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
)

// loadConfig describes the load.
type loadConfig struct {
	store                    string
	trials, metrics, seconds int
	maxLag                   time.Duration
}

// loads loads SQLite and the other stores. It fails when a point is lost, doubled,
// wrong or late; what was seen is in the table all the same.
func (cfg config) loads(ctx context.Context) (rows table, remark string, failures error) {
	rows.add("store", "trials", "points a second", "points stored", "lost", "doubled or wrong",
		"lag p50", "p99", "largest", "CPU of the service", "its memory", "bytes a point")
	dir, err := os.MkdirTemp(cfg.dir, "bench-load-*")
	if err != nil {
		return rows, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, url := range append([]string{"sqlite:" + filepath.Join(dir, "points.db")}, cfg.stores...) {
		load := cfg.load
		load.store = url
		r, err := load.measure(ctx)
		if err == nil {
			rows.add(r.row()...)
			err = r.check()
		}
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("load of %s: %w", scheme(url), err))
		}
	}
	return rows, "", failures
}

// result is what a load showed.
type result struct {
	cfg    loadConfig
	stored outcome
	lags   *lags
	use    consumption
	size   float64 // bytes a point; 0 when unknown
}

func (cfg loadConfig) measure(ctx context.Context) (r result, err error) {
	r.cfg = cfg
	key := make([]byte, report.MinKeySize)
	rand.Read(key)
	service, err := startService(ctx, cfg.store, key)
	if err != nil {
		return r, err
	}
	r.lags, err = cfg.report(ctx, service.url, key)
	use, stopped := service.stop()
	if err := errors.Join(err, stopped); err != nil {
		return r, err
	}
	r.use = use
	if r.stored, err = cfg.verify(ctx); err != nil {
		return r, err
	}
	if path, ok := strings.CutPrefix(cfg.store, "sqlite:"); ok {
		info, err := os.Stat(path)
		if err != nil {
			return r, err
		}
		r.size = float64(info.Size()) / float64(max(r.stored.points, 1))
	}
	return r, nil
}

func (r result) row() []string {
	size := "-"
	if r.size > 0 {
		size = fmt.Sprintf("%.1f", r.size)
	}
	return []string{scheme(r.cfg.store), fmt.Sprint(r.cfg.trials), fmt.Sprint(r.cfg.trials * r.cfg.metrics), fmt.Sprint(r.stored.points),
		fmt.Sprint(r.stored.lost), fmt.Sprint(r.stored.doubled + r.stored.wrong),
		r.lags.quantile(.5).String(), r.lags.quantile(.99).String(), r.lags.quantile(1).String(),
		fmt.Sprintf("%.0f %% of a core", 100*r.use.cpu.Seconds()/r.use.wall.Seconds()), fmt.Sprintf("%d MiB", r.use.maxRSS>>20), size}
}

func (r result) check() error {
	if n := r.stored.lost + r.stored.doubled + r.stored.wrong; n > 0 {
		return fmt.Errorf("%d points are not as they were reported", n)
	}
	if worst := r.lags.quantile(1); worst > r.cfg.maxLag {
		return fmt.Errorf("a point took %v; %v are allowed", worst, r.cfg.maxLag)
	}
	return nil
}

func scheme(url string) string {
	s, _, _ := strings.Cut(url, ":")
	return s
}

// service is a running serve.
type service struct {
	cmd   *exec.Cmd
	url   string
	begin time.Time
}

type consumption struct {
	cpu, wall time.Duration
	maxRSS    int64
}

func startService(ctx context.Context, store string, key []byte) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "serve", "-store", store, "-key", hex.EncodeToString(key))
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the report service did not start: %w", errors.Join(err, cmd.Wait()))
	}
	return &service{cmd, "http://" + strings.TrimSpace(address), time.Now()}, nil
}

// stop ends the service in any case, and says what it took.
func (s *service) stop() (consumption, error) {
	u := consumption{wall: time.Since(s.begin)}
	peak, unknown := peakOf(s.cmd.Process.Pid) // which is gone with the process
	if err := errors.Join(s.cmd.Process.Signal(unix.SIGTERM), s.cmd.Wait()); err != nil {
		return u, fmt.Errorf("stop the report service: %w", err)
	}
	u.cpu, u.maxRSS = s.cmd.ProcessState.UserTime()+s.cmd.ProcessState.SystemTime(), peak
	return u, unknown
}

// program stands in for a trial's program: every second it makes one point of
// each metric. The time of a point is when it was due, so that a slow generator
// counts as lag too.
type program struct {
	cfg   loadConfig
	trial int
	start time.Time
	drain chan struct{}
}

func (p *program) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		defer close(p.drain)
		for step := range p.cfg.seconds {
			due := p.start.Add(time.Duration(step) * time.Second)
			timer := time.NewTimer(time.Until(due))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			for m := range p.cfg.metrics {
				if !yield(p.point(step, m, due), nil) {
					return
				}
			}
		}
	}
}

func (p *program) point(step, metric int, due time.Time) collector.Point {
	return collector.Point{Metric: fmt.Sprintf("metric-%02d", metric), Value: valueOf(p.trial, step, metric),
		Step: int64(step), Time: due, Source: "stdout", Seq: int64(step*p.cfg.metrics + metric)}
}

// valueOf tells each point from all others.
func valueOf(trial, step, metric int) float64 {
	return float64(trial) + float64(step)/1e4 + float64(metric)/1e8
}

func trialOf(n int) collector.TrialID {
	name := fmt.Sprintf("load-%04d", n)
	return collector.TrialID{Namespace: "bench", Name: name, UID: name + "-uid"}
}

// report runs all trials, spread over the first second.
func (cfg loadConfig) report(ctx context.Context, url string, key []byte) (*lags, error) {
	all := &lags{}
	errs := make([]error, cfg.trials)
	begin := time.Now().Add(2 * time.Second) // for the connections
	var group sync.WaitGroup
	for n := range cfg.trials {
		token, err := report.Sign(key, report.Claims{Trial: trialOf(n), Expires: time.Now().Add(time.Hour)})
		if err != nil {
			return nil, err
		}
		client, err := report.Dial(report.DialConfig{URL: url, Token: token})
		if err != nil {
			return nil, err
		}
		p := &program{cfg, n, begin.Add(time.Duration(n) * time.Second / time.Duration(cfg.trials)), make(chan struct{})}
		group.Go(func() {
			_, errs[n] = report.NewClient(report.Config{
				Attempt: collector.Attempt{ID: "pod/0", Started: begin},
				Metrics: []string{"metric-00"},
				Sources: func(map[string]int64) ([]collector.Source, error) { return []collector.Source{p}, nil },
				Service: &timed{client, all}, Drain: p.drain, Rate: report.DefaultRate,
			}).Run(ctx)
		})
	}
	group.Wait()
	return all, errors.Join(errs...)
}

// lags collects how long points took.
type lags struct {
	mu  sync.Mutex
	all []time.Duration
}

// quantile is 0 when there are none.
func (l *lags) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[int(q*float64(len(l.all)-1))].Round(time.Millisecond)
}

// timed notes how old points are when their call is answered.
type timed struct {
	vernierv1.ReportServiceClient
	lags *lags
}

func (t *timed) Report(ctx context.Context, r *vernierv1.ReportRequest) (*vernierv1.ReportResponse, error) {
	answer, err := t.ReportServiceClient.Report(ctx, r)
	if err == nil {
		now := time.Now()
		points, err := report.DecodePoints(r.GetPoints())
		if err != nil {
			return nil, err
		}
		t.lags.mu.Lock()
		defer t.lags.mu.Unlock()
		for _, p := range points {
			t.lags.all = append(t.lags.all, now.Sub(p.Time))
		}
	}
	return answer, err
}

// outcome is what the store has, compared with what was reported.
type outcome struct{ points, lost, doubled, wrong int }

func (cfg loadConfig) verify(ctx context.Context) (o outcome, err error) {
	points, err := store.Open(ctx, cfg.store)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, points.Close()) }()
	for n := range cfg.trials {
		series, err := collector.ReadSeries(ctx, points, trialOf(n).UID)
		if err != nil {
			return o, err
		}
		if err := cfg.compare(&o, n, series); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (cfg loadConfig) compare(o *outcome, trial int, series []collector.Series) error {
	seen := map[[2]int]int{}
	for _, s := range series {
		var metric int
		if _, err := fmt.Sscanf(s.Metric, "metric-%d", &metric); err != nil {
			return fmt.Errorf("metric %q: %w", s.Metric, err)
		}
		for _, p := range s.Points {
			o.points++
			seen[[2]int{int(p.Step), metric}]++
			if p.Value != valueOf(trial, int(p.Step), metric) {
				o.wrong++
			}
		}
	}
	for step := range cfg.seconds {
		for metric := range cfg.metrics {
			switch n := seen[[2]int{step, metric}]; {
			case n == 0:
				o.lost++
			case n > 1:
				o.doubled += n - 1
			}
		}
	}
	return nil
}
