package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// objects reads what pods refer to. A missing object is a NotFound error of
// the API.
type objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// configError says that a container cannot be made from what exists now. It
// is waited for, not failed.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }
func (e *configError) Unwrap() error { return e.err }

func configErrorf(format string, args ...any) error {
	return &configError{fmt.Errorf(format, args...)}
}

// environment is an ordered set of variables: names in the order of their
// first appearance, the last value wins.
type environment struct {
	names  []string
	values map[string]string
}

func newEnvironment() *environment { return &environment{values: map[string]string{}} }

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) lookup(name string) (string, bool) {
	v, ok := e.values[name]
	return v, ok
}

// list returns "NAME=value" strings.
func (e *environment) list() []string {
	out := make([]string, 0, len(e.names))
	for _, name := range e.names {
		out = append(out, name+"="+e.values[name])
	}
	return out
}

// envRequest is what a container's environment is made from.
type envRequest struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// Facts are the pod's values that its spec does not hold.
	Facts facts
	// Base is what stands below the container's own variables: the host's or
	// the image's, and those of services. Its values take part in expansion.
	Base []corev1.EnvVar
	// Over is what stands above them, such as the visible GPUs.
	Over []corev1.EnvVar
}

// makeEnv resolves the environment of a container: base, then envFrom, then
// env in order, then over. A value may refer to what stands before it.
func makeEnv(ctx context.Context, req envRequest, from objects) (*environment, error) {
	env := newEnvironment()
	for _, e := range req.Base {
		env.set(e.Name, e.Value)
	}
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
	for _, e := range req.Over {
		env.set(e.Name, e.Value)
	}
	return env, nil
}

func addEnvFrom(ctx context.Context, env *environment, namespace string, src *corev1.EnvFromSource, from objects) error {
	data := map[string]string{}
	switch {
	case src.ConfigMapRef != nil:
		cm, err := from.ConfigMap(ctx, namespace, src.ConfigMapRef.Name)
		if err != nil {
			return missing(err, src.ConfigMapRef.Optional)
		}
		data = cm.Data
	case src.SecretRef != nil:
		secret, err := from.Secret(ctx, namespace, src.SecretRef.Name)
		if err != nil {
			return missing(err, src.SecretRef.Optional)
		}
		for k, v := range secret.Data {
			data[k] = string(v)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if name := src.Prefix + key; validEnvName(name) {
			env.set(name, data[key])
		}
	}
	return nil
}

func addEnv(ctx context.Context, env *environment, req envRequest, e *corev1.EnvVar, from objects) error {
	if e.ValueFrom == nil {
		env.set(e.Name, expand(e.Value, env.lookup))
		return nil
	}
	value, ok, err := envValue(ctx, req, e.ValueFrom, from)
	if err != nil {
		return fmt.Errorf("env %s: %w", e.Name, err)
	}
	if ok {
		env.set(e.Name, value)
	}
	return nil
}

// envValue resolves a valueFrom; ok is false for an optional one that is absent.
func envValue(ctx context.Context, req envRequest, src *corev1.EnvVarSource, from objects) (value string, ok bool, err error) {
	namespace := req.Pod.Namespace
	switch {
	case src.FieldRef != nil:
		value, err = fieldValue(req.Pod, req.Facts, src.FieldRef.FieldPath)
		return value, err == nil, err
	case src.ResourceFieldRef != nil:
		value, err = resourceValue(req.Pod, req.Container, req.Facts, src.ResourceFieldRef)
		return value, err == nil, err
	case src.ConfigMapKeyRef != nil:
		ref := src.ConfigMapKeyRef
		cm, err := from.ConfigMap(ctx, namespace, ref.Name)
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		if v, ok := cm.Data[ref.Key]; ok {
			return v, true, nil
		}
		if v, ok := cm.BinaryData[ref.Key]; ok {
			return string(v), true, nil
		}
		return "", false, missingKey("ConfigMap", namespace, ref.Name, ref.Key, ref.Optional)
	case src.SecretKeyRef != nil:
		ref := src.SecretKeyRef
		secret, err := from.Secret(ctx, namespace, ref.Name)
		if err != nil {
			return "", false, missing(err, ref.Optional)
		}
		if v, ok := secret.Data[ref.Key]; ok {
			return string(v), true, nil
		}
		return "", false, missingKey("Secret", namespace, ref.Name, ref.Key, ref.Optional)
	default:
		return "", false, configErrorf("valueFrom needs one of fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef; other sources are not supported on this node")
	}
}

// missing turns the error of reading a referred object into what it means: an
// optional object may be absent.
func missing(err error, optional *bool) error {
	if apierrors.IsNotFound(err) {
		if optional != nil && *optional {
			return nil
		}
		return &configError{err}
	}
	return err
}

func missingKey(kind, namespace, name, key string, optional *bool) error {
	if optional != nil && *optional {
		return nil
	}
	return configErrorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
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
func makeArgv(c *corev1.Container, env *environment) ([]string, error) {
	if len(c.Command) == 0 {
		return nil, fmt.Errorf("container %q (image %q): %w", c.Name, c.Image, errNoCommand)
	}
	argv := make([]string, 0, len(c.Command)+len(c.Args))
	for _, s := range slices.Concat(c.Command, c.Args) {
		argv = append(argv, expand(s, env.lookup))
	}
	return argv, nil
}
