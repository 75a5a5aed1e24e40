package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/fieldpath"
	"k8s.io/kubectl/pkg/util/resource"
	"k8s.io/utils/ptr"
)

// objects reads what pods refer to.
type objects interface {
	// Data returns the keys of a ConfigMap or a Secret. A missing object is a
	// NotFound error of the API.
	Data(ctx context.Context, kind objectKind, namespace, name string) (map[string][]byte, error)
}

type objectKind string

const (
	configMap objectKind = "ConfigMap"
	secret    objectKind = "Secret"
)

// reference is a reference to a ConfigMap or a Secret.
type reference struct {
	kind      objectKind
	namespace string
	name      string
	optional  *bool
}

// data returns the keys of the object, none for an optional one that is absent.
func (r reference) data(ctx context.Context, from objects) (map[string][]byte, error) {
	data, err := from.Data(ctx, r.kind, r.namespace, r.name)
	if apierrors.IsNotFound(err) {
		if ptr.Deref(r.optional, false) {
			return nil, nil
		}
		return nil, &configError{err}
	}
	return data, err
}

// key returns the value of one key; ok is false for an optional one that is absent.
func (r reference) key(ctx context.Context, key string, from objects) (value []byte, ok bool, err error) {
	data, err := r.data(ctx, from)
	if err != nil {
		return nil, false, err
	}
	if value, ok = data[key]; !ok && !ptr.Deref(r.optional, false) {
		return nil, false, configErrorf("couldn't find key %s in %s %s/%s", key, r.kind, r.namespace, r.name)
	}
	return value, ok, nil
}

// configError says that a container cannot be made from what exists now. It
// is waited for, not failed.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func configErrorf(format string, args ...any) error {
	return &configError{fmt.Errorf(format, args...)}
}

// environment holds variables by name.
type environment map[string]string

func (e environment) set(vars []corev1.EnvVar) {
	for _, v := range vars {
		e[v.Name] = v.Value
	}
}

// list returns "NAME=value" strings, sorted.
func (e environment) list() []string {
	out := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		out = append(out, name+"="+e[name])
	}
	return out
}

// hostVariables are the agent's own variables that containers see. The others
// may hold secrets.
var hostVariables = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"VIRTUAL_ENV", "CONDA_PREFIX"}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// hostEnv is what a container sees of the agent's environment, with dirs before
// its PATH.
func hostEnv(dirs []string, getenv func(string) string) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, name := range hostVariables {
		value := getenv(name)
		if name == "PATH" {
			value = strings.Join(append(slices.Clone(dirs), cmp.Or(value, defaultPath)), string(os.PathListSeparator))
		}
		if value != "" {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return env
}

// envRequest is what a container's environment is made from.
type envRequest struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// Facts are the pod's values that its spec does not hold.
	Facts facts
	// Base is what stands below the container's own variables: the host's and
	// those of services. Its values take part in expansion.
	Base []corev1.EnvVar
	// Over is what stands above them, such as the visible GPUs.
	Over []corev1.EnvVar
}

// makeEnv resolves the environment of a container: base, then envFrom, then
// env in order, then over. A value may refer to what stands before it.
func makeEnv(ctx context.Context, req envRequest, from objects) (environment, error) {
	env := environment{}
	env.set(req.Base)
	for i := range req.Container.EnvFrom {
		if err := addEnvFrom(ctx, env, req.Pod.Namespace, &req.Container.EnvFrom[i], from); err != nil {
			return nil, err
		}
	}
	for i := range req.Container.Env {
		if err := addEnv(ctx, env, req, &req.Container.Env[i], from); err != nil {
			return nil, err
		}
	}
	env.set(req.Over)
	return env, nil
}

func addEnvFrom(ctx context.Context, env environment, namespace string, src *corev1.EnvFromSource, from objects) error {
	var ref reference
	switch {
	case src.ConfigMapRef != nil:
		ref = reference{configMap, namespace, src.ConfigMapRef.Name, src.ConfigMapRef.Optional}
	case src.SecretRef != nil:
		ref = reference{secret, namespace, src.SecretRef.Name, src.SecretRef.Optional}
	default:
		return nil
	}
	data, err := ref.data(ctx, from)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if name := src.Prefix + key; validEnvName(name) && !bytes.Contains(data[key], []byte{0}) {
			env[name] = string(data[key])
		}
	}
	return err
}

