package suggestion

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// ended marks the experiment as failed.
func (w *world) ended(t *testing.T, e *v1beta1.Experiment) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	failed(e)
	if err := w.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func TestObjectsOfOtherOwnersAreLeftAlone(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "e-theirs", UID: "uid-of-another"}
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(deploymentKind)
	deployment.SetNamespace(meta.Namespace)
	deployment.SetName(meta.Name)
	deployment.SetUID(meta.UID)
	for kind, other := range map[string]client.Object{"Service": &corev1.Service{ObjectMeta: meta}, "Deployment": deployment} {
		t.Run(kind, func(t *testing.T) {
			e := theirs("e")
			w := newServiceWorld(t, map[string]*algorithm{"e": {suggest: proposes}}, e, other)
			w.request(t, "e", 1)
			s, result := w.reconcile(t, "e")
			c := s.Condition(v1beta1.SuggestionDeploymentReady)
			if want := "a " + kind + " named e-theirs exists already"; c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, want) {
				t.Errorf("the condition %+v, want %q", c, want)
			}
			if result.RequeueAfter != longestPause {
				t.Errorf("tried again after %s, want %s", result.RequeueAfter, longestPause)
			}
			w.ended(t, e)
			w.reconcile(t, "e")
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
				t.Errorf("the %s after the end: %v", kind, err)
			}
		})
	}
}

// What the API server refuses because of katib-config is said, and not only tried again.
func TestAServiceThatCannotBeDeployedSaysWhy(t *testing.T) {
	w := newServiceWorld(t, nil, theirs("e"))
	w.request(t, "e", 1)
	w.Options.Client = interceptor.NewClient(w.Options.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetObjectKind().GroupVersionKind() == deploymentKind {
				return apierrors.NewInvalid(deploymentKind.GroupKind(), o.GetName(), field.ErrorList{field.Required(field.NewPath("image"), "")})
			}
			return c.Create(ctx, o, opts...)
		},
	})
	s, _ := w.reconcile(t, "e")
	if c := s.Condition(v1beta1.SuggestionDeploymentReady); c == nil || !strings.Contains(c.Message, "image: Required") || !strings.Contains(c.Message, "katib-config") {
		t.Errorf("the condition %+v", c)
	}
}

func TestDefaultsGiveWayToWhatIsGiven(t *testing.T) {
	quantities := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	tests := map[string]struct{ given, want corev1.ResourceRequirements }{
		"nothing":  {want: corev1.ResourceRequirements{Requests: quantities("50m", "64Mi"), Limits: quantities("1", "1Gi")}},
		"requests": {corev1.ResourceRequirements{Requests: quantities("2", "4Gi")}, corev1.ResourceRequirements{Requests: quantities("2", "4Gi"), Limits: quantities("2", "4Gi")}},
		"limits":   {corev1.ResourceRequirements{Limits: quantities("10m", "32Mi")}, corev1.ResourceRequirements{Requests: quantities("10m", "32Mi"), Limits: quantities("10m", "32Mi")}},
	}
	for name, tc := range tests {
		if defaultResources(&tc.given); !equality.Semantic.DeepEqual(tc.want, tc.given) {
			t.Errorf("%s: %+v, want %+v", name, tc.given, tc.want)
		}
	}
}

// A proposal whose trial is not made yet has taken its name too.
func TestANameIsProposedOnce(t *testing.T) {
	tests := map[string]struct {
		q    question
		want string
	}{
		"that of a trial":    {question{trials: some(2)}, "exp-0001"},
		"that of a proposal": {question{proposed: []v1beta1.TrialAssignment{{Name: "waits"}}}, "waits"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newServiceWorld(t, map[string]*algorithm{"exp": {suggest: func(r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
				reply, err := proposes(r)
				reply.ParameterAssignments[0].TrialName = tc.want
				return reply, err
			}}})
			tc.q.exp = theirs("exp")
			tc.q.count, tc.q.requests = 2, 3
			a := w.ask(t.Context(), tc.q)
			if a.err == nil || !strings.Contains(a.err.Error(), tc.want) || len(a.proposals) != 0 {
				t.Errorf("the error %v with %d proposals, want one that names %s", a.err, len(a.proposals), tc.want)
			}
		})
	}
}

// The process that deployed the service may have ended before the experiment does.
func TestAServiceThatFailedIsRemovedAfterARestart(t *testing.T) {
	e := theirs("e")
	w := newServiceWorld(t, nil, e)
	w.request(t, "e", 1)
	s, _ := w.reconcile(t, "e")
	s.MarkFailed("refused", metav1.NewTime(w.now))
	if err := w.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.forget(s.UID)
	w.ended(t, e)
	w.reconcile(t, "e")
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-theirs"}, &corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service after the end: %v", err)
	}
}

// A running experiment outlives an entry of katib-config that is away for a while.
func TestAnAlgorithmThatIsNamedNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		proposed int32
		failed   bool
	}{
		"before the first trial": {failed: true},
		"in mid-run":             {proposed: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newServiceWorld(t, nil, theirs("e"))
			w.request(t, "e", 1+c.proposed)
			s, _ := w.reconcile(t, "e")
			s.Status.SuggestionCount = c.proposed
			if err := w.Status().Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			w.forget(s.UID) // as a manager that is started again
			if err := w.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "katib-config"}}); err != nil {
				t.Fatal(err)
			}
			s, result := w.reconcile(t, "e")
			if s.IsFailed() != c.failed {
				t.Errorf("failed is %t, want %t: %+v", s.IsFailed(), c.failed, s.Status.Conditions)
			}
			ready := ptr.Deref(s.Condition(v1beta1.SuggestionDeploymentReady), v1beta1.SuggestionCondition{})
			if !c.failed && (!strings.Contains(ready.Message, "katib-config") || result.RequeueAfter != longestPause) {
				t.Errorf("DeploymentReady says %q, tried again after %s", ready.Message, result.RequeueAfter)
			}
		})
	}
}
