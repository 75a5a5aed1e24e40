package suggestion

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
	"github.com/vernier-ml/vernier/controllers/katib"
)

// Nothing changes on an experiment when Katib is uninstalled, so no event would come.
func TestTheRecordIsWrittenOnceKatibLetsGo(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, admissionv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	webhooks := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}}
	exp := &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u", Finalizers: []string{"update-prometheus-metrics"}},
		Spec:       v1beta1.ExperimentSpec{Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "random"}},
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(webhooks, exp).WithStatusSubresource(&v1beta1.Suggestion{}).
		WithIndex(&v1beta1.Trial{}, index.Owner, func(client.Object) []string { return nil }).Build()
	reconciled := func() (reconcile.Result, error) {
		t.Helper()
		presence, err := katib.Look(t.Context(), api)
		if err != nil {
			t.Fatal(err)
		}
		key := client.ObjectKeyFromObject(exp)
		result, err := New(Options{Client: api, Katib: presence, Now: time.Now}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		return result, api.Get(t.Context(), key, &v1beta1.Suggestion{})
	}
	if result, err := reconciled(); result.RequeueAfter == 0 || !apierrors.IsNotFound(err) {
		t.Errorf("while Katib has the experiment: looked at again after %s, the record: %v", result.RequeueAfter, err)
	}
	if err := api.Delete(t.Context(), webhooks); err != nil {
		t.Fatal(err)
	}
	if _, err := reconciled(); err != nil {
		t.Errorf("once Katib is gone: %v", err)
	}
}

// Katib's clients look for the claim of an experiment that can go on; nothing is kept
// in it, so a quota on claims keeps nothing from being recorded. A claim for checkpoints
// is asked for until there is one.
func TestAClaimThatIsForbidden(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		settings       []v1beta1.AlgorithmSetting
		forCheckpoints bool
	}{
		"for Katib's clients": {},
		"for checkpoints":     {[]v1beta1.AlgorithmSetting{{Name: v1beta1.SettingTrialDir, Value: "/ckpt"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			exp := &v1beta1.Experiment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u"},
				Spec:       v1beta1.ExperimentSpec{ResumePolicy: v1beta1.FromVolume, Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "pbt", AlgorithmSettings: c.settings}},
			}
			var asked []*corev1.PersistentVolumeClaim
			forbidden := true
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(exp).WithStatusSubresource(&v1beta1.Suggestion{}).
				WithIndex(&v1beta1.Trial{}, index.Owner, func(client.Object) []string { return nil }).
				WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, cl client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
						if asked = append(asked, claim); forbidden {
							return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, o.GetName(), errors.New("exceeded quota"))
						}
					}
					return cl.Create(ctx, o, opts...)
				}}).Build()
			key := client.ObjectKeyFromObject(exp)
			reconciled := func() error {
				_, err := New(Options{Client: api, Now: time.Now}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
				return err
			}
			if err := reconciled(); (err != nil) != c.forCheckpoints {
				t.Errorf("while it is forbidden: %v", err)
			}
			forbidden = false
			if err := reconciled(); err != nil {
				t.Error(err)
			}
			if err := api.Get(t.Context(), key, &v1beta1.Suggestion{}); err != nil {
				t.Error(err)
			}
			last := asked[len(asked)-1]
			if many := slices.Contains(last.Spec.AccessModes, corev1.ReadWriteMany); last.Name != "e-pbt" || many != c.forCheckpoints || (len(asked) == 2) != c.forCheckpoints {
				t.Errorf("asked %d times, at last for %s, %v", len(asked), last.Name, last.Spec.AccessModes)
			}
		})
	}
}

// An experiment that is made again at once has the name of one whose pods may still use
// its claim. That claim goes with them, so it is not taken for the new one's.
func TestAClaimThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: "u"}, Spec: v1beta1.ExperimentSpec{
		Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "pbt", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: v1beta1.SettingTrialDir, Value: "/ckpt"}}}}}
	goes := true
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(exp).WithStatusSubresource(&v1beta1.Suggestion{}).
		WithIndex(&v1beta1.Trial{}, index.Owner, func(client.Object) []string { return nil }).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, cl client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, claim := o.(*corev1.PersistentVolumeClaim); claim && goes {
				err := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "persistentvolumeclaims"}, o.GetName())
				err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message // as the API server does
				return err
			}
			return cl.Create(ctx, o, opts...)
		}}).Build()
	key := client.ObjectKeyFromObject(exp)
	for range 2 {
		result, err := New(Options{Client: api, Now: time.Now}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		made := api.Get(t.Context(), key, &v1beta1.Suggestion{}) == nil
		if goes && (made || result.RequeueAfter == 0) || !goes && !made {
			t.Errorf("the old claim is there: %t; the record is made: %t; again after %s", goes, made, result.RequeueAfter)
		}
		goes = false
	}
	var claims corev1.PersistentVolumeClaimList
	if err := api.List(t.Context(), &claims); err != nil || len(claims.Items) != 1 {
		t.Errorf("%d claims, %v", len(claims.Items), err)
	}
}
