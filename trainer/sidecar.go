package trainer

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	kubernetesGrace = 30 * time.Second
	// graceReserve is the part of the grace period that the collector keeps for
	// writing its summary and ending by itself.
	graceReserve = 5 * time.Second
	// minimumGrace is the least that the kubelet gives a native sidecar.
	minimumGrace = 2 * time.Second
)

type pod struct {
	path      []string // of spec
	spec      map[string]any
	namespace string // of the job
	c         Collector
	// ownNetwork says that the pod asks for a network of its own in the embedded mode.
	ownNetwork bool
}

// primary returns the primary container and its path, or nil.
func (p pod) primary() (main map[string]any, where []string) {
	containers, _ := p.spec["containers"].([]any)
	for i, v := range containers {
		if m, ok := v.(map[string]any); ok && m["name"] == p.c.PrimaryContainer {
			return m, under(p.path, "containers", strconv.Itoa(i))
		}
	}
	return nil, nil
}

func (p pod) inject() error {
	main, where := p.primary()
	if err := p.checkNames(); err != nil {
		return err
	}
	mounts := []any{mount(MetricsVolume, contract.DefaultDir)}
	switch p.c.Kind {
	case StdOut:
		if p.c.Mount {
			break // see below
		}
		if err := p.wrap(main, where); err != nil {
			return err
		}
	case File, TensorFlowEvent:
		shared, err := p.shareSource(main, where)
		if err != nil {
			return err
		}
		mounts = append(mounts, shared...)
		p.offline(main)
	case PrometheusMetric:
		if err := p.addScrape(main); err != nil {
			return err
		}
	case Push:
		if err := p.addPush(main, where); err != nil {
			return err
		}
	case Custom:
		if err := p.addCustom(main, where); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no injection for a collector of kind %q: use StdOut, File, TensorFlowEvent, PrometheusMetric, Push or Custom", p.c.Kind)
	}
	if err := p.announceStarts(main, where); err != nil {
		return err
	}
	keepLastLines(main)
	upsert(p.spec, "volumes", map[string]any{"name": MetricsVolume, "emptyDir": map[string]any{}})
	if _, set := p.spec["terminationGracePeriodSeconds"]; !set && p.c.Grace > 0 {
		p.spec["terminationGracePeriodSeconds"] = int64(p.c.Grace / time.Second)
	}
	if p.c.Mount {
		return p.mountCollector(main, where)
	}
	sidecar, err := p.sidecar(main, where)
	if err != nil {
		return err
	}
	sidecar["volumeMounts"] = mounts
	if hook := p.postStart(main); hook != nil {
		sidecar["lifecycle"] = map[string]any{"postStart": map[string]any{"exec": map[string]any{"command": hook}}}
	}
	upsert(p.spec, "initContainers", sidecar)
	return nil
}

// keepLastLines has a failing program say why in its last lines: the trial's condition
// quotes them even when the pod is gone.
func keepLastLines(main map[string]any) {
	if _, set := main["terminationMessagePolicy"]; !set {
		main["terminationMessagePolicy"] = string(corev1.TerminationMessageFallbackToLogsOnError)
	}
}

// checkNames rejects containers that are named like ours.
func (p pod) checkNames() error {
	containers, _ := p.spec["containers"].([]any)
	for _, name := range []string{SidecarLogger, Sidecar, InstallContainer} {
		if named(containers, name) != nil {
			return fault(under(p.path, "containers"), "the container name %q is taken by the metrics collector: rename the container", name)
		}
	}
	return nil
}

func (p pod) mountMetrics(main map[string]any, where []string) error {
	mounts, _ := main["volumeMounts"].([]any)
	for i, m := range mounts {
		if at(m, "mountPath") == contract.DefaultDir && at(m, "name") != MetricsVolume {
			return fault(under(where, "volumeMounts", fmt.Sprint(i), "mountPath"), "%s is taken by the metrics collector: mount the volume elsewhere", contract.DefaultDir)
		}
	}
	upsert(main, "volumeMounts", mount(MetricsVolume, contract.DefaultDir))
	return nil
}

