package experiment

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Who deletes an experiment and makes it again at once gets what its own service says:
// the garbage collector takes a while to delete the Suggestion of the first one.
func TestASuggestionOfADeletedExperimentIsNotUsed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*v1beta1.Suggestion){
		"its proposals": func(s *v1beta1.Suggestion) {
			s.Status.SuggestionCount, s.Status.Suggestions = 1, []v1beta1.TrialAssignment{{Name: "exp-0000"}}
		},
		"its failure":  func(s *v1beta1.Suggestion) { s.MarkFailed("the service refuses", metav1.NewTime(noon)) },
		"its requests": func(*v1beta1.Suggestion) {},
	} {
		t.Run(name, func(t *testing.T) {
			exp := anExperiment()
			before := exp.DeepCopy()
			before.UID = "deleted"
			s := &v1beta1.Suggestion{ObjectMeta: metav1.ObjectMeta{Namespace: exp.Namespace, Name: exp.Name,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(before, v1beta1.GroupVersion.WithKind("Experiment"))}}}
			change(s)
			c := New(Options{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).Build(), Now: func() time.Time { return noon }})
			got, err := c.fromService(t.Context(), exp, actions{add: 1})
			var waits *waitError
			if len(got) > 0 || !errors.As(err, &waits) {
				t.Errorf("%+v, %v", got, err)
			}
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil || s.Spec.Requests != 0 {
				t.Errorf("%d requests, %v", s.Spec.Requests, err)
			}
		})
	}
}
