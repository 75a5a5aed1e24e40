package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// lists lets its caller list these resources, in the namespaces that each is named with.
type lists map[string]string

func (lists) Authenticate(context.Context, *http.Request) (authenticationv1.UserInfo, bool, error) {
	return authenticationv1.UserInfo{Username: "ann"}, true, nil
}

func (l lists) Allowed(_ context.Context, _ authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	return what.Verb == "list" && what.Namespace != "" && l[what.Resource] == what.Namespace, nil
}

func TestAlertsAreThoseThatTheCallerMaySee(t *testing.T) {
	failed := func(namespace string, before time.Duration) *v1beta1.Experiment {
		e := searched()
		e.Namespace, e.UID = namespace, types.UID(namespace)
		at := metav1.NewTime(noon.Add(-before))
		e.MarkFailed(v1beta1.ReasonExperimentFailed, "All trials have failed", at)
		e.Status.CompletionTime = &at
		return e
	}
	old := failed("ml", 8*24*time.Hour)
	old.Name = "old"
	s := serve(t, interceptor.Funcs{}, failed("ml", time.Hour), failed("other", 2*time.Hour), old,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	for name, c := range map[string]struct {
		access Access
		want   []string
	}{
		"who may list all":              {OneToken("any"), []string{"namespaces/ml/experiments/exp", "namespaces/other/experiments/exp"}},
		"who may list one namespace":    {lists{"experiments": "other", "trials": "other"}, []string{"namespaces/other/experiments/exp"}},
		"who may list experiments only": {lists{"experiments": "other"}, nil},
		"who may list nothing":          {lists{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.Access = c.access
			got, err := s.ListAlerts(t.Context(), &vernierv1.ListAlertsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var of []string
			for _, a := range got.GetAlerts() {
				if of = append(of, a.GetExperiment()); a.GetReason() != "ExperimentFailed" || !a.GetWarning() || a.GetMessage() != "All trials have failed" {
					t.Errorf("%v", a)
				}
			}
			if diff := cmp.Diff(c.want, of); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every open page asks for alerts: the trials of an experiment are read again when it has
// changed, and not for a page that is closed.
func TestAlertsAreRememberedWhileNothingChanges(t *testing.T) {
	read := 0
	e := searched()
	e.MarkFailed(v1beta1.ReasonExperimentFailed, "All trials have failed", metav1.NewTime(noon))
	s := serve(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, ok := list.(*v1beta1.TrialList); ok {
			read++
		}
		return c.List(ctx, list, o...)
	}}, e, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}})
	ask := func(ctx context.Context, want int) {
		t.Helper()
		got, err := s.ListAlerts(ctx, &vernierv1.ListAlertsRequest{})
		if ctx.Err() == nil && (err != nil || len(got.GetAlerts()) != 1) || (err == nil) != (ctx.Err() == nil) || read != want {
			t.Errorf("%v, %v, and the trials were read %d times, want %d", got, err, read, want)
		}
	}
	ask(t.Context(), 1)
	ask(t.Context(), 1)
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	e.Labels = map[string]string{"a": "b"}
	if err := s.Client.Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	closed, stop := context.WithCancel(t.Context())
	stop()
	ask(closed, 1)
	ask(t.Context(), 2)
}