func addEnv(ctx context.Context, env environment, req envRequest, e *corev1.EnvVar, from objects) error {
	if e.ValueFrom == nil {
		env[e.Name] = expand(e.Value, env)
		return nil
	}
	value, ok, err := envValue(ctx, req, e.ValueFrom, from)
	if err != nil {
		return fmt.Errorf("env %s: %w", e.Name, err)
	}
	if ok {
		env[e.Name] = value
	}
	return nil
}

// envValue resolves a valueFrom; ok is false for an optional one that is absent.
func envValue(ctx context.Context, req envRequest, src *corev1.EnvVarSource, from objects) (value string, ok bool, err error) {
	namespace := req.Pod.Namespace
	switch {
	case src.FieldRef != nil || src.ResourceFieldRef != nil:
		value, err = downwardValue(req.Pod, req.Container, req.Facts, src.FieldRef, src.ResourceFieldRef)
		return value, err == nil, err
	case src.ConfigMapKeyRef != nil:
		ref := src.ConfigMapKeyRef
		data, ok, err := reference{configMap, namespace, ref.Name, ref.Optional}.key(ctx, ref.Key, from)
		return string(data), ok, err
	case src.SecretKeyRef != nil:
		ref := src.SecretKeyRef
		data, ok, err := reference{secret, namespace, ref.Name, ref.Optional}.key(ctx, ref.Key, from)
		return string(data), ok, err
	default:
		return "", false, configErrorf("valueFrom needs one of fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef; other sources are not supported on this node")
	}
}

// validEnvName is the rule of Kubernetes 1.30 and later: printable ASCII
// without "=".
func validEnvName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '=' })
}

// errNoCommand is the error of a container that relies on its image's
// entrypoint.
var errNoCommand = errors.New("image entrypoints are not available here: give a command")

// makeArgv is the command line of a container: command and args, expanded.
func makeArgv(c *corev1.Container, env environment) ([]string, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("container %q (image %q): %w", c.Name, c.Image, errNoCommand)
	}
	argv := make([]string, 0, len(c.Command)+len(c.Args))
	for _, s := range slices.Concat(c.Command, c.Args) {
		argv = append(argv, expand(s, env))
	}
	return argv, nil
}

var variableReference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// expand replaces each $(NAME) in s by its value. $$ stands for $, so $$(NAME)
// is left as $(NAME). A name that is not in the environment is left as it stands.
func expand(s string, env environment) string {
	return variableReference.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$" {
			return "$"
		}
		if value, ok := env[match[2:len(match)-1]]; ok {
			return value
		}
		return match
	})
}

// facts are what is known of a pod only on its node.
type facts struct {
	HostIP, PodIP string
	// Allocatable stands in for limits that a container does not set.
	Allocatable corev1.ResourceList
}

// downwardValue is a value of the downward API: a field of the pod, or an amount of
// a container: the named one, else c.
func downwardValue(pod *corev1.Pod, c *corev1.Container, f facts, field *corev1.ObjectFieldSelector, amount *corev1.ResourceFieldSelector) (value string, err error) {
	switch {
	case amount != nil:
		if amount.ContainerName != "" {
			c = findContainer(&pod.Spec, amount.ContainerName)
		}
		if c == nil {
			return "", configErrorf("resourceFieldRef: the pod has no container %q", amount.ContainerName)
		}
		limited := *c
		limited.Resources.Limits = corev1.ResourceList{}
		maps.Copy(limited.Resources.Limits, f.Allocatable)
		maps.Copy(limited.Resources.Limits, c.Resources.Limits)
		value, err = resource.ExtractContainerResourceValue(amount, &limited)
	case field == nil:
	case field.FieldPath == "spec.nodeName":
		value = pod.Spec.NodeName
	case field.FieldPath == "spec.serviceAccountName":
		value = pod.Spec.ServiceAccountName
	case field.FieldPath == "status.hostIP", field.FieldPath == "status.hostIPs":
		value = f.HostIP
	case field.FieldPath == "status.podIP", field.FieldPath == "status.podIPs":
		value = f.PodIP
	default:
		value, err = fieldpath.ExtractFieldPathAsString(pod, field.FieldPath)
	}
	if err != nil {
		return "", &configError{err}
	}
	return value, nil
}

func findContainer(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, c := range allContainers(spec) {
		if c.Name == name {
			return c
		}
	}
	return nil
}
