package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/trainer"
)

type options struct {
	kubeconfig      string
	metricsAddress  string
	metricsCompat   string
	metricsNamed    int
	pprof           bool
	healthAddress   string
	reportAddress   string
	reportURL       string
	reportKeyFile   string
	apiTokenFile    string
	basePath        string
	endedLogs       []string
	volumes         string
	resolveImages   bool
	katibAddress    string
	store           string
	retention       store.Retention
	quota           server.Quota
	webhookAddress  string
	webhookCertDir  string
	collectorImage  string
	collectorMount  string
	collectorBinary string
	collectorRate   int64
	// What the collector beside a trial may use, and what is reserved for it.
	collectorCPU, collectorMemory               resource.QuantityValue
	collectorCPURequest, collectorMemoryRequest resource.QuantityValue

	access        access
	alerts        alerts
	limits        trial.Limits
	leaderElect   bool
	admissionOnly bool
	namespace     string
	embedded      bool
	imageCommands []string
	commands      trainer.Commands // of imageCommands
	operator      bool
	kubectl       string
	level         slog.Level
	logFormat     string
	version       bool
}

// namespaceFile tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// defaultQuota keeps one namespace to 2 of the 5 GiB of the default volume, with
// SQLite. 20,000,000 points are 5 hours of one metric at the collector's default
// rate.
func defaultQuota() server.Quota {
	return server.Quota{TrialPoints: 20_000_000, NamespacePoints: 50_000_000, NamespaceBytes: 2 << 30}
}

// The Services in config/manager and config/webhook.
const (
	serviceName    = "vernier-manager"
	webhookService = "vernier-webhook"
)

func parseFlags(args []string, output io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	f.SetOutput(output)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty: as a pod does")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "`address` of the Prometheus metrics; 0 for none; HTTPS, for those who may get the path /metrics by the cluster's RBAC; with --embedded HTTP, for all")
	f.BoolVar(&o.pprof, "pprof", false, "serve profiles of this process at /debug/pprof/ beside the metrics, for those who may get that path")
	f.StringVar(&o.metricsCompat, "metrics-compat", "", "katib: serve the metrics of Katib beside ours, under its `names`")
	f.IntVar(&o.metricsNamed, "metrics-experiments", 0, "serve the best value of the newest experiments, at most this `number`, with their names as labels")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz")
	f.StringVar(&o.reportAddress, "report-bind-address", ":9443", "`address` of the report service")
	f.StringVar(&o.reportURL, "report-url", "", "`URL` of the report service as pods reach it: http means no TLS; empty: the Service "+serviceName)
	f.StringVar(&o.reportKeyFile, "report-key-file", "", "`file` with the key that signs report tokens, made if absent; empty: a Secret")
	f.StringVar(&o.apiTokenFile, "api-token-file", "", "`file` with the token of the programmatic API, which is served beside the report service, made if absent; empty: the cluster knows its users")
	f.StringVar(&o.basePath, "dashboard-base-path", "/", "`path` below which browsers find the dashboard: what a proxy in front adds, such as /vernier/")
	o.access.flags(f)
	o.alerts.flags(f)
	f.StringVar(&o.katibAddress, "katib-bind-address", ":6789", "`address` of Katib's DBManager, without TLS: host:port, or unix:PATH, where metrics are only read; 0 for none; with --embedded, where pods have no addresses of their own, unix:PATH or none")
	f.StringVar(&o.store, "store", "sqlite:/var/lib/vernier/points.db", "`URL` of the store of points: sqlite:PATH, postgres://..., mysql://...; with a password: env:NAME or file:PATH, where the URL is")
	f.DurationVar(&o.retention.MaxAge, "store-max-age", 0, "delete the curves of experiments that have not reported for this `duration`, at least 2h; 0: never")
	f.IntVar(&o.retention.MaxExperiments, "store-max-experiments", 0, "keep the curves of this `number` of experiments, those that reported last; 0: of all")
	q := defaultQuota()
	f.Int64Var(&o.quota.TrialPoints, "store-max-points", q.TrialPoints, "take at most this `number` of points of one trial; 0: no limit")
	f.Int64Var(&o.quota.NamespacePoints, "store-max-namespace-points", q.NamespacePoints, "take at most this `number` of points of all trials of one namespace; 0: no limit")
	f.Int64Var(&o.quota.NamespaceBytes, "store-max-namespace-bytes", q.NamespaceBytes, "take at most this `number` of bytes of one namespace, 41 for each point and its text; 0: no limit")
	f.StringVar(&o.webhookAddress, "webhook-bind-address", ":8443", "`address` of the admission webhook; 0 for none")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", "", "`directory` with tls.crt and tls.key of the webhook; empty: from a Secret")
	o.collectorFlags(f)
	f.BoolVar(&o.resolveImages, "resolve-images", true, "ask the registry what an image runs, where a container whose output is collected names no command; not with --embedded")
	f.Func("ended-logs", "`word` of the command of vernier, with its flags, that prints the logs of trials whose pods are gone; once for each word", func(word string) error {
		o.endedLogs = append(o.endedLogs, word)
		return nil
	})
	f.StringVar(&o.volumes, "agent-root", "", "`directory` of the node agent of this machine, where the files of trials are read; empty: they are on other machines")
	f.DurationVar(&o.limits.Repair, "stuck-trial-timeout", 15*time.Minute, "fail a trial that is held up for this `duration` by what does not come by itself: an image, a volume, a permission; 0: never")
	f.DurationVar(&o.limits.Room, "queued-trial-timeout", 0, "fail a trial that waits for this `duration` for what other work may free: a node, a quota, a queue; 0: never")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "run the controllers only while holding a lease")
	f.BoolVar(&o.admissionOnly, "admission-only", false, "serve the admission webhook and nothing else; any number of replicas may")
	f.StringVar(&o.namespace, "namespace", "", "the manager's own `namespace`; empty: that of its pod")
	f.Func("image-command", "`IMAGE=COMMAND` that containers without a command run, where pods run without images; * in IMAGE stands for anything but a slash; may be given several times", func(pair string) error {
		o.imageCommands = append(o.imageCommands, pair)
		return nil
	})
	f.BoolVar(&o.embedded, "embedded", false, "run beside a local control plane: loopback only, no Secrets, key in --report-key-file")
	f.BoolVar(&o.operator, "operator", false, "run TFJobs, PyTorchJobs and their kin, of the kinds that config/operator defines, where no training operator does")
	f.StringVar(&o.kubectl, "operator-kubectl", "kubectl", "`command` in the launchers of MPIJobs by which mpirun starts processes in the workers (--operator)")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "least `level` that is logged: DEBUG, INFO, WARN, ERROR")
	f.StringVar(&o.logFormat, "log-format", "", "`json` or text; empty: json, and text with --embedded")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see --help", f.Arg(0))
	}
	return o, o.complete()
}

