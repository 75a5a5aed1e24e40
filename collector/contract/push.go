package contract

import "strings"

// What a trial of the kind Push finds in its environment, beside EnvPushSocket.
// What the template sets itself is left as it is.
const (
	// EnvPushURL takes reports: POST a JSON object to it.
	EnvPushURL = "VERNIER_PUSH_URL"
	// EnvMLflow is read by MLflow's client.
	EnvMLflow = "MLFLOW_TRACKING_URI"
	// EnvTrainerURL and EnvTrainerToken are read by Kubeflow's SDK and by HF
	// Transformers. The second is a file.
	EnvTrainerURL   = "KUBEFLOW_TRAINER_SERVER_URL"
	EnvTrainerToken = "KUBEFLOW_TRAINER_SERVER_TOKEN"
)

// What the sidecar of a trial of the kind Push is told.
const (
	// EnvPushToken is the first segment of the path of all requests over TCP:
	// it keeps out programs of other trials that reach the same address.
	EnvPushToken = "VERNIER_PUSH_TOKEN"
	// FlagPushAddress is "127.0.0.1:port"; port 0 means any that is free, which
	// the program learns from "collector env". Empty means the socket only.
	FlagPushAddress = "push-address"
	// FlagKatibAddress is where report_metrics is served: "127.0.0.1:port",
	// or "shared:port" for a loopback address that no other trial has. The file
	// FileHosts in the shared directory then maps Katib's names to it.
	FlagKatibAddress = "katib-address"
)

// Files of a trial of the kind Push in the shared directory.
const (
	// FileEnv holds the environment for "collector env", as a JSON object.
	FileEnv = "push.env"
	// FilePushToken holds the token.
	FilePushToken = "push.token"
	// FileHosts stands in for /etc/hosts where pods share a network.
	FileHosts = "hosts"
)

// Values of FlagPushAddress and FlagKatibAddress.
const (
	// Where a pod has a network of its own.
	PushAddress  = "127.0.0.1:6790"
	KatibAddress = "127.0.0.1:6789"
	// Where pods share a network: the sidecar finds addresses of its own.
	AnyPushAddress     = "127.0.0.1:0"
	SharedKatibAddress = "shared:6789"
)

// AnnotationNetwork on a pod chooses its network in the embedded mode: NetworkPod for
// one of its own, NetworkHost for the machine's. Without it the node decides.
const (
	AnnotationNetwork = "vernier.ml/network"
	NetworkPod        = "pod"
	NetworkHost       = "host"
)

// ConditionPodNetwork of a Node of the embedded mode says whether pods can have networks of
// their own. Where it is False they share the machine's.
const ConditionPodNetwork = "vernier.ml/PodNetwork"

// KatibHosts are the names under which programs look for Katib's DBManager.
func KatibHosts() []string {
	return []string{
		"katib-db-manager.kubeflow", "katib-db-manager.kubeflow.svc",
		"katib-db-manager.kubeflow.svc.cluster.local", "katib-db-manager",
	}
}

// PushEnv is the environment with which programs find the sidecar at address.
// dir is the shared directory.
func PushEnv(address, token, trial, dir string) map[string]string {
	base := "http://" + address + "/" + token
	return map[string]string{
		EnvPushURL: base + "/report",
		EnvMLflow:  base,
		EnvTrainerURL: base + "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/" +
			trial + "/status",
		EnvTrainerToken: strings.TrimSuffix(dir, "/") + "/" + FilePushToken,
	}
}
