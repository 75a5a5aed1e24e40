package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestCollectorsGetWhatNamespaceAndExperimentSay(t *testing.T) {
	w := newWorld(t, never)
	annotate := func(name, value string) {
		t.Helper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationCollector+name, value)
		if err := w.client.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	annotate("memory-limit", "256Mi")
	annotate("cpu-limit", "everything")
	w.start()
	e := w.experiment("exp", budget(1), func(e *v1beta1.Experiment) {
		e.Annotations = map[string]string{v1beta1.AnnotationCollector + "memory-request": "32Mi"}
	})
	w.create(e)
	w.eventually("the trial says what is wrong with its namespace", func() string {
		for _, tr := range w.trialsOf(e) {
			if c := tr.LastCondition(); c != nil && strings.Contains(c.Message, `namespace `+w.namespace) && strings.Contains(c.Message, `vernier.ml/collector-cpu-limit: "everything" must be a quantity`) {
				return ""
			}
		}
		return "it does not"
	})
	annotate("cpu-limit", "2")
	job := &batchv1.Job{}
	w.eventually("it has a job", func() string {
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, job); err != nil {
			return err.Error()
		}
		return ""
	})
	sidecar := job.Spec.Template.Spec.InitContainers[0]
	got := []string{sidecar.Resources.Requests.Memory().String(), sidecar.Resources.Limits.Memory().String(), sidecar.Resources.Limits.Cpu().String()}
	if diff := cmp.Diff([]string{"32Mi", "256Mi", "2"}, got); diff != "" {
		t.Errorf("the collector %s gets (-want +got):\n%s", sidecar.Name, diff)
	}
}
