package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

const (
	// metricsSocket is where the metrics are served unless --metrics says
	// otherwise.
	metricsSocket = "metrics.sock"
	// metricsOff is the value of --metrics that serves none.
	metricsOff = "off"
	// maxSeries bounds the sources whose offsets are shown.
	maxSeries = 100
	// metricsPatience bounds a scrape.
	metricsPatience = 10 * time.Second
)

// metric is one family of the collector's own metrics. The exposition is written
// by hand: the usual library would add to a program that runs beside every trial.
type metric struct {
	name, kind, help string
	value            float64
}

func (r *runner) metrics(s report.Stats) []metric {
	count := func(name, help string, n int64) metric {
		return metric{"vernier_collector_" + name + "_total", "counter", help, float64(n)}
	}
	all := []metric{
		count("points_read", "Points found, each once for each start of the collector.", s.Read),
		count("points_sent", "Points that the report service has acknowledged.", s.Sent),
		count("points_capped", "Points left out by the cap on the rate.", s.Capped),
		count("points_refused", "Points that the report service did not accept.", s.Refused),
		count("points_undelivered", "Points given up because the service could not be reached in the time that there was, or stores no more of the trial.", s.Undelivered),
		count("unreadable", "Lines, records and files that could not be read.", s.Troubles),
		count("output_dropped_bytes", "Output removed before it was read, because the space for it was used up.", s.DroppedBytes),
		count("batches", "Calls that the report service has acknowledged.", s.Batches),
		count("batch_bytes", "Bytes in these calls.", s.Bytes),
		count("calls_failed", "Calls to the report service that failed and were tried again.", s.Retries),
		{"vernier_collector_lag_seconds", "gauge", "Seconds since the oldest point was read that is not acknowledged; 0 when there is none.", s.Lag.Seconds()},
		{"vernier_collector_spool_bytes", "gauge", "Bytes of output, pushed and scraped points kept in the shared directory.", float64(spoolBytes(r.cfg.dir))},
	}
	self, err := procfs.Self()
	if err != nil {
		return all // the system does not tell
	}
	if stat, err := self.Stat(); err == nil {
		all = append(all,
			metric{"process_cpu_seconds_total", "counter", "CPU time used by the collector.", stat.CPUTime()},
			metric{"process_resident_memory_bytes", "gauge", "Resident memory of the collector.", float64(stat.ResidentMemory())})
	}
	return all
}

// writeMetrics writes Prometheus's text format.
func (r *runner) writeMetrics(to io.Writer) error {
	w := bufio.NewWriter(to)
	s := r.statistics()
	const header = "# HELP %[1]s %[3]s\n# TYPE %[1]s %[2]s\n"
	for _, m := range r.metrics(s) {
		fmt.Fprintf(w, header+"%[1]s %[4]s\n", m.name, m.kind, m.help, strconv.FormatFloat(m.value, 'g', -1, 64))
	}
	offsets := func(name, help string, of func(report.SourceStats) int64) {
		fmt.Fprintf(w, header, name, "gauge", help+" (the first 100 sources).")
		for _, one := range s.Sources[:min(len(s.Sources), maxSeries)] {
			fmt.Fprintf(w, "%s{source=%s} %d\n", name, label(one.Name), of(one))
		}
	}
	offsets("vernier_collector_source_read_offset", "Place up to which a source was read", func(s report.SourceStats) int64 { return s.Read })
	offsets("vernier_collector_source_acked_offset", "Place up to which a source is stored", func(s report.SourceStats) int64 { return s.Acked })
	return w.Flush()
}

// label quotes the value of a label.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// spoolBytes is the size of what is kept in the shared directory. What cannot be
// looked at counts as nothing.
func spoolBytes(dir string) (sum int64) {
	size := func(path string) {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	size(filepath.Join(dir, pushJournal))
	size(filepath.Join(dir, scrapeSpool))
	streams, _ := outputsOf(dir)
	for _, path := range streams {
		size(path)
	}
	return sum
}

// serveMetrics serves the metrics until the returned function is called. That
// they cannot be served is said and is no reason not to measure.
func (r *runner) serveMetrics(ctx context.Context) (stop func()) {
	at := r.cfg.metricsAt
	if at == metricsOff {
		return func() {}
	}
	var l net.Listener
	err := os.MkdirAll(r.cfg.dir, 0o777)
	switch {
	case err != nil:
	case strings.Contains(at, "/"):
		l, err = listenUnix(ctx, at)
	default:
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	}
	if err != nil {
		r.log.Warn("the collector's own metrics are not served", "error", err)
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if err := r.writeMetrics(w); err != nil {
			r.log.Debug("a scrape was cut off", "error", err)
		}
	})
	server := &http.Server{Handler: mux, ReadTimeout: metricsPatience, WriteTimeout: metricsPatience, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.log.Warn("the collector's own metrics are served no more", "error", err)
		}
	}()
	return func() {
		_ = server.Close() // a scrape may be cut off
		<-served
	}
}

// metricsCommand prints what "collector run" serves: its image has no shell and
// no curl.
func metricsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	dir, rest, err := parseDir("metrics", args, stderr, nil)
	if err := cmp.Or(err, noArguments(rest)); err != nil {
		return fail(stderr, exitUsage, "metrics", err)
	}
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	if err := fetchMetrics(ctx, filepath.Join(dir, metricsSocket), stdout); err != nil {
		return fail(stderr, exitFailed, "metrics", err)
	}
	return 0
}

func fetchMetrics(ctx context.Context, socket string, to io.Writer) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://collector/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
			return fmt.Errorf("no collector serves its metrics at %s: is one running, and not with --%s elsewhere?", socket, contract.FlagMetrics)
		}
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", socket, answer.Status)
	}
	_, err = io.Copy(to, answer.Body)
	return err
}