// collectorFlags defines what the collector beside a trial is, keeps and gets.
func (o *options) collectorFlags(f *flag.FlagSet) {
	f.StringVar(&o.collectorImage, "collector-image", registry+"/collector:"+version, "`image` of the collector of this version, with the command collector on its PATH")
	f.StringVar(&o.collectorMount, "collector-mount", "auto", "trials of the collector StdOut mount the collector's image in the program's container, instead of running it as a sidecar: never, always, or auto, `when` every node is known to mount images")
	f.Int64Var(&o.collectorRate, "collector-rate", 0, "points a second of each metric of a trial that are kept in the long run; less than 0: all; 0: the collector's default, 1000")
	f.StringVar(&o.collectorBinary, "collector-binary", "", "`path` of the collector on every node, where pods run without images; empty: the sidecar brings it")
	quantity := func(into *resource.QuantityValue, name, value, usage string) {
		into.Quantity = resource.MustParse(value)
		f.Var(into, name, usage)
	}
	quantity(&o.collectorCPURequest, "collector-cpu-request", "10m", "`quantity` of CPU that is reserved for the collector beside a trial")
	quantity(&o.collectorMemoryRequest, "collector-memory-request", "24Mi", "`quantity` of memory that is reserved for the collector beside a trial")
	quantity(&o.collectorCPU, "collector-cpu-limit", "1", "`quantity` of CPU that the collector beside a trial may use")
	quantity(&o.collectorMemory, "collector-memory-limit", "128Mi", "`quantity` of memory that the collector beside a trial may use")
}

// complete fills in what follows from other options and the surroundings.
func (o *options) complete() error {
	if err := store.CheckArgument(o.store); err != nil {
		return fmt.Errorf("--store %w", err)
	}
	if err := errors.Join(o.checkLimits(), o.checkCollector(), o.checkLogs(), o.access.check(), o.alerts.check()); err != nil {
		return err
	}
	if o.namespace == "" {
		if text, err := os.ReadFile(namespaceFile); err == nil {
			o.namespace = strings.TrimSpace(string(text))
		}
		o.namespace = cmp.Or(o.namespace, "vernier-system")
	}
	_, port, err := net.SplitHostPort(o.reportAddress)
	if err != nil {
		return fmt.Errorf("--report-bind-address %q: give host:port", o.reportAddress)
	}
	if o.reportURL == "" {
		o.reportURL = fmt.Sprintf("https://%s.%s.svc:%s", serviceName, o.namespace, port)
	}
	u, err := url.Parse(o.reportURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--report-url %q: give http://host:port or https://host:port", o.reportURL)
	}
	if o.commands, err = trainer.ParseCommands(o.imageCommands); err != nil {
		return fmt.Errorf("--image-command: %w", err)
	}
	if o.apiTokenFile != "" && o.access.given() {
		return errors.New("--api-token-file is for one user: give no --oidc-issuer-url, --requestheader-username-headers or --impersonate with it")
	}
	if o.embedded && o.pprof {
		return errors.New("--pprof needs the accounts of a cluster: do not give it with --embedded")
	}
	if o.embedded && o.reportKeyFile == "" {
		return fmt.Errorf("--embedded needs --report-key-file: there is no Secret to keep the key in")
	}
	if _, socket := o.katibSocket(); o.katibAddress == "0" || o.embedded && !socket {
		o.katibAddress = ""
	}
	if o.webhookAddress == "" || o.webhookAddress == "0" {
		o.webhookAddress = ""
		if o.admissionOnly {
			return errors.New("--admission-only needs --webhook-bind-address")
		}
		return nil
	}
	if _, _, err := o.webhookHostPort(); err != nil {
		return err
	}
	if o.embedded && o.webhookCertDir == "" {
		o.webhookAddress = ""
	}
	return nil
}

