package trainer

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The words of the kind Push, which the collector command shares (package
// collector/report).
const (
	envPushURL      = "VERNIER_PUSH_URL"
	envPushToken    = "VERNIER_PUSH_TOKEN"
	envMLflow       = "MLFLOW_TRACKING_URI"
	envTrainerURL   = "KUBEFLOW_TRAINER_SERVER_URL"
	envTrainerToken = "KUBEFLOW_TRAINER_SERVER_TOKEN"

	flagPushAddress  = "push-address"
	flagKatibAddress = "katib-address"

	pushAddress  = "127.0.0.1:6790"
	katibAddress = "127.0.0.1:6789"
	// Where pods share a network the sidecar finds addresses of its own.
	anyPushAddress    = "127.0.0.1:0"
	sharedKatib       = "shared:6789"
	fileHosts         = "hosts"
	filePushToken     = "push.token"
	pushTokenPurpose  = "vernier push"
	etcHosts          = "/etc/hosts"
	loopbackAddress   = "127.0.0.1"
	trainerStatusPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/"
)

func katibHosts() []string {
	return []string{
		"katib-db-manager.kubeflow", "katib-db-manager.kubeflow.svc",
		"katib-db-manager.kubeflow.svc.cluster.local", "katib-db-manager",
	}
}

// sharesNetwork says whether other pods reach the same loopback addresses: where
// pods run as processes of the machine, and where they use the host's network.
func (p pod) sharesNetwork() bool {
	host, _ := p.spec["hostNetwork"].(bool)
	return host || p.c.Binary != ""
}

// pushToken keeps out programs of other trials. It is a function of the trial's
// token, and does not tell it.
func (c Collector) pushToken() string {
	sum := sha256.Sum256([]byte(pushTokenPurpose + "\x00" + c.Token))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// addPush tells the primary container where to push.
func (p pod) addPush(main map[string]any, where []string) error {
	if err := p.mountMetrics(main, where); err != nil {
		return err
	}
	upsert(main, "env", map[string]any{"name": envPushSocket, "value": pushSocket})
	if p.sharesNetwork() {
		return p.shareNetwork(main)
	}
	theirs, _ := main["env"].([]any)
	late := false
	for _, e := range pushEnv(pushAddress, p.c.pushToken(), p.c.Trial, defaultDir) {
		switch {
		case mayComeByEnvFrom(main, e.Name):
			late = true
		// The file with the token goes with the address: to no other server.
		case e.Name == envTrainerToken && (named(theirs, envTrainerURL) != nil || mayComeByEnvFrom(main, envTrainerURL)):
		default:
			addEnv(main, e.Name, e.Value)
		}
	}
	p.aliasKatib()
	if late {
		return p.wrapEnv(main)
	}
	return nil
}

// mayComeByEnvFrom says whether a ConfigMap or Secret that the template names
// may set one of the variables that other systems know too. What it holds is
// seen first when the container starts, and a variable in env would hide it.
func mayComeByEnvFrom(main map[string]any, name string) bool {
	if name == envPushURL { // ours alone
		return false
	}
	list, _ := main["envFrom"].([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		prefix, _ := at(v, "prefix").(string)
		return strings.HasPrefix(name, prefix)
	})
}

// pushEnv is the environment with which programs find the sidecar at address.
func pushEnv(address, token, trial, dir string) []corev1.EnvVar {
	base := "http://" + address + "/" + token
	return []corev1.EnvVar{
		{Name: envPushURL, Value: base + "/report"},
		{Name: envMLflow, Value: base},
		{Name: envTrainerURL, Value: base + trainerStatusPath + trial + "/status"},
		{Name: envTrainerToken, Value: dir + "/" + filePushToken},
	}
}

// addEnv sets a variable unless the template does.
func addEnv(main map[string]any, name, value string) {
	list, _ := main["env"].([]any)
	if named(list, name) == nil {
		upsert(main, "env", map[string]any{"name": name, "value": literal(value)})
	}
}

// aliasKatib makes the names of Katib's DBManager mean the sidecar.
func (p pod) aliasKatib() {
	list, _ := p.spec["hostAliases"].([]any)
	for _, v := range list {
		names, _ := at(v, "hostnames").([]any)
		if slices.Contains(names, any(katibHosts()[0])) {
			return // the template's own, or ours
		}
	}
	var names []any
	for _, n := range katibHosts() {
		names = append(names, n)
	}
	p.spec["hostAliases"] = append(slices.Clip(list), map[string]any{"ip": loopbackAddress, "hostnames": names})
}

// Warnings says what the program will not find of what the collector offers,
// though Inject can be done: as field errors without a cause. None for a job
// that Inject refuses.
func Warnings(job *unstructured.Unstructured, kind Kind, c Collector) []*FieldError {
	roles, err := kind.Roles(job)
	if err != nil || c.Kind != Push {
		return nil
	}
	primary, err := choosePrimary(job, roles, c)
	if err != nil {
		return nil
	}
	tpl, err := Template(job, primary)
	if err != nil {
		return nil
	}
	p := pod{c: c}
	p.spec, _ = tpl["spec"].(map[string]any)
	containers, _ := p.spec["containers"].([]any)
	index := slices.IndexFunc(containers, func(v any) bool { return at(v, "name") == c.PrimaryContainer })
	main, _ := containers[index].(map[string]any)
	where := under(primary.TemplatePath, "spec", "containers", fmt.Sprint(index), "command")
	command, _ := main["command"].([]any)
	switch {
	case len(command) > 0:
		return nil
	case p.sharesNetwork():
		return []*FieldError{fault(where, "is missing, and the pod shares its network, so that the program will find neither %s nor %s: it can push by the socket and report_metrics. Write the program as command", envPushURL, envMLflow)}
	case mayComeByEnvFrom(main, envMLflow) || mayComeByEnvFrom(main, envTrainerURL):
		return []*FieldError{fault(where, "is missing, and envFrom may set %s or %s, so that they are not set for the program: it can push by %s and report_metrics. Write the program as command, or give envFrom a prefix", envMLflow, envTrainerURL, envPushURL)}
	}
	return nil
}

// shareNetwork lets "collector env" tell the program the addresses that the
// sidecar found, and a file of the sidecar stand in for /etc/hosts. A container
// without a command cannot be wrapped: it has the socket and report_metrics.
func (p pod) shareNetwork(main map[string]any) error {
	mounts, _ := main["volumeMounts"].([]any)
	if !slices.ContainsFunc(mounts, func(v any) bool { return at(v, "mountPath") == etcHosts }) {
		hosts := mount(MetricsVolume, etcHosts)
		hosts["subPath"], hosts["readOnly"] = fileHosts, true
		main["volumeMounts"] = append(slices.Clip(mounts), hosts)
	}
	return p.wrapEnv(main)
}

// wrapEnv runs the command under "collector env", which sets what is not set
// when the program starts. A container without a command stays as it is.
func (p pod) wrapEnv(main map[string]any) error {
	command, _ := main["command"].([]any)
	if len(command) == 0 {
		return nil
	}
	binary := cmp.Or(p.c.Binary, defaultBinary)
	if command[0] != binary {
		main["command"] = append([]any{binary, "env", flag(flagDir, defaultDir), "--"}, command...)
	}
	return p.install(main)
}

// pushArguments are the sidecar's.
func (p pod) pushArguments() []string {
	push, katib := pushAddress, katibAddress
	if p.sharesNetwork() {
		push, katib = anyPushAddress, sharedKatib
	}
	return []string{
		flag(flagTrial, p.c.Trial), flag(flagPushAddress, push), flag(flagKatibAddress, katib),
	}
}
