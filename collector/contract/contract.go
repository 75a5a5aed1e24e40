// Package contract holds what the manager, the collector and the pod of a trial
// agree on: names of environment variables, flags, files and addresses, and the
// format of the sidecar's termination message.
//
// What is secret, or known to the kubelet only, travels by environment; everything
// else is a flag of the collector command.
//
// The kubelet expands $(NAME) in commands and arguments: the injector doubles
// every "$" of a value that it writes itself (filters above all), and leaves
// the user's own argv as it is.
//
// The pod of a trial gets one emptyDir, mounted at DefaultDir in the containers
// named here:
//
//	native sidecar    collector run --kind=StdOut --dir=DefaultDir --install=DefaultBinary --metric=loss
//	primary container DefaultDir/bin/collector exec --dir=DefaultDir -- <original argv>   (StdOut only)
//
// Where nodes mount images, the pod needs no sidecar for StdOut. The collector's image is
// mounted at ImageDir:
//
//	primary container ImageBinary run --kind=StdOut --dir=DefaultDir --metric=loss -- <original argv>
//
// The sidecar needs EnvURL, EnvToken, EnvPodUID and, for https with a private
// authority, EnvCA. It writes its summary to its termination message path, so
// terminationMessagePolicy stays File.
package contract

// Environment of the sidecar and, where stated, of the primary container.
const (
	// EnvURL is the address of the report service: "http://host:port" (HTTP/2
	// without TLS) or "https://host:port".
	EnvURL = "VERNIER_REPORT_URL"
	// EnvToken is the trial's token, made by report.Sign.
	EnvToken = "VERNIER_REPORT_TOKEN"
	// EnvCA is the authority that signed the service's certificate, as PEM or
	// base64 of PEM. Empty means the system's authorities.
	EnvCA = "VERNIER_REPORT_CA"
	// EnvTraceparent is the span that reports belong to, as W3C names it; unset where
	// nothing is traced.
	EnvTraceparent = "TRACEPARENT"
	// EnvPodUID is the pod's UID, by the downward API (metadata.uid).
	EnvPodUID = "VERNIER_POD_UID"
	// EnvScrapeHeaders are headers sent to the endpoint (PrometheusMetric), a line
	// "Name: value" for each. They may be secret.
	EnvScrapeHeaders = "VERNIER_SCRAPE_HEADERS"
	// EnvPushSocket names, for the primary container of a trial that pushes, the
	// unix socket on which the sidecar listens (PushSocket unless FlagPath
	// says otherwise).
	EnvPushSocket = "VERNIER_PUSH_SOCKET"
)

// Flags of "collector run". FlagDir is a flag of "collector exec" too.
const (
	// FlagKind is StdOut, File, TensorFlowEvent, PrometheusMetric or Push.
	FlagKind = "kind"
	// FlagDir is the shared emptyDir. Default DefaultDir.
	FlagDir = "dir"
	// FlagInstall is where the collector is copied to before it is ready, for the
	// container whose program it starts.
	FlagInstall = "install"
	// FlagPath is the file (File), the directory (TensorFlowEvent, and File where
	// it ends with a slash) or the socket (Push). The other kinds take none.
	FlagPath = "path"
	// FlagFormat is TEXT, JSON or LOGFMT (StdOut and File), CSV (File) or WANDB (a
	// directory of File). Default TEXT.
	FlagFormat = "format"
	// FlagURL is the endpoint (PrometheusMetric).
	FlagURL = "url"
	// FlagSharedNetwork says that other trials' programs listen on the same
	// network, as on the host of the embedded mode: an endpoint on loopback is
	// read only while the program behind it has EnvPodUID as the sidecar has it.
	FlagSharedNetwork = "shared-network"
	// FlagFilter is a regular expression of Katib's metricsFormat; may be given
	// many times. Default: Katib's own.
	FlagFilter = "filter"
	// FlagMetric names a metric to collect; given once for each, the objective
	// first.
	FlagMetric = "metric"
	// FlagTrial is the name of the trial and FlagParameter a parameter of it,
	// "NAME=VALUE", given once for each. They are written beside the event files
	// for TensorBoard (TensorFlowEvent). Push has the trial's name too.
	FlagTrial     = "trial"
	FlagParameter = "parameter"
	// FlagGrace bounds the time from SIGTERM to exit. Set
	// it some seconds below the pod's terminationGracePeriodSeconds.
	FlagGrace = "grace"
	// FlagTerminationLog is the container's terminationMessagePath. Default
	// DefaultTerminationLog.
	FlagTerminationLog = "termination-log"
	// FlagRate caps the points a second of each metric; see report.Config. Default
	// report.DefaultRate, 0 means no cap.
	FlagRate = "rate"
	// FlagMetrics is where the collector serves its own metrics: a path is a unix
	// socket, "host:port" a TCP port, "off" is nowhere. Default: the socket
	// "metrics.sock" in the shared directory.
	FlagMetrics = "metrics"
	// FlagCap bounds the bytes that "collector exec" keeps on disk for the
	// sidecar.
	FlagCap = "cap"
)

// Paths in the pod.
const (
	// ParentFile is in a trial's directory of checkpoints once it is complete, and holds
	// the name of the trial that they were copied from.
	ParentFile = ".vernier-parent"
	// TrialFile is there too, and holds the UID of the trial that the directory is of.
	TrialFile = ".vernier-trial"
	// DefaultDir is where the shared emptyDir is mounted.
	DefaultDir            = "/var/run/vernier"
	DefaultTerminationLog = "/dev/termination-log"
	// DefaultBinary is where the sidecar puts the collector.
	DefaultBinary = DefaultDir + "/bin/collector"
	// ImageDir is where the collector's image is mounted, and ImageBinary the collector
	// there: Vernier's image has it at /usr/local/bin.
	ImageDir    = "/var/run/vernier-collector"
	ImageBinary = ImageDir + "/usr/local/bin/collector"
	// PushSocket is the default of EnvPushSocket.
	PushSocket = DefaultDir + "/push.sock"
)