// shareSource makes the path where the primary container writes its metrics visible
// to the sidecar, and returns the sidecar's mounts: those of the primary container
// that contain the path, or an empty directory for both.
func (p pod) shareSource(main map[string]any, where []string) ([]any, error) {
	dir := path.Clean(p.c.Path)
	if (p.c.Kind == File || p.c.Kind == Custom) && !p.c.Directory {
		dir = path.Dir(dir)
	}
	if !path.IsAbs(p.c.Path) || dir == "/" || beneath(dir, contract.DefaultDir) {
		return nil, fmt.Errorf("the path %q of the %s collector cannot be shared: it must be absolute, below a directory of its own, and outside %s", p.c.Path, p.c.Kind, contract.DefaultDir)
	}
	var shared []any
	held := false
	mounts, _ := main["volumeMounts"].([]any)
	for i, v := range mounts {
		m, ok := v.(map[string]any)
		place, _ := m["mountPath"].(string)
		if !ok || m["name"] == SourceVolume || place == "" || !beneath(dir, place) && !beneath(place, dir) {
			continue
		}
		if m["subPathExpr"] != nil {
			return nil, fault(under(where, "volumeMounts", fmt.Sprint(i), "subPathExpr"), "the metrics collector cannot share a mount whose path depends on the container's environment: use subPath, or write the metrics elsewhere")
		}
		held = held || beneath(dir, place) || path.Clean(place) == path.Clean(p.c.Path)
		shared = append(shared, p.mirror(m))
	}
	if !held {
		if err := p.checkHidden(main, where, dir); err != nil {
			return nil, err
		}
		upsert(main, "volumeMounts", mount(SourceVolume, dir))
		upsert(p.spec, "volumes", map[string]any{"name": SourceVolume, "emptyDir": map[string]any{}})
		shared = append([]any{mount(SourceVolume, dir)}, shared...)
	}
	return shared, nil
}

// offline makes W&B write its files to the path that is read, instead of talking to
// its servers. Variables of the template take precedence.
func (p pod) offline(main map[string]any) {
	if p.c.Format != FormatWandb {
		return
	}
	for _, e := range [][2]string{{"WANDB_MODE", "offline"}, {"WANDB_DIR", path.Clean(p.c.Path)}} {
		list, _ := main["env"].([]any)
		if named(list, e[0]) == nil {
			upsert(main, "env", map[string]any{"name": e[0], "value": literal(e[1])})
		}
	}
}

func mount(volume, at string) map[string]any {
	return map[string]any{"name": volume, "mountPath": at}
}

// mirror is a mount for the sidecar: the same path, read-only unless the sidecar
// writes there too.
func (p pod) mirror(m map[string]any) map[string]any {
	out := mount(fmt.Sprint(m["name"]), fmt.Sprint(m["mountPath"]))
	if sub, ok := m["subPath"]; ok {
		out["subPath"] = sub
	}
	if readOnly, _ := m["readOnly"].(bool); readOnly || !p.showsParameters() && p.c.Kind != Custom {
		out["readOnly"] = true
	}
	return out
}

// environment is what the collector gets that is secret or known to the kubelet only.
func (p pod) environment(main map[string]any, where []string) ([]corev1.EnvVar, error) {
	env := []corev1.EnvVar{
		{Name: contract.EnvURL, Value: literal(p.c.ReportURL)},
		{Name: contract.EnvToken, Value: literal(p.c.Token)},
	}
	if p.c.CA != "" {
		env = append(env, corev1.EnvVar{Name: contract.EnvCA, Value: literal(p.c.CA)})
	}
	if p.c.Traceparent != "" {
		env = append(env, corev1.EnvVar{Name: contract.EnvTraceparent, Value: p.c.Traceparent})
	}
	if p.pushes() {
		env = append(env, corev1.EnvVar{Name: contract.EnvPushToken, Value: p.c.pushToken()})
	}
	headers, err := p.headers(main, where)
	if err != nil {
		return nil, err
	}
	env = append(env, headers...)
	return append(env, corev1.EnvVar{Name: contract.EnvPodUID, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"},
	}}), nil
}

func (p pod) sidecar(main map[string]any, where []string) (map[string]any, error) {
	always := corev1.ContainerRestartPolicyAlways
	env, err := p.environment(main, where)
	if err != nil {
		return nil, err
	}
	return p.ours(corev1.Container{
		Name:                     p.c.sidecar(),
		Command:                  []string{"collector", "run"},
		Args:                     p.arguments(main),
		Env:                      env,
		RestartPolicy:            &always,
		TerminationMessagePath:   contract.DefaultTerminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}, main)
}

// postStart is the command of the sidecar's hook, which waits until the collector
// listens: the kubelet starts nothing after the sidecar before the hook has ended.
// Otherwise a program that ends at once would be over, and the collector stopped,
// before it could catch SIGTERM. (StdOut need not wait for that, because collector exec
// does, but for the collector exec that the sidecar brings.) The kubelet would look at a
// startup probe, or at the end of an init container, once a second only.
func (p pod) postStart(main map[string]any) []any {
	if p.c.Kind == StdOut && !p.installs(main) {
		return nil
	}
	return []any{"collector", "await", flag(contract.FlagDir, contract.DefaultDir)}
}

