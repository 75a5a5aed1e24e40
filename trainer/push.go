package trainer

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	pushTokenPurpose = "vernier push"
	etcHosts         = "/etc/hosts"
	loopbackAddress  = "127.0.0.1"
)

// sharesNetwork says whether other pods can reach the same loopback addresses:
// if pods run as processes of the machine, or use the host's network.
func (p pod) sharesNetwork() bool {
	host, _ := p.spec["hostNetwork"].(bool)
	return host || p.c.Binary != "" && !p.ownNetwork
}

// pushToken keeps out programs of other trials. It is derived from the trial's
// token, and does not reveal it.
func (c Collector) pushToken() string {
	sum := sha256.Sum256([]byte(pushTokenPurpose + "\x00" + c.Token))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// addPush tells the primary container where to push.
func (p pod) addPush(main map[string]any, where []string) error {
	if err := p.mountMetrics(main, where); err != nil {
		return err
	}
	upsert(main, "env", map[string]any{"name": contract.EnvPushSocket, "value": contract.PushSocket})
	if p.sharesNetwork() {
		return p.shareNetwork(main)
	}
	theirs, _ := main["env"].([]any)
	late := false
	env := contract.PushEnv(contract.PushAddress, p.c.pushToken(), p.c.Trial, contract.DefaultDir)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case mayComeByEnvFrom(main, name):
			late = true
		// The token's file is only for this address, not for another server.
		case name == contract.EnvTrainerToken && (named(theirs, contract.EnvTrainerURL) != nil || mayComeByEnvFrom(main, contract.EnvTrainerURL)):
		default:
			addEnv(main, name, env[name])
		}
	}
	p.aliasKatib()
	if late {
		return p.wrapEnv(main)
	}
	return nil
}

// mayComeByEnvFrom says whether a ConfigMap or Secret in the template's envFrom may
// set a variable that other systems use too. Its content is known only when the
// container starts, and a variable in env would override it.
func mayComeByEnvFrom(main map[string]any, name string) bool {
	if name == contract.EnvPushURL { // only ours
		return false
	}
	list, _ := main["envFrom"].([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		prefix, _ := at(v, "prefix").(string)
		return strings.HasPrefix(name, prefix)
	})
}

// addEnv sets a variable unless the template does.
func addEnv(main map[string]any, name, value string) {
	list, _ := main["env"].([]any)
	if named(list, name) == nil {
		upsert(main, "env", map[string]any{"name": name, "value": literal(value)})
	}
}

// aliasKatib makes the names of Katib's DBManager resolve to the sidecar.
func (p pod) aliasKatib() {
	list, _ := p.spec["hostAliases"].([]any)
	for _, v := range list {
		names, _ := at(v, "hostnames").([]any)
		if slices.Contains(names, any(contract.KatibHosts()[0])) {
			return // the template's, or ours
		}
	}
	var names []any
	for _, n := range contract.KatibHosts() {
		names = append(names, n)
	}
	p.spec["hostAliases"] = append(slices.Clip(list), map[string]any{"ip": loopbackAddress, "hostnames": names})
}

// Warnings lists what the collector cannot offer the program, although Inject
// succeeds, as field errors without a cause. There are none for a job that Inject
// rejects.
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
	p := pod{path: under(primary.TemplatePath, "spec"), c: c}
	p.spec, _ = tpl["spec"].(map[string]any)
	main, where := p.primary()
	where = under(where, "command")
	command, _ := main["command"].([]any)
	switch {
	case len(command) > 0:
		return nil
	case p.sharesNetwork():
		return []*FieldError{fault(where, "is missing, and the pod shares its network, so that the program will find neither %s nor %s: it can push by the socket and report_metrics. Write the program as command", contract.EnvPushURL, contract.EnvMLflow)}
	case mayComeByEnvFrom(main, contract.EnvMLflow) || mayComeByEnvFrom(main, contract.EnvTrainerURL):
		return []*FieldError{fault(where, "is missing, and envFrom may set %s or %s, so that they are not set for the program: it can push by %s and report_metrics. Write the program as command, or give envFrom a prefix", contract.EnvMLflow, contract.EnvTrainerURL, contract.EnvPushURL)}
	}
	return nil
}

// shareNetwork makes "collector env" give the program the addresses that the sidecar
// uses, and mounts a file of the sidecar as /etc/hosts. A container without a
// command cannot be wrapped: it has the socket and report_metrics.
func (p pod) shareNetwork(main map[string]any) error {
	mounts, _ := main["volumeMounts"].([]any)
	if !slices.ContainsFunc(mounts, func(v any) bool { return at(v, "mountPath") == etcHosts }) {
		hosts := mount(MetricsVolume, etcHosts)
		hosts["subPath"], hosts["readOnly"] = contract.FileHosts, true
		main["volumeMounts"] = append(slices.Clip(mounts), hosts)
	}
	return p.wrapEnv(main)
}

// wrapEnv runs the command under "collector env", which sets missing variables when
// the program starts. A container without a command stays unchanged.
func (p pod) wrapEnv(main map[string]any) error {
	command, _ := main["command"].([]any)
	if len(command) == 0 {
		return nil
	}
	binary := cmp.Or(p.c.Binary, contract.DefaultBinary)
	if command[0] != binary {
		main["command"] = append([]any{binary, "env", flag(contract.FlagDir, contract.DefaultDir), "--"}, command...)
	}
	return nil
}

func (p pod) pushArguments() []string {
	push, katib := contract.PushAddress, contract.KatibAddress
	if p.sharesNetwork() {
		push, katib = contract.AnyPushAddress, contract.SharedKatibAddress
	}
	return []string{
		flag(contract.FlagTrial, p.c.Trial), flag(contract.FlagPushAddress, push), flag(contract.FlagKatibAddress, katib),
	}
}
