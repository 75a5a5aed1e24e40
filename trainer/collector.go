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
// Environment variables make programs write such files.
const FormatWandb = "WANDB"

// Labels of a trial's job and pods, as Katib's.
const (
	LabelExperiment = "katib.kubeflow.org/experiment"
	LabelTrial      = "katib.kubeflow.org/trial"
)

// LabelInject, with the value InjectAtPod, marks a job whose pods get the collector when
// they are created, and as far as its controller copies labels, those pods.
const (
	LabelInject = "vernier.ml/collector"
	InjectAtPod = "at-pod"
)

// AnnotationNotInjected is why a pod came without its collector.
const AnnotationNotInjected = "vernier.ml/not-injected"

// Names of what Inject adds. Katib's SDK finds the sidecar by its name.
const (
	// SidecarLogger is the sidecar of the collectors StdOut and File.
	SidecarLogger = "metrics-logger-and-collector"
	// Sidecar is the sidecar of the other collectors.
	Sidecar = "metrics-collector"
	// InstallContainer copies the collector into the pod for CheckpointContainer, which
	// runs before the sidecar.
	InstallContainer = "vernier-install"
	// MetricsVolume is shared by the sidecar and the primary container.
	MetricsVolume = "vernier-metrics"
	// SourceVolume holds the files that the primary container writes, unless the
	// template mounts a volume there.
	SourceVolume = "vernier-source"
	// ImageVolume is the collector's image, where there is no sidecar.
	ImageVolume = "vernier-collector"
	// EnvTrialName is the variable with the name of the trial.
	EnvTrialName = "KATIB_TRIAL_NAME"
	// EnvTrialSeed is the variable with the seed of the trial.
	EnvTrialSeed = "VERNIER_TRIAL_SEED"
	// EnvMetricsPort is the variable with the port that is scraped
	// (PrometheusMetric).
	EnvMetricsPort = "VERNIER_METRICS_PORT"
)

// Collector says what is injected into a job.
type Collector struct {
	// Image of the sidecar, with the command "collector" on its PATH.
	Image string
	// Mount says that every node can mount Image as a volume, with the program where
	// Vernier's own image has it: the pods of Jobs then need no sidecar for StdOut.
	Mount bool
	// Binary is the path of the collector command in the primary container if it is
	// there already, as in the embedded mode. If empty, the sidecar copies itself
	// into the pod where the program is started by it.
	Binary string
	// ImagePullPolicy of the sidecar. Default: Kubernetes' own.
	ImagePullPolicy corev1.PullPolicy
	// Kind is StdOut, File, TensorFlowEvent, PrometheusMetric, Push or Custom.
	Kind string
	// Custom is the user's collector container (Custom).
	Custom *corev1.Container
	// Path is the absolute path of the file or directory (File, TensorFlowEvent,
	// Custom). It is optional for Custom.
	Path string
	// Directory says that the Path of a File or Custom collector is a directory.
	Directory bool
	// Format of what is read (StdOut and File), as in the API. Empty means TEXT.
	Format string
	// Endpoint is what is scraped (PrometheusMetric).
	Endpoint Endpoint
	// Filters are the regular expressions of Katib's metricsFormat. Default:
	// Katib's.
	Filters []string
	// Metrics to collect, the objective first.
	Metrics []string
	// Rate caps the points per second of each metric that are kept in the long run.
	// 0 means the collector's default, negative no cap.
	Rate int64
	// Parameters of the trial. The collector writes them beside event files for
	// TensorBoard, and compares them with those that the program records there
	// (TensorFlowEvent). If there are none, it does neither.
	Parameters map[string]string
	// Experiment and Trial are the names that go into the labels.
	Experiment, Trial string
	// Number of the trial in the experiment; below 0 if it has none.
	Number int
	// Seed of the trial; empty if it has none.
	Seed string
	// Labels of the trial, which the job and its pods get too.
	Labels map[string]string
	// ReportURL is the address of the report service.
	ReportURL string
	// Token lets the pod report for this trial only.
	Token string
	// Traceparent is the span that reports belong to, as W3C names it. Default: none.
	Traceparent string
	// CA is the PEM certificate of the authority that signed the report service's
	// certificate. Default: the system's authorities.
	CA string
	// PrimaryContainer is the container whose metrics are collected.
	PrimaryContainer string
	// PrimaryPodLabels select the pods whose metrics are collected.
	PrimaryPodLabels map[string]string
	// Resources of the sidecar.
	Resources corev1.ResourceRequirements
	// Grace is the pod's termination grace period if the template sets none, so
	// that the last points can be sent. Zero leaves the template unchanged.
	Grace time.Duration
	// RerunDisrupted makes a Job replace a disrupted pod (whose node went down)
	// without counting a failure; see rerunDisrupted.
	RerunDisrupted bool
	// Entrypoint finds the entrypoint and the command of an image, for a container that
	// names no command (StdOut). Nil: such a container is an error.
	Entrypoint func(Image) (entrypoint, command []string, err error)
	// Commands are what images run, for containers of any collector that name no command.
	// They come before Entrypoint.
	Commands Commands
	// Checkpoints is the trial's directory for checkpoints; nil if it has none.
	Checkpoints *Checkpoints
}

// Image is that of a container, with what its registry may ask for.
type Image struct {
	Name, Namespace string
	// ServiceAccount of the pod; empty: the default one.
	ServiceAccount string
	// PullSecrets of the pod, by name.
	PullSecrets []string
}

// sidecar is the name of the container that collects.
func (c Collector) sidecar() string { return SidecarOf(c.Kind) }

// SidecarOf is the name of the sidecar for a kind of collector.
func SidecarOf(kind string) string {
	if kind == StdOut || kind == File {
		return SidecarLogger
	}
	return Sidecar
}
