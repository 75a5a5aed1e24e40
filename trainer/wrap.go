package trainer

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/collector/contract"
)

// announceStarts makes "collector env" tell the sidecar about each start of a
// container that may be restarted in its pod, so that the points of a crashed start
// are kept apart from those of the next. This is not needed under "collector exec",
// nor for event files, and not possible for a container without a command.
func (p pod) announceStarts(main map[string]any, where []string) error {
	policy, _ := p.spec["restartPolicy"].(string)
	switch p.c.Kind {
	case File, PrometheusMetric, Push:
	default:
		return nil
	}
	if command, _ := main["command"].([]any); len(command) == 0 || policy == "" || policy == string(corev1.RestartPolicyNever) {
		return nil
	}
	if err := p.mountMetrics(main, where); err != nil {
		return err
	}
	return p.wrapEnv(main)
}

// wrap runs the primary container's command under "collector exec". The container's
// arguments need no change.
func (p pod) wrap(main map[string]any, where []string) error {
	command, err := p.command(main, where)
	if err != nil {
		return err
	}
	if err := p.mountMetrics(main, where); err != nil {
		return err
	}
	binary := cmp.Or(p.c.Binary, contract.DefaultBinary)
	if command[0] != binary {
		main["command"] = append([]any{binary, "exec", "--" + contract.FlagDir + "=" + contract.DefaultDir, "--"}, command...)
	}
	return nil
}

// command is that of a container or, where it has none, of its image. As in Kubernetes,
// the container's arguments stand for the image's.
func (p pod) command(main map[string]any, where []string) ([]any, error) {
	command, _ := main["command"].([]any)
	if len(command) > 0 {
		return command, nil
	}
	lacks := &FieldError{FieldPath(under(where, "command")), "is missing: the StdOut collector runs the command itself to read its output. Write the program as command, or use a File, TensorFlowEvent or Push collector", ErrNoCommand}
	if p.c.Entrypoint == nil {
		return nil, lacks
	}
	image := Image{Namespace: p.namespace}
	image.Name, _ = main["image"].(string)
	image.ServiceAccount, _ = p.spec["serviceAccountName"].(string)
	secrets, _ := p.spec["imagePullSecrets"].([]any)
	for _, s := range secrets {
		name, _ := at(s, "name").(string)
		image.PullSecrets = append(image.PullSecrets, name)
	}
	entrypoint, rest, err := p.c.Entrypoint(image)
	if err != nil {
		return nil, err
	}
	args, _ := main["args"].([]any)
	if len(args) == 0 {
		args = words(rest)
	}
	if len(entrypoint) == 0 && len(args) > 0 {
		entrypoint, args = []string{fmt.Sprint(args[0])}, args[1:]
	}
	if len(entrypoint) == 0 {
		lacks.Problem = "is missing, and the image " + image.Name + " has no entrypoint: write the program as command"
		return nil, lacks
	}
	if delete(main, "args"); len(args) > 0 {
		main["args"] = args
	}
	return words(entrypoint), nil
}

// words are strings in the form of an object's lists.
func words(list []string) []any {
	out := make([]any, len(list))
	for i, w := range list {
		out[i] = w
	}
	return out
}

// install copies the collector into the pod, unless it is on every node, for a
// container that runs before the sidecar.
func (p pod) install(main map[string]any) error {
	if p.c.Binary != "" {
		return nil
	}
	install, err := p.ours(corev1.Container{
		Name:    InstallContainer,
		Command: []string{"collector", "install", contract.DefaultBinary},
	}, main)
	if err != nil {
		return err
	}
	install["volumeMounts"] = []any{mount(MetricsVolume, contract.DefaultDir)}
	upsert(p.spec, "initContainers", install)
	return nil
}
