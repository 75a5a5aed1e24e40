package experiment

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

func TestTemplatesOfConfigMaps(t *testing.T) {
	shared := map[string]string{webhook.LabelTemplates: "trial-templates"}
	tests := map[string]struct {
		namespace string // of the ConfigMap; empty: there is none
		labels    map[string]string
		first     bool
		found     bool
		fatal     bool
	}{
		"one that is there": {namespace: "ns", first: true, found: true},
		"one that never came ends an experiment without trials": {first: true, fatal: true},
		"one that is missing for a moment ends no other":        {},
		"one of another namespace is refused":                   {namespace: "other", first: true, fatal: true},
		"unless it is shared":                                   {namespace: "other", labels: shared, first: true, found: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			b := fake.NewClientBuilder().WithScheme(scheme)
			from := &v1beta1.ConfigMapSource{ConfigMapName: "templates", TemplatePath: "job", ConfigMapNamespace: tc.namespace}
			if tc.namespace != "" {
				b = b.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "templates", Labels: tc.labels}, Data: map[string]string{"job": "text"}})
			}
			exp := anExperiment()
			exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{ConfigMap: from}}
			c := New(Options{Rules: webhook.Rules{Reader: b.Build()}, Now: func() time.Time { return noon.Add(time.Hour) }})
			text, err := c.template(t.Context(), exp, tc.first)
			if fatal := errors.As(err, new(*fatalError)); fatal != tc.fatal || (string(text) == "text") != tc.found || (err == nil) != tc.found {
				t.Errorf("%q, fatal %v, %v", text, fatal, err)
			}
		})
	}
}
