package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// The folder of a trial's claim is asked for until it is known, and then no more,
// however often the runs are brought up to date.
func TestClaimsAreLookedUpOnce(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	volume := t.TempDir()
	var away error
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "runs"}}
	gets := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: volume}}},
	}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			gets++
			if away != nil {
				return away
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	trial := tensorboardTrial(1, v1beta1.TrialRunning)
	trial.Spec.MetricsCollector = v1beta1.MetricsCollectorSpec{
		Collector: &v1beta1.CollectorSpec{Kind: v1beta1.TensorFlowEventCollector},
		Source:    &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: "/checkpoints"}},
	}
	trial.Spec.Checkpoints = &v1beta1.TrialCheckpoints{CheckpointSpec: v1beta1.CheckpointSpec{Path: "/checkpoints", ClaimName: "runs"}}
	f := newRunFolder(&session{client: c, namespace: "default", home: t.TempDir()}, t.TempDir())
	view := newExperimentView(anExperiment(), []v1beta1.Trial{trial})
	look := func() string {
		t.Helper()
		folder, err := f.eventFolder(t.Context(), view.Trials[0])
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	if folder := look(); folder != "" {
		t.Errorf("the folder of a claim that has no volume yet is %q", folder)
	}
	away = apierrors.NewServerTimeout(schema.GroupResource{Resource: "persistentvolumeclaims"}, "get", 1)
	if folder, err := f.eventFolder(t.Context(), view.Trials[0]); !errors.Is(err, away) {
		t.Errorf("while the API server is away: folder %q, %v", folder, err)
	}
	away = nil
	claim.Spec.VolumeName = "disk"
	if err := c.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	gets = 0
	for range 3 {
		if folder, want := look(), volume+"/"+trial.Name; folder != want {
			t.Errorf("folder %q, want %q", folder, want)
		}
	}
	if gets != 2 {
		t.Errorf("%d objects were read, want the claim and its volume, once", gets)
	}
}
