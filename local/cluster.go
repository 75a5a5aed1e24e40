package local

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/vernier-ml/vernier/config"
	"github.com/vernier-ml/vernier/trainer"
)

// prepareCluster applies what the other components need: the custom resource
// definitions, the namespaces, and the webhooks of the manager.
func (s *supervisor) prepareCluster(ctx context.Context) error {
	client, err := dynamic.NewForConfig(s.probe.config)
	if err != nil {
		return err
	}
	objects, err := manifests()
	if err != nil {
		return err
	}
	for _, name := range []string{"default", systemNamespace, katibNamespace} {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}})
	}
	authority, err := os.ReadFile(filepath.Join(s.home.pki(), "ca.crt"))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := pointWebhooks(object, "https://"+address(s.ports.Webhook), authority); err != nil {
			return err
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if err := apply(ctx, client.Resource(resource), object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if _, ok, _ := unstructured.NestedSlice(object.Object, "webhooks"); ok {
			// Homes of before have them under another name, for a port that may be gone.
			if err := client.Resource(resource).Delete(ctx, "vernier.ml", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s vernier.ml: %w", object.GetKind(), err)
			}
		}
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
			crd, err := client.Resource(resource).Get(ctx, object.GetName(), metav1.GetOptions{})
			return err == nil && isEstablished(crd), err
		})
		if err != nil {
			return fmt.Errorf("CRD %s is not established: %w", object.GetName(), err)
		}
	}
	return nil
}

// apply makes an object what it is to be. The kinds of the training operator stay as
// they are where another definition than ours is installed: its operator runs them.
func apply(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	if trainer.IsOurs(object) {
		there, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err == nil && !trainer.IsOurs(there) || err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "vernier-local", Force: true})
	return err
}

// manifests are the embedded objects of config/.
func manifests() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(config.Manifests, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := config.Manifests.ReadFile(path)
		if err != nil {
			return err
		}
		for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			object := &unstructured.Unstructured{}
			switch err := decoder.Decode(object); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w", path, err)
			}
			objects = append(objects, object)
		}
	})
	return objects, err
}

// pointWebhooks has the webhooks of an object call this machine instead of a
// Service; objects without webhooks stay as they are.
func pointWebhooks(object *unstructured.Unstructured, server string, authority []byte) error {
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil || len(webhooks) == 0 {
		return err
	}
	for _, w := range webhooks {
		webhook := w.(map[string]any)
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = map[string]any{"url": server + path, "caBundle": base64.StdEncoding.EncodeToString(authority)}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}
