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
	"github.com/vernier-ml/vernier/collector/parse"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
			document, err = yaml.YAMLToJSONStrict(document)
		}
		if err == nil {
			err = utiljson.Unmarshal(document, &object.Object) // whole numbers stay whole
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

func theExperiment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := v1beta1.GroupVersion.WithKind("Experiment")
	var found []*unstructured.Unstructured
	var others []string
	for _, o := range objects {
		if o.GroupVersionKind() == want {
			found = append(found, o)
		} else {
			other := fmt.Sprintf("%s %q (%s)", o.GetKind(), o.GetName(), o.GetAPIVersion())
			if near := parse.Nearest(o.GetKind(), []string{want.Kind}, 1); len(near) > 0 && o.GetKind() != want.Kind {
				other += ", did you mean " + want.Kind + "?"
			}
			others = append(others, other)
		}
	}
	switch len(found) {
	case 0:
		return nil, invalidErrorf("no object of kind Experiment (%s) in the files: they have %s", v1beta1.GroupVersion, strings.Join(others, ", "))
	case 1:
		return found[0], nil
	}
	return nil, invalidErrorf("the files have %d experiments: run follows exactly one, so name the files of one", len(found))
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
		err := patiently(ctx, func() error {
			return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), fieldOwner, client.ForceOwnership)
		})
		if err != nil {
			return fmt.Errorf("apply %s %q: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// patiently writes to the API server, again while it or a webhook is just starting.
func patiently(ctx context.Context, write func() error) error {
	backoff := wait.Backoff{Duration: 300 * time.Millisecond, Steps: 50}
	return schemaError(retry.OnError(backoff, func(err error) bool { return ctx.Err() == nil && isPassing(err) }, write))
}

func isPassing(err error) bool {
	return apierrors.IsInternalError(err) && !isSchemaFault(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
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
