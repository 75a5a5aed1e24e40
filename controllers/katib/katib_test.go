package katib

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func api(t *testing.T, installed bool, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, admissionv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if installed {
		objects = append(objects, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhooks}})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// The manager of a new version starts with the role of an earlier one.
func TestARoleThatHidesKatibCountsAsNone(t *testing.T) {
	hidden := interceptor.NewClient(api(t, true).(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingwebhookconfigurations"}, webhooks, nil)
		},
	})
	p, err := Look(t.Context(), hidden)
	if err != nil {
		t.Fatal(err)
	}
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", Finalizers: []string{"clean-metrics-in-db"}}}
	if leave, err := p.Leave(t.Context(), hidden, trial); err != nil || leave != 0 {
		t.Errorf("left for %s, %v", leave, err)
	}
}

// Someone may delete the webhook configuration first.
func TestAControllerThatRunsIsKatib(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		phase     corev1.PodPhase
		want      bool
	}{
		"it runs":               {"kubeflow", corev1.PodRunning, true},
		"it starts":             {"kubeflow", corev1.PodPending, true},
		"it has ended":          {"kubeflow", corev1.PodFailed, false},
		"a user's pod is named": {"team-a", corev1.PodRunning, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "c", Labels: map[string]string{component: controller}}, Status: corev1.PodStatus{Phase: tc.phase}}
		p, err := Look(t.Context(), api(t, false, pod))
		if err != nil || p.Installed() != tc.want {
			t.Errorf("%s: %v, %v", name, p.Installed(), err)
		}
	}
}

func TestObjectsThatKatibHasSeen(t *testing.T) {
	const others, katibs = "example.com/keep", "clean-metrics-in-db"
	tests := map[string]struct {
		finalizers          []string
		installed, deleting bool
		leave               time.Duration
		want                []string // finalizers afterwards
	}{
		"Katib is installed":                      {[]string{katibs}, true, false, lookEvery, []string{katibs}},
		"Katib is installed and will clean up":    {[]string{katibs, others}, true, true, lookEvery, []string{katibs, others}},
		"Katib is installed and has not seen it":  {[]string{others}, true, false, lookEvery, []string{others}},
		"Katib is gone":                           {[]string{katibs}, false, false, 0, []string{katibs}},
		"Katib is gone and the object is deleted": {[]string{katibs, others}, false, true, 0, []string{others}},
		"another's finalizer is left alone":       {[]string{others}, false, true, 0, []string{others}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", Finalizers: tc.finalizers}}
			c := api(t, tc.installed, trial)
			key := client.ObjectKeyFromObject(trial)
			if tc.deleting {
				if err := c.Delete(t.Context(), trial); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(t.Context(), key, trial); err != nil {
				t.Fatal(err)
			}
			p, err := Look(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			leave, err := p.Leave(t.Context(), c, trial)
			if err != nil || leave != tc.leave {
				t.Errorf("left for %s, %v; want %s", leave, err, tc.leave)
			}
			if err := c.Get(t.Context(), key, trial); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, trial.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}
