package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/trainer"
)

// podWebhooks are those of config/webhook that see pods, asking the server at url, for one
// namespace only.
func (w *world) podWebhooks(url string, ca []byte) {
	w.t.Helper()
	for _, u := range manifests(w.t) {
		if u.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		c := as[admissionv1.MutatingWebhookConfiguration](w.t.(*testing.T), u)
		c.Name = w.namespace
		c.Webhooks = slices.DeleteFunc(c.Webhooks, func(h admissionv1.MutatingWebhook) bool { return !strings.HasSuffix(h.Name, ".pod.vernier.ml") })
		if len(c.Webhooks) != 2 {
			w.t.Fatalf("%d webhooks see pods, want 2", len(c.Webhooks))
		}
		here := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{w.namespace}}
		for i := range c.Webhooks {
			h := &c.Webhooks[i]
			h.ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: ca}
			if h.NamespaceSelector == nil {
				h.NamespaceSelector = &metav1.LabelSelector{}
			}
			h.NamespaceSelector.MatchExpressions = append(h.NamespaceSelector.MatchExpressions, here)
		}
		if err := w.client.Create(w.t.Context(), &c); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), &c) })
	}
}

// The API server asks about pods that may be of trials, and only about those; and all
// come into being, whether anything answers or not.
func TestPodsThatAdmissionSees(t *testing.T) {
	w := newWorld(t, never)
	tr := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "exp-0000", Labels: map[string]string{v1beta1.LabelExperiment: "exp"}}}
	tr.Spec.PrimaryContainerName = "main"
	tr.Spec.RunSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}`)}
	if err := w.client.Create(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	asked := false
	pods := trial.NewPods(w.client, trial.Reporting{
		Image: "collector", URL: "http://127.0.0.1:1", Token: func(collector.TrialID) (string, error) { return "token", nil },
	})
	handler := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, r admission.Request) admission.Response {
		asked = true
		return pods.Handle(ctx, r)
	})}
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	ca := pemOf(server.Certificate())

	owned := func(kind, name string) []metav1.OwnerReference {
		yes := true
		if kind == "Trial" {
			return []metav1.OwnerReference{*metav1.NewControllerRef(tr, v1beta1.GroupVersion.WithKind("Trial"))}
		}
		return []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: "u", Controller: &yes}}
	}
	marked := map[string]string{trainer.LabelInject: trainer.InjectAtPod, v1beta1.LabelTrial: "exp-0000"}
	tests := map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		// asked: the webhook is asked; collects: the pod gets the collector.
		asked, collects bool
	}{
		"marked":                                {labels: marked, asked: true, collects: true},
		"of its trial":                          {owners: owned("Trial", ""), asked: true, collects: true},
		"of something that begins like a trial": {owners: owned("Job", "exp-0000-node-0"), asked: true},
		"of a Job":                              {owners: owned("Job", "train-mnist")},
		"of a CronJob's Job":                    {owners: owned("Job", "backup-29384756")},
		"of a Deployment":                       {owners: owned("ReplicaSet", "web-7685")},
		"of a StatefulSet":                      {owners: owned("StatefulSet", "db-0001")},
		"of no owner":                           {labels: map[string]string{"app": "x"}},
		"whose collector was in its template":   {labels: map[string]string{v1beta1.LabelTrial: "exp-0000"}, owners: owned("Job", "exp-0000")},
	}
	w.podWebhooks(server.URL, ca)
	w.eventually("the webhook is asked", func() string {
		pod := w.pod(marked, nil)
		if err := w.client.Create(t.Context(), pod); err != nil || !asked {
			return "not yet"
		}
		return ""
	})
	for name, tc := range tests {
		asked = false
		pod := w.pod(tc.labels, tc.owners)
		if err := w.client.Create(t.Context(), pod); err != nil {
			t.Errorf("a pod %s: %v", name, err)
		}
		if asked != tc.asked || (len(pod.Spec.InitContainers) > 0) != tc.collects {
			t.Errorf("a pod %s: asked %v, want %v; init containers %d, want the collector: %v", name, asked, tc.asked, len(pod.Spec.InitContainers), tc.collects)
		}
	}
	server.Close()
	for name, tc := range tests {
		pod := w.pod(tc.labels, tc.owners)
		if err := w.client.Create(t.Context(), pod); err != nil || len(pod.Spec.InitContainers) > 0 {
			t.Errorf("a pod %s, when nothing answers: %v, %d init containers", name, err, len(pod.Spec.InitContainers))
		}
	}
}

func (w *world) pod(labels map[string]string, owners []metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "pod-", Labels: labels, OwnerReferences: owners}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "train", Command: []string{"train"}}}
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) })
	return pod
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
