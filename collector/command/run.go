package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source"
)

// defaultGrace is the time from SIGTERM to exit. The kubelet's own default is 30
// seconds.
const defaultGrace = 25 * time.Second

// hedge is how long after SIGTERM the service is waited for before the summary is
// written for the first time. A node that goes down, or a kubelet that is short of
// memory, does not leave the grace that the pod was promised.
const hedge = time.Second

// runConfig is what "collector run" was told.
type runConfig struct {
	kind, dir, path, format string
	metrics, filters        words
	trial                   string
	parameters              words
	url                     string
	headers                 string // a line for each
	install                 string // where this program is copied to
	sharedNetwork           bool
	grace                   time.Duration
	terminationLog          string
	undelivered             bool // a summary of what is stored is not wanted
	podUID                  string
	rate                    int64
	metricsAt               string
	pushToken               string
	pushAddress             string
	katibAddress            string
	service                 report.DialConfig
	// echo gets the program's lines: Katib's SDK shows the sidecar's log as the
	// program's.
	echo io.Writer
}

// words is a flag that may be given many times.
type words []string

func (w *words) String() string { return strings.Join(*w, " ") }

func (w *words) Set(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	*w = append(*w, s)
	return nil
}

func parseRun(args []string, env func(string) string, stderr io.Writer) (runConfig, error) {
	cfg := runConfig{
		podUID:    env(contract.EnvPodUID),
		pushToken: env(contract.EnvPushToken),
		headers:   env(contract.EnvScrapeHeaders),
		service:   report.DialConfig{URL: env(contract.EnvURL), Token: env(contract.EnvToken), CA: env(contract.EnvCA), Traceparent: env(contract.EnvTraceparent)},
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.kind, contract.FlagKind, "", "StdOut, File, TensorFlowEvent, PrometheusMetric or Push")
	flags.StringVar(&cfg.dir, contract.FlagDir, contract.DefaultDir, "directory shared with the measured container")
	flags.StringVar(&cfg.path, contract.FlagPath, "", "file (File), directory (TensorFlowEvent, and File if it ends with a slash) or socket (Push)")
	flags.StringVar(&cfg.format, contract.FlagFormat, "TEXT", "TEXT, JSON or LOGFMT (StdOut, File), CSV (File), WANDB (a directory of File)")
	flags.StringVar(&cfg.url, contract.FlagURL, "", "endpoint (PrometheusMetric); headers for it are in "+contract.EnvScrapeHeaders+", a line for each")
	flags.BoolVar(&cfg.sharedNetwork, contract.FlagSharedNetwork, false, "other trials listen on this network too: make sure that the endpoint is this trial's")
	flags.StringVar(&cfg.trial, contract.FlagTrial, "", "name of the trial (Push, and for TensorBoard)")
	flags.Var(&cfg.parameters, contract.FlagParameter, "\"NAME=VALUE\" of a parameter, for TensorBoard and to compare with what the program records (TensorFlowEvent); may be repeated")
	flags.Var(&cfg.filters, contract.FlagFilter, "regular expression that finds name and value in a line; may be repeated")
	flags.Var(&cfg.metrics, contract.FlagMetric, "metric to collect, the objective first; may be repeated")
	flags.StringVar(&cfg.install, contract.FlagInstall, "", "copy this program there first")
	flags.DurationVar(&cfg.grace, contract.FlagGrace, defaultGrace, "time from SIGTERM to exit")
	flags.StringVar(&cfg.terminationLog, contract.FlagTerminationLog, contract.DefaultTerminationLog, "file for the summary")
	flags.BoolVar(&cfg.undelivered, flagUndelivered, false, "leave a summary only of what is not stored")
	flags.Int64Var(&cfg.rate, contract.FlagRate, report.DefaultRate, "points a second of a metric that are kept in the long run; 0 keeps all")
	flags.StringVar(&cfg.metricsAt, contract.FlagMetrics, "", "unix socket or host:port that serves this program's own metrics, or off (default: metrics.sock in --dir)")
	flags.StringVar(&cfg.pushAddress, contract.FlagPushAddress, "", "loopback address that takes metrics beside the socket (Push)")
	flags.StringVar(&cfg.katibAddress, contract.FlagKatibAddress, "", "loopback address of Katib's report_metrics (Push)")
	if err := flags.Parse(args); err != nil {
		return cfg, errSaid
	}
	if cfg.metricsAt == "" {
		cfg.metricsAt = filepath.Join(cfg.dir, metricsSocket)
	}
	switch {
	case cfg.pushAddress != "" && cfg.pushToken == "":
		return cfg, fmt.Errorf("%s is not set; --%s needs it", contract.EnvPushToken, contract.FlagPushAddress)
	case cfg.katibAddress != "" && cfg.trial == "":
		return cfg, fmt.Errorf("--%s needs the trial's name: --%s=NAME", contract.FlagKatibAddress, contract.FlagTrial)
	case flags.NArg() > 0:
		return cfg, noArguments(flags.Args())
	case len(cfg.metrics) == 0:
		return cfg, fmt.Errorf("name at least the objective: --%s=NAME", contract.FlagMetric)
	case cfg.podUID == "":
		return cfg, fmt.Errorf("%s is not set; take it from metadata.uid", contract.EnvPodUID)
	case cfg.rate < 0:
		return cfg, fmt.Errorf("--%s must not be negative", contract.FlagRate)
	case cfg.grace <= 0:
		return cfg, fmt.Errorf("--%s must be positive", contract.FlagGrace)
	}
	return cfg, nil
}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if i := slices.Index(args, "--"); i >= 0 {
		return runProgram(ctx, args[:i], args[i+1:], stdout, stderr)
	}
	// First of all: until then, SIGTERM ends the process.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	cfg, err := parseRun(args, os.Getenv, stderr)
	if err != nil {
		return fail(stderr, exitUsage, "run", err)
	}
	if cfg.install != "" {
		if err := installSelf(cfg.install); err != nil {
			return fail(stderr, exitFailed, "run", err)
		}
	}
	cfg.echo = stdout
	// One runs beside every trial: memory counts more than the time that the
	// garbage collector takes, which is little but on large inputs.
	_ = smallPages()
	debug.SetGCPercent(10)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	logger, p := slog.New(slog.NewTextHandler(stderr, nil)), newPhases()
	defer p.drain()
	r, err := newRunner(p.draining, cfg, logger, p.hedged)
	if err != nil {
		return fail(stderr, exitUsage, "run", err)
	}
	go p.obey(signals, cfg.grace, cancel)
	h := newHparams(cfg, time.Now())
	r.mind(h.start())
	err = r.run(ctx)
	if errors.Is(err, report.ErrNotDelivered) && source.Closed(p.hedged) && ctx.Err() == nil {
		// The summary is written. What is not delivered is read again, as it is by a
		// sidecar that was killed.
		cfg.echo = io.Discard
		if r, err = newRunner(p.draining, cfg, logger, p.abandoned); err == nil {
			err = r.run(ctx)
		}
	}
	r.mind(h.end(time.Now()))
	if err != nil {
		return fail(stderr, exitFailed, "run", err)
	}
	return 0
}

