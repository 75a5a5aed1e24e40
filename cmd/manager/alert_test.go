package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/alert"
)

// rightsOfAlerts: that a goal was reached comes to the webhook of the namespace, once, also
// from a manager that starts later.
func rightsOfAlerts(t *testing.T) {
	w := newWorld(t, func(string) ending { return ending{points: []float64{0}} })
	w.actAsInstalled()
	for _, u := range optional(t) {
		if err := ctrlclient.IgnoreAlreadyExists(w.client.Create(t.Context(), u)); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var got []alert.Message
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m alert.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m)
	}))
	defer hook.Close()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: v1beta1.SecretAlerts}, Data: map[string][]byte{"mine": []byte(hook.URL)}}
	if err := w.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.alerts.hosts = []string{"http://127.0.0.1:*"}
	stop := w.start()
	goal := 0.5
	reaches := func(e *v1beta1.Experiment) {
		e.Spec.Objective.Goal, e.Spec.ParallelTrialCount = &goal, ptr.To[int32](1)
	}
	first := w.experiment("first", reaches)
	w.create(first)
	came := func(n int) func() string {
		return func() string {
			mu.Lock()
			defer mu.Unlock()
			if len(got) < n {
				return "nothing has come"
			}
			return ""
		}
	}
	w.eventually("the alert comes", came(1))
	stop()
	w.start() // it sees both experiments, in one order or the other
	second := w.experiment("second", reaches)
	w.create(second)
	w.eventually("the second one comes", came(2))
	mu.Lock()
	defer mu.Unlock()
	for i, e := range []*v1beta1.Experiment{first, second} {
		if m := got[i]; len(got) != 2 || m.Reason != alert.GoalReached || m.Experiment != e.Name || m.Namespace != w.namespace || m.Trial != e.Name+"-0000" {
			t.Errorf("%+v", got)
		}
	}
}
