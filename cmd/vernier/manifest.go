package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// fieldOwner is the manager of the fields that our commands apply.
const fieldOwner = client.FieldOwner("vernier")

// readManifests reads the objects of YAML or JSON files; "-" is standard input,
// a folder stands for its .yaml, .yml and .json files.
func readManifests(stdin io.Reader, paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := readFile(stdin, file)
			if err != nil {
				return nil, err
			}
			decoded, err := decodeManifest(data)
			if err != nil {
				return nil, invalidErrorf("%s: %w", file, err)
			}
			objects = append(objects, decoded...)
		}
	}
	if len(objects) == 0 {
		return nil, invalidErrorf("no objects in %s: name YAML or JSON files, or folders of them", strings.Join(paths, ", "))
	}
	return objects, nil
}

func manifestFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFoundErrorf("there is no file or folder %s: correct -f", path)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

func readFile(stdin io.Reader, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// decodeManifest reads documents strictly: a key that is there twice is an error.
func decodeManifest(data []byte) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []*unstructured.Unstructured
	for i := 1; ; i++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.UnmarshalStrict(document, &object.Object)
		}
		switch {
		case err != nil:
		case len(object.Object) == 0:
			continue
		case object.GetKind() == "" || object.GetAPIVersion() == "":
			err = errors.New("a Kubernetes object needs apiVersion and kind")
		case object.GetName() == "":
			err = errors.New("metadata.name is needed")
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		objects = append(objects, object)
	}
}

// theExperiment is the one experiment among objects.
func theExperiment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := v1beta1.GroupVersion.WithKind("Experiment")
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GroupVersionKind() == want {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, invalidErrorf("the files hold %d objects of kind Experiment (%s): run follows exactly one, so name the files of one", len(found), v1beta1.GroupVersion)
	}
	return found[0], nil
}

// apply applies objects in their order, by server-side apply. It retries for
// about 15 s while the admission webhook restarts.
func (s *session) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetNamespace() == "" {
			if namespaced, err := s.client.IsObjectNamespaced(o); err == nil && namespaced {
				o.SetNamespace(s.namespace)
			}
		}
		backoff := wait.Backoff{Duration: 300 * time.Millisecond, Steps: 50}
		err := retry.OnError(backoff, func(err error) bool { return ctx.Err() == nil && isPassing(err) }, func() error {
			return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership)
		})
		if isSchemaError(err) {
			err = invalidErrorf("%w%s", err, schemaAdvice(err))
		}
		if err != nil {
			return fmt.Errorf("apply %s %q: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func isPassing(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// isSchemaError reports whether an object does not fit its schema, which has no
// error type of its own in a server-side apply.
func isSchemaError(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// schemaAdvice is what to do about an error of the schema, where that is known.
func schemaAdvice(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "expected string, got") && strings.Contains(text, "feasibleSpace"):
		return " (numbers of a feasibleSpace are written in quotes)"
	case strings.Contains(text, "expected string, got"):
		return " (write it in quotes)"
	case strings.Contains(text, "field not declared in schema"):
		return " (there is no such field: it is misspelled or in the wrong place)"
	}
	return ""
}

// deleteAndWait deletes an experiment, if there is one, and waits until it and
// its trials are gone.
func deleteAndWait(ctx context.Context, c client.Client, key types.NamespacedName) error {
	experiment := &v1beta1.Experiment{}
	experiment.Namespace, experiment.Name = key.Namespace, key.Name
	err := c.Delete(ctx, experiment, client.PropagationPolicy("Foreground"))
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, key, experiment)
			return err != nil, err
		})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete experiment %s: %w", key, err)
	}
	return nil
}
