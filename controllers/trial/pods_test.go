package trial

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

// between is an object between a pod and its trial; any kind will do.
func between(name string, owner *metav1.OwnerReference) *batchv1.Job {
	o := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("of " + name)}}
	if owner != nil {
		o.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return o
}

func controlledBy(o *batchv1.Job) *metav1.OwnerReference {
	return metav1.NewControllerRef(o, batchv1.SchemeGroupVersion.WithKind("Job"))
}

func TestPodsOfTrialsAreInjectedWhenTheyAreCreated(t *testing.T) {
	trainJob := func(tr *v1beta1.Trial) {
		tr.Spec.RunSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}`)}
		tr.Spec.PrimaryContainerName = "node"
		tr.Spec.PrimaryPodLabels = map[string]string{"index": "0"}
	}
	tr := aTrial(trainJob)
	root := between("exp-0000", metav1.NewControllerRef(tr, v1beta1.GroupVersion.WithKind("Trial")))
	set := between("exp-0000-set", controlledBy(root))
	job, stranger := between("exp-0000-node-0", controlledBy(set)), between("other-0000", nil)
	reused := between("exp-0000-node-0", nil)
	reused.UID = "of one before it"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	rank0, rank1 := map[string]string{"index": "0"}, map[string]string{"index": "1"}
	marked := map[string]string{"index": "0", trainer.LabelInject: trainer.InjectAtPod, v1beta1.LabelTrial: tr.Name}
	command := []string{"train"}
	tests := map[string]struct {
		trial   *v1beta1.Trial
		owner   *metav1.OwnerReference
		labels  map[string]string
		command []string
		down    bool

		labelled, collects bool
		says               string
	}{
		"one that is marked":                      {trial: tr, labels: marked, command: command, labelled: true, collects: true},
		"one that its trial controls from afar":   {trial: tr, owner: controlledBy(job), labels: rank0, command: command, labelled: true, collects: true},
		"another rank is labelled only":           {trial: tr, owner: controlledBy(job), labels: rank1, command: command, labelled: true},
		"one that others control":                 {trial: tr, owner: controlledBy(stranger), labels: rank0, command: command},
		"one whose owner is gone":                 {trial: tr, owner: controlledBy(between("gone", nil)), labels: rank0, command: command},
		"one whose owner had the name before":     {trial: tr, owner: controlledBy(reused), labels: rank0, command: command},
		"one that nothing controls":               {trial: tr, labels: rank0, command: command},
		"one of a trial that has ended":           {trial: aTrial(trainJob, complete), labels: marked, command: command},
		"one whose trial's job shows its pods":    {trial: aTrial(), labels: marked, command: command},
		"one that is marked for no trial":         {trial: aTrial(trainJob, func(tr *v1beta1.Trial) { tr.Name = "x" }), labels: marked, command: command},
		"one that cannot be injected says why":    {trial: tr, labels: marked, labelled: true, says: "command"},
		"one is admitted where nothing is known":  {trial: tr, labels: marked, command: command, down: true},
		"one of a namespace that is wrong is too": {trial: aTrial(trainJob, func(tr *v1beta1.Trial) { tr.Annotations = map[string]string{"vernier.ml/collector-cpu-limit": "x"} }), labels: marked, command: command, labelled: true, says: "collector-cpu-limit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).
				WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, root, set, job, stranger, tc.trial).
				WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.down {
						return errors.New("the API server is down")
					}
					return c.Get(ctx, key, o, opts...)
				}}).Build()
			pods := NewPods(c, Reporting{Image: "collector", URL: "http://x", Token: func(collector.TrialID) (string, error) { return "token", nil }})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Labels: tc.labels}}
			pod.Spec.Containers = []corev1.Container{{Name: "node", Image: "train", Command: tc.command}}
			if tc.owner != nil {
				pod.OwnerReferences = []metav1.OwnerReference{*tc.owner}
			}
			for range 2 { // the second time what controls it is known
				got := created(t, pods, pod)
				if is := got.Labels[v1beta1.LabelTrial] == tr.Name && got.Labels[trainer.LabelInject] == trainer.InjectAtPod; is != tc.labelled && tc.labels[trainer.LabelInject] == "" {
					t.Errorf("labels %v", got.Labels)
				}
				if is := len(got.Spec.InitContainers) > 0; is != tc.collects {
					t.Errorf("init containers %v, want the collector: %v", got.Spec.InitContainers, tc.collects)
				}
				if why := got.Annotations[trainer.AnnotationNotInjected]; !strings.Contains(why, tc.says) || (why == "") != (tc.says == "") {
					t.Errorf("it says %q, want %q", why, tc.says)
				}
			}
		})
	}
}

func TestAPodIsAdmittedWhateverGoesWrong(t *testing.T) {
	const marked = `{"metadata": {"labels": {"vernier.ml/collector": "at-pod", "katib.kubeflow.org/trial": "exp-0000"}}}`
	for name, pod := range map[string]string{
		"the handler panics":   marked,
		"it cannot be read":    `{"metadata":`,
		"it is no object":      `[]`,
		"its parts are broken": `{"metadata": {"labels": 7, "ownerReferences": [7]}, "spec": []}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				panic("broken")
			}})
			handler := admission.Webhook{Handler: NewPods(c, Reporting{})}
			r := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(pod)}}})
			if !r.Allowed || len(r.Patches) > 0 {
				t.Errorf("%+v, want the pod to be admitted as it is", r)
			}
		})
	}
}

// created is a pod as it comes out of the webhook, which admits it.
func created(t *testing.T, pods *Pods, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Object: runtime.RawExtension{Raw: raw}}}
	if r := pods.Handle(t.Context(), request); !r.Allowed {
		t.Fatalf("the pod is refused: %+v", r.Result)
	}
	u, out := &unstructured.Unstructured{}, &corev1.Pod{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		t.Fatal(err)
	}
	_, _ = pods.edit(t.Context(), "ns", u) // what Handle made a patch of
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}
