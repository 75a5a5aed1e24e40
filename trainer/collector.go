package trainer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kinds of collector that Inject knows, as in Katib's metricsCollectorSpec.
const (
	StdOut           = "StdOut"
	File             = "File"
	TensorFlowEvent  = "TensorFlowEvent"
	PrometheusMetric = "PrometheusMetric"
	Push             = "Push"
	Custom           = "Custom"
)

// FormatWandb is the format of the files that Weights & Biases writes offline.
// Programs are told to write such files by their environment.
const FormatWandb = "WANDB"

// Labels of a trial's job and pods, as Katib's.
const (
	LabelExperiment = "katib.kubeflow.org/experiment"
	LabelTrial      = "katib.kubeflow.org/trial"
)

// Names that Inject gives to what it adds. Katib's SDK finds the sidecar by its
// name.
const (
	// SidecarLogger is the sidecar of the collectors StdOut and File.
	SidecarLogger = "metrics-logger-and-collector"
	// Sidecar is the sidecar of the other collectors.
	Sidecar = "metrics-collector"
	// InstallContainer copies the collector into the pod (StdOut).
	InstallContainer = "vernier-install"
	// MetricsVolume is shared by sidecar and primary container.
	MetricsVolume = "vernier-metrics"
	// SourceVolume holds the files that the primary container writes, unless
	// it mounts a volume there itself.
	SourceVolume = "vernier-source"
	// EnvTrialName tells a program the name of its trial.
	EnvTrialName = "KATIB_TRIAL_NAME"
	// EnvMetricsPort tells a program the port that is scraped (PrometheusMetric).
	EnvMetricsPort = "VERNIER_METRICS_PORT"
)

// Collector says what is injected into a job.
type Collector struct {
	// Image of the sidecar; it has the command "collector" on its PATH.
	Image string
	// Binary is the collector command as the primary container finds it, where it
	// is there already: on the host of the embedded mode. Empty means that an init
	// container puts it into the pod (StdOut).
	Binary string
	// ImagePullPolicy of the sidecar. Default: Kubernetes' own.
	ImagePullPolicy corev1.PullPolicy
	// Kind is StdOut, File, TensorFlowEvent, PrometheusMetric, Push or Custom.
	Kind string
	// Custom is the container that collects (Custom). It is not changed.
	Custom *corev1.Container
	// Path is the file or directory (File, TensorFlowEvent, Custom); absolute. A
	// Custom collector may have none.
	Path string
	// Directory says that the Path of a File or Custom collector is a directory.
	Directory bool
	// Format of what is read (StdOut and File), as in the API. Empty means TEXT.
	Format string
	// Endpoint is what is scraped (PrometheusMetric).
	Endpoint Endpoint
	// Filters are regular expressions of Katib's metricsFormat. None means
	// Katib's default.
	Filters []string
	// Metrics to collect, the objective first.
	Metrics []string
	// Rate caps the points a second of each metric that are kept in the long run.
	// 0 means the collector's default, less than 0 no cap.
	Rate int64
	// Parameters of the trial, which the collector writes beside event files for
	// TensorBoard, and compares with those that the program records there
	// (TensorFlowEvent). None: neither is done.
	Parameters map[string]string
	// Experiment and Trial are the names that go into the labels.
	Experiment, Trial string
	// Labels of the trial, given to the job and its pods too.
	Labels map[string]string
	// ReportURL is the address of the report service.
	ReportURL string
	// Token lets the pod report for this trial only.
	Token string
	// CA signed the report service's certificate, as PEM. Empty means the
	// system's authorities.
	CA string
	// PrimaryContainer is the container whose metrics are collected.
	PrimaryContainer string
	// PrimaryPodLabels select the pods whose metrics are collected.
	PrimaryPodLabels map[string]string
	// Resources of the sidecar.
	Resources corev1.ResourceRequirements
	// Grace is the pod's termination grace period where the template sets none,
	// so that the last points can be sent. Zero leaves the template as it is.
	Grace time.Duration
	// RerunDisrupted has a Job run a pod again that was disrupted (its node went
	// down), without counting a failure; see rerunDisrupted.
	RerunDisrupted bool
}

// sidecar is the name of the container that collects.
func (c Collector) sidecar() string { return SidecarOf(c.Kind) }

// SidecarOf is the name of the sidecar of a kind of collector.
func SidecarOf(kind string) string {
	if kind == StdOut || kind == File {
		return SidecarLogger
	}
	return Sidecar
}