// installs says whether the sidecar copies the collector into the pod, for a program
// that is started by it. It does so itself, and not in its hook: a kubelet that was
// restarted in the meantime does not run the hook again, but is late enough for this.
func (p pod) installs(main map[string]any) bool {
	argv, _ := main["command"].([]any)
	return p.c.Binary == "" && len(argv) > 0 && argv[0] == contract.DefaultBinary
}

func (p pod) arguments(main map[string]any) []string {
	kind := p.c.Kind
	if p.pushes() {
		kind = Push
	}
	args := []string{flag(contract.FlagKind, kind), flag(contract.FlagDir, contract.DefaultDir)}
	if p.installs(main) {
		args = append(args, flag(contract.FlagInstall, contract.DefaultBinary))
	}
	switch {
	case p.c.Kind == File && p.c.Directory:
		args = append(args, flag(contract.FlagPath, path.Clean(p.c.Path)+"/"))
	case p.c.Kind == File || p.c.Kind == TensorFlowEvent:
		args = append(args, flag(contract.FlagPath, p.c.Path))
	case p.c.Kind == PrometheusMetric:
		args = append(args, flag(contract.FlagURL, p.url()))
		if p.c.Binary != "" {
			args = append(args, "--"+contract.FlagSharedNetwork)
		}
	}
	if p.c.Format != "" && (p.c.Kind == StdOut || p.c.Kind == File) {
		args = append(args, flag(contract.FlagFormat, p.c.Format))
	}
	for _, f := range p.c.Filters {
		args = append(args, flag(contract.FlagFilter, f))
	}
	for _, m := range p.c.Metrics {
		args = append(args, flag(contract.FlagMetric, m))
	}
	args = append(args, p.parameters()...)
	if p.pushes() {
		args = append(args, p.pushArguments()...)
	}
	if p.c.Rate != 0 {
		args = append(args, flag(contract.FlagRate, strconv.FormatInt(max(p.c.Rate, 0), 10)))
	}
	return append(args, flag(contract.FlagGrace, p.grace().String()))
}

// grace is how long the collector has to end.
func (p pod) grace() time.Duration {
	grace := kubernetesGrace
	switch s := p.spec["terminationGracePeriodSeconds"].(type) {
	case int64:
		grace = time.Duration(s) * time.Second
	case float64:
		grace = time.Duration(s) * time.Second
	}
	return max(grace-graceReserve, minimumGrace)
}

// ours completes one of our containers: image, resources, and the security context
// that lets it run beside the primary container and read its files.
func (p pod) ours(c corev1.Container, main map[string]any) (map[string]any, error) {
	c.Image, c.ImagePullPolicy, c.Resources = p.c.Image, p.c.ImagePullPolicy, p.c.Resources
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, fmt.Errorf("build the container %s: %w", c.Name, err)
	}
	theirs, _ := main["securityContext"].(map[string]any)
	context := map[string]any{}
	if p.c.Binary == "" && !p.isRoot(theirs) {
		context = restricted()
	}
	for _, key := range []string{"runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile"} {
		if v, ok := theirs[key]; ok {
			context[key] = runtime.DeepCopyJSONValue(v)
		}
	}
	if drop := at(theirs, "capabilities", "drop"); drop != nil && context["capabilities"] == nil {
		context["capabilities"] = map[string]any{"drop": runtime.DeepCopyJSONValue(drop)}
	}
	if len(context) > 0 {
		m["securityContext"] = context
	}
	return m, nil
}

// isRoot says whether the primary container runs as root by the template. What its
// program writes as another user is then read with root's capabilities.
func (p pod) isRoot(theirs map[string]any) bool {
	user := at(theirs, "runAsUser")
	if user == nil {
		user = at(p.spec, "securityContext", "runAsUser")
	}
	return fmt.Sprint(user) == "0"
}

// restricted is what the profile "restricted" of Pod Security wants, but for the user:
// the image of the collector has one that is not root. The collector writes to volumes
// only.
func restricted() map[string]any {
	return map[string]any{
		"allowPrivilegeEscalation": false,
		"capabilities":             map[string]any{"drop": []any{"ALL"}},
		"readOnlyRootFilesystem":   true,
		"seccompProfile":           map[string]any{"type": string(corev1.SeccompProfileTypeRuntimeDefault)},
	}
}

func flag(name, value string) string {
	return "--" + name + "=" + literal(value)
}

// literal escapes a value against the kubelet's expansion of $(NAME).
func literal(s string) string {
	return strings.ReplaceAll(s, "$", "$$")
}
