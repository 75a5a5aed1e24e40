package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// definePodGroups makes the API server know the PodGroups of Volcano and of the
// coscheduling plugin.
func (w *world) definePodGroups() {
	w.t.Helper()
	for group, version := range map[string]string{"scheduling.volcano.sh": "v1beta1", "scheduling.x-k8s.io": "v1alpha1"} {
		definition := &unstructured.Unstructured{}
		text := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.%[1]s, annotations: {api-approved.kubernetes.io: "of a test"}}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: PodGroup, listKind: PodGroupList, plural: podgroups, singular: podgroup}
  versions:
  - {name: %[2]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group, version)
		if err := yaml.Unmarshal([]byte(text), &definition.Object); err != nil {
			w.t.Fatal(err)
		}
		if err := w.client.Create(w.t.Context(), definition); err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind("PodGroupList")
		w.eventually("PodGroups of "+group+" are there", func() string {
			if err := w.client.List(w.t.Context(), list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// A job that asks for a gang gets its group before its pods, which know it; that the
// group is there already when a pod is made again is no error.
func TestOperatorMakesPodGroups(t *testing.T) {
	w := newWorld(t, never)
	w.definePodGroups()
	w.installOperator()
	w.operator = true
	w.actAsInstalled()
	w.start()
	for scheduler, version := range map[string]string{"volcano": "scheduling.volcano.sh/v1beta1", "mine": "scheduling.x-k8s.io/v1alpha1"} {
		job := &unstructured.Unstructured{}
		text := fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: %s, namespace: %s}, spec: {runPolicy: {schedulingPolicy: {}}, pytorchReplicaSpecs: {
  Master: {restartPolicy: OnFailure, template: {spec: {schedulerName: %[1]s, containers: [{name: train, image: train}]}}}, Worker: {template: {spec: {schedulerName: %[1]s, containers: [{name: train, image: train}]}}}}}}`, scheduler, w.namespace)
		if err := yaml.Unmarshal([]byte(text), &job.Object); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		worker := w.podIn(job, scheduler+"-worker-0", corev1.PodRunning)
		group := &unstructured.Unstructured{}
		group.SetAPIVersion(version)
		group.SetKind("PodGroup")
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(job), group); err != nil {
			t.Fatal(err)
		}
		if least, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember"); least != 2 || !metav1.IsControlledBy(group, job) {
			t.Errorf("the group of %s: %+v", scheduler, group.Object)
		}
		if err := w.client.Delete(t.Context(), &worker); err != nil {
			t.Fatal(err)
		}
		w.eventually("the worker is made again", func() string {
			var pod corev1.Pod
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(&worker), &pod); err != nil || pod.UID == worker.UID {
				return fmt.Sprintf("%v, the same", err)
			}
			return ""
		})
	}
}