// checkLimits checks what bounds the store, the waits and the metrics.
func (o *options) checkLimits() error {
	if r := o.retention; r.MaxExperiments < 0 || r.MaxAge != 0 && r.MaxAge < store.MinAge {
		return fmt.Errorf("--store-max-age %s, --store-max-experiments %d: give a duration of at least %s and a number above 0, or 0 for no limit",
			r.MaxAge, r.MaxExperiments, store.MinAge)
	}
	if min(o.limits.Repair, o.limits.Room) < 0 {
		return fmt.Errorf("--stuck-trial-timeout %s, --queued-trial-timeout %s: give durations above 0, or 0 for no limit", o.limits.Repair, o.limits.Room)
	}
	if q := o.quota; min(q.TrialPoints, q.NamespacePoints, q.NamespaceBytes) < 0 {
		return fmt.Errorf("--store-max-points %d, --store-max-namespace-points %d, --store-max-namespace-bytes %d: give numbers above 0, or 0 for no limit",
			q.TrialPoints, q.NamespacePoints, q.NamespaceBytes)
	}
	if o.metricsCompat != "" && o.metricsCompat != "katib" || o.metricsNamed < 0 {
		return fmt.Errorf("--metrics-compat %q, --metrics-experiments %d: give katib or nothing, and a number that is not negative", o.metricsCompat, o.metricsNamed)
	}
	return nil
}

// checkCollector checks what the collector beside a trial gets.
func (o *options) checkCollector() error {
	if !slices.Contains([]string{"never", "auto", "always"}, o.collectorMount) {
		return fmt.Errorf("--collector-mount %q: give never, auto or always", o.collectorMount)
	}
	for name, of := range map[string][2]resource.Quantity{
		"cpu":    {o.collectorCPURequest.Quantity, o.collectorCPU.Quantity},
		"memory": {o.collectorMemoryRequest.Quantity, o.collectorMemory.Quantity},
	} {
		if of[0].Sign() < 0 || of[1].Sign() <= 0 || of[0].Cmp(of[1]) > 0 {
			return fmt.Errorf("--collector-%s-request %s, --collector-%s-limit %s: give a limit above 0 and a request up to it", name, of[0].String(), name, of[1].String())
		}
	}
	return nil
}

// checkLogs fills in the format of logs.
func (o *options) checkLogs() error {
	if o.level < slog.LevelDebug {
		return fmt.Errorf("--log-level %s: give DEBUG at least, since below it client-go logs requests with the tokens in them", o.level)
	}
	if o.logFormat == "" && o.embedded {
		o.logFormat = "text"
	}
	if o.logFormat = cmp.Or(o.logFormat, "json"); o.logFormat != "json" && o.logFormat != "text" {
		return fmt.Errorf("--log-format %q: give json or text", o.logFormat)
	}
	return nil
}

// katibSocket is the path of the unix socket of Katib's DBManager, if it has one.
func (o *options) katibSocket() (path string, ok bool) {
	return strings.CutPrefix(o.katibAddress, "unix:")
}

// resolvesImages: the embedded mode runs no images.
func (o *options) resolvesImages() bool {
	return o.resolveImages && !o.embedded && o.collectorBinary == ""
}

func (o *options) reportTLS() bool { return strings.HasPrefix(o.reportURL, "https:") }

// reportHost is by which name or address pods reach the report service.
func (o *options) reportHost() string {
	u, err := url.Parse(o.reportURL)
	if err != nil {
		return "" // complete has refused it
	}
	return u.Hostname()
}

func (o *options) webhookHostPort() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.webhookAddress)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port <= 0 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-bind-address %q: give host:port", o.webhookAddress)
	}
	return host, port, nil
}

// needsSecret says whether the key or a certificate comes from the Secret.
func (o *options) needsSecret() bool {
	return o.reportKeyFile == "" || o.reportTLS() || o.webhookAddress != "" && o.webhookCertDir == ""
}
