package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
			env.set(name, string(data[key]))
		}
	}
	return err
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

var variableReference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// expand replaces each $(NAME) in s by its value. $$ stands for $, so $$(NAME)
// is left as $(NAME). A name that lookup does not know is left as it stands.
func expand(s string, lookup func(string) (string, bool)) string {
	return variableReference.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$" {
			return "$"
		}
		if value, ok := lookup(match[2 : len(match)-1]); ok {
			return value
		}
		return match
	})
}