// phases are those of the end.
type phases struct {
	// draining ends with the first SIGTERM.
	draining context.Context //nolint:containedctx // the life of the program, not of a call
	drain    context.CancelFunc
	// hedged is closed when the summary is due, and abandoned when the service is
	// given up.
	hedged, abandoned chan struct{}
}

func newPhases() phases {
	p := phases{hedged: make(chan struct{}), abandoned: make(chan struct{})}
	p.draining, p.drain = context.WithCancel(context.Background())
	return p
}

// obey turns signals into the phases of the end. After the first, sources drain; a
// little later all that is not delivered is read for the summary, and tried again;
// after four fifths of the grace, the service is given up and the rest is read
// for the summary only; at the end of the grace, or on a second SIGINT, all stops. A
// kubelet that was restarted sends SIGTERM again: then the summary is due at once.
func (p phases) obey(signals <-chan os.Signal, grace time.Duration, cancel context.CancelFunc) {
	<-signals
	p.drain()
	hedged, abandoned, end := time.NewTimer(min(hedge, grace/2)), time.NewTimer(grace*4/5), time.NewTimer(grace)
	for {
		select {
		case <-hedged.C:
			close(p.hedged)
		case <-abandoned.C:
			close(p.abandoned)
		case <-end.C:
			cancel()
			return
		case s := <-signals:
			if s == unix.SIGINT {
				cancel()
				return
			}
			if !source.Closed(p.hedged) {
				hedged.Reset(0)
			}
		}
	}
}

// leave leaves the summary in the termination message. Where a program runs beside, the
// message is the program's: then only what is not stored is left, until it is stored.
func (cfg runConfig) leave(s contract.Summary) error {
	if !cfg.undelivered || !s.Final {
		return writeSummary(cfg.terminationLog, s)
	}
	had, err := os.ReadFile(cfg.terminationLog)
	if err != nil {
		return nil //nolint:nilerr // nothing was left
	}
	if _, err := contract.ParseSummary(string(had)); err != nil {
		return nil //nolint:nilerr // it is the program's
	}
	return os.Truncate(cfg.terminationLog, 0)
}

// writeSummary writes the termination message. The kubelet mounts the file, so
// it is written in place; and where it did not, nothing is made in /dev.
func writeSummary(path string, s contract.Summary) error {
	b, err := s.Marshal()
	if err != nil {
		return err
	}
	mode := os.O_WRONLY | os.O_TRUNC | os.O_CREATE
	if path == contract.DefaultTerminationLog {
		mode &^= os.O_CREATE
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
