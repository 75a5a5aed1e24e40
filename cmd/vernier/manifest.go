package main

import (
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		return nil, invalidErrorf("there are no objects in %s: name YAML or JSON files, or folders with them", strings.Join(paths, ", "))
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

func decodeManifest(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for i := 1; ; i++ {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(content) == 0 {
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d: apiVersion and kind are needed: it is no object of Kubernetes without them", i)
		}
		if object.GetName() == "" {
			return nil, fmt.Errorf("document %d: metadata.name is needed", i)
		}
		objects = append(objects, object)
	}
}

func experimentKind() schema.GroupVersionKind {
	return v1beta1.GroupVersion.WithKind("Experiment")
}

// theExperiment is the one experiment among objects.
func theExperiment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GroupVersionKind() == experimentKind() {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, invalidErrorf("the files hold %d objects of kind Experiment (%s): run follows exactly one, so name the files of one", len(found), v1beta1.GroupVersion)
	}
	return found[0], nil
}

// applyAll applies objects in their order, by server-side apply. While the
// admission webhook is restarting, it tries again for up to 15 s.
func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, namespace string) error {
	for _, o := range objects {
		if o.GetNamespace() == "" {
			if namespaced, err := c.IsObjectNamespaced(o); err == nil && namespaced {
				o.SetNamespace(namespace)
			}
		}
		if err := applyOne(ctx, c, o); err != nil {
			return fmt.Errorf("apply %s %q: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func applyOne(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	const patience = 15 * time.Second
	deadline := time.Now().Add(patience)
	for {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner, client.ForceOwnership)
		if isSchemaError(err) {
			return invalidErrorf("%w%s", err, schemaAdvice(err))
		}
		passing := apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
		if !passing || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// isSchemaError recognizes that the object does not fit its schema. The API
// server gives that no type of its own in a server-side apply.
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
		return " (there is no such field: it is mistyped, or stands in the wrong place)"
	}
	return ""
}

// deleteAndWait deletes an experiment and waits until it and its trials are
// gone. It is not an error if there is none.
func deleteAndWait(ctx context.Context, c client.Client, key types.NamespacedName) error {
	experiment := &v1beta1.Experiment{}
	experiment.Namespace, experiment.Name = key.Namespace, key.Name
	if err := c.Delete(ctx, experiment, client.PropagationPolicy("Foreground")); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("delete experiment %s: %w", key, err)
	}
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		err := c.Get(ctx, key, experiment)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the deletion of experiment %s: %w", key, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the deletion of experiment %s: %w", key, ctx.Err())
		case <-poll.C:
		}
	}
}
