package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// withOperator starts a manager that runs jobs, with the rights of config/operator.
func withOperator(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, never)
	w.installOperator()
	w.operator = true
	w.actAsInstalled()
	w.start()
	return w
}

func (w *world) installOperator() {
	w.t.Helper()
	for _, u := range rendered(w.t, "operator") {
		if err := w.client.Create(w.t.Context(), u); err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
	}
	w.eventually("the kinds are there", func() string {
		if err := w.client.List(w.t.Context(), trainingJobs("PyTorchJobList")); err != nil {
			return err.Error()
		}
		return ""
	})
}

func trainingJobs(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kubeflow.org/v1")
	list.SetKind(kind)
	return list
}

// train creates a job with replicas of one container, as "Master: 1, Worker: 1".
func (w *world) train(kind, field, name string, replicas ...string) *unstructured.Unstructured {
	w.t.Helper()
	text := fmt.Sprintf("apiVersion: kubeflow.org/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec:\n  %s:\n", kind, name, w.namespace, field)
	for _, r := range replicas {
		text += fmt.Sprintf("    %s: {template: {spec: {containers: [{name: train, image: train}]}}}\n", r)
	}
	job := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &job.Object); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Create(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
	return job
}

// is waits until the last condition of a job is of a type.
func (w *world) is(job *unstructured.Unstructured, condition string) {
	w.t.Helper()
	w.eventually("the job is "+condition, func() string {
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		if n := len(conditions); n == 0 || conditions[n-1].(map[string]any)["type"] != condition {
			return fmt.Sprint(conditions)
		}
		return ""
	})
}

// podIn waits for a pod of a job and puts it into a phase, as a kubelet would.
func (w *world) podIn(job *unstructured.Unstructured, name string, phase corev1.PodPhase) (pod corev1.Pod) {
	w.t.Helper()
	w.eventually(name+" is "+string(phase), func() string {
		err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &pod)
		if err == nil && !metav1.IsControlledBy(&pod, job) {
			return "it is another's"
		}
		if err == nil {
			pod.Status.Phase = phase
			err = w.client.Status().Update(w.t.Context(), &pod)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return pod
}

func TestOperatorRunsAJobWithTheRightsOfItsRole(t *testing.T) {
	w := withOperator(t)
	job := w.train("PyTorchJob", "pytorchReplicaSpecs", "mnist", "Master", "Worker")
	master := w.podIn(job, "mnist-master-0", corev1.PodRunning)
	w.podIn(job, "mnist-worker-0", corev1.PodRunning)
	w.is(job, "Running")
	var service corev1.Service
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(&master), &service); err != nil {
		t.Fatal(err)
	}
	for key, value := range service.Spec.Selector {
		if master.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, the master has %q", key, value, master.Labels[key])
		}
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.Ports[0].Port != 23456 || !metav1.IsControlledBy(&service, job) {
		t.Errorf("the master's Service: %+v", service)
	}
	if err := w.client.Delete(t.Context(), service.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.eventually("a Service that was deleted is there again", func() string {
		var again corev1.Service
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(&master), &again); err != nil {
			return err.Error()
		}
		if again.UID == service.UID {
			return "it is still the old one"
		}
		return ""
	})
	w.podIn(job, "mnist-master-0", corev1.PodSucceeded)
	w.is(job, "Succeeded")
	w.eventually("the worker is removed", func() string {
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "mnist-worker-0"}, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint(err)
	})
}

// An MPIJob has a ConfigMap, and goes when its time is over.
func rightsOfAnMPIJob(t *testing.T) {
	w := withOperator(t)
	job := w.train("MPIJob", "mpiReplicaSpecs", "mpi", "Launcher", "Worker")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"runPolicy":{"ttlSecondsAfterFinished":0}}}`))
	if err := w.client.Patch(t.Context(), job, patch); err != nil {
		t.Fatal(err)
	}
	w.podIn(job, "mpi-worker-0", corev1.PodRunning)
	w.podIn(job, "mpi-launcher", corev1.PodSucceeded)
	w.eventually("the job is gone", func() string {
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(job), job)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint(err)
	})
}

func TestOperatorMakesADisruptedPodAgain(t *testing.T) {
	w := withOperator(t)
	job := w.train("TFJob", "tfReplicaSpecs", "mnist", "Worker")
	w.podIn(job, "mnist-worker-0", corev1.PodFailed)
	w.is(job, "Failed")
	job = w.train("TFJob", "tfReplicaSpecs", "again", "Worker")
	first := w.podIn(job, "again-worker-0", corev1.PodRunning)
	first.Status.Phase = corev1.PodFailed
	first.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	if err := w.client.Status().Update(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	w.eventually("there is another pod", func() string {
		var pod corev1.Pod
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(&first), &pod); err != nil || pod.UID == first.UID {
			return fmt.Sprintf("%v, %s", err, pod.UID)
		}
		return ""
	})
	w.podIn(job, "again-worker-0", corev1.PodSucceeded)
	w.is(job, "Succeeded")
}

// A job whose pods the API server refuses fails; one whose name is taken waits.
func TestOperatorSaysWhyThereAreNoPods(t *testing.T) {
	w := withOperator(t)
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mnist-worker-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
	if err := w.client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	waiting := w.train("TFJob", "tfReplicaSpecs", "mnist", "Worker")
	w.eventually("an event says that the name is taken", func() string {
		var events corev1.EventList
		if err := w.client.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Name == "mnist" && strings.Contains(e.Message, "does not belong to this TFJob") {
				return ""
			}
		}
		var all []string
		for _, e := range events.Items {
			all = append(all, e.InvolvedObject.Name+": "+e.Message)
		}
		return fmt.Sprintf("events %q", all)
	})
	invalid := w.train("TFJob", "tfReplicaSpecs", strings.Repeat("long", 15), "Worker") // with -worker-0 it is no name of a Service
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Error("the foreign pod:", err)
	}
	if err := w.client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.podIn(waiting, "mnist-worker-0", corev1.PodSucceeded)
	w.is(waiting, "Succeeded")
	w.is(invalid, "Failed")
}

// A training operator was installed later: its definition replaces ours.
func TestOperatorLeavesTheKindsOfOthersAlone(t *testing.T) {
	w := withOperator(t)
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	w.eventually("the definition is another's", func() string {
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: "jaxjobs.kubeflow.org"}, crd); err != nil {
			return err.Error()
		}
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-preserve-unknown-fields")
		if err := unstructured.SetNestedMap(versions[0].(map[string]any), map[string]any{
			"jaxReplicaSpecs": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}, "schema", "openAPIV3Schema", "properties", "spec", "properties"); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
		if err := w.client.Update(t.Context(), crd); err != nil {
			return err.Error()
		}
		return ""
	})
	theirs := w.train("JAXJob", "jaxReplicaSpecs", "theirs", "Worker")
	ours := w.train("TFJob", "tfReplicaSpecs", "ours", "Worker")
	w.podIn(ours, "ours-worker-0", corev1.PodSucceeded)
	w.is(ours, "Succeeded")
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Object["status"] != nil {
		t.Errorf("their job: %v, %v", err, theirs.Object["status"])
	}
}
