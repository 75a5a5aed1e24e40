package experiment

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

// An answer of which the first trial exists did not know what that trial is, and may
// propose the same once more.
func TestNothingIsMadeOfAnAnswerThatMissedATrial(t *testing.T) {
	tests := map[string]struct {
		shown bool
		want  int
	}{
		"the cache does not show it":          {false, 0},
		"it is shown, but has lost its label": {true, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "random", 0, func(e *v1beta1.Experiment) { e.Spec.ParallelTrialCount = ptr.To[int32](4) })
			first := aTrial(0, created)
			first.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.exp, v1beta1.GroupVersion.WithKind("Experiment"))}
			if tc.shown {
				first.Labels = nil
				c.index.Put(nil, first)
			}
			c.Reader = fake.NewClientBuilder().WithScheme(c.Client.Scheme()).WithObjects(first).Build()
			c.refuse = func() error {
				c.refuse = nil
				return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "trials"}, first.Name)
			}
			c.reconcile(t)
			if len(c.trials) != tc.want {
				t.Errorf("%d trials were made, want %d", len(c.trials), tc.want)
			}
		})
	}
}

// A status write wakes the experiment, which must not try again because of it.
func TestTroubleWhoseWordsChangeIsWrittenOnce(t *testing.T) {
	c := newCluster(t, "random", 1)
	c.reconcile(t) // the status of the one trial
	now, tries := noon.Add(time.Hour), 0
	c.Now = func() time.Time { return now }
	c.drop(1)
	c.writes = 0
	c.refuse = func() error {
		tries++
		return fmt.Errorf("dial tcp 10.0.0.1:%d: connection refused", 40000+tries)
	}
	for range 20 {
		c.reconcile(t)
	}
	if tries != 1 || c.writes != 1 {
		t.Errorf("%d attempts and %d writes, want one of each", tries, c.writes)
	}
	now = now.Add(time.Minute)
	c.reconcile(t)
	if tries != 2 {
		t.Errorf("%d attempts a minute later, want 2", tries)
	}
}

func TestTheRuleStopsWhatIsBadWhileNoTrialCanBeMade(t *testing.T) {
	exp := experimentNamed("demo")
	exp.Spec.MaxTrialCount, exp.Spec.ParallelTrialCount = ptr.To[int32](20), ptr.To[int32](3)
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{TrialSource: v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{ConfigMapName: "gone"}}}
	exp.MarkCreated("", metav1.NewTime(noon))
	c, trials, _ := stopping(t, exp, 9)
	c.Rules = webhook.Rules{Reader: c.Client}
	if err := c.Client.Create(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials {
		trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))}
		if err := c.Client.Update(t.Context(), trial); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(exp)}); err != nil {
		t.Fatal(err)
	}
	if c.studies.kept[0].trouble.trouble == "" {
		t.Error("a trial could be made, which was not meant to")
	}
	bad := &v1beta1.Trial{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(trials[6]), bad); err != nil {
		t.Fatal(err)
	}
	if bad.Annotations[v1beta1.AnnotationStopEarly] == "" {
		t.Error("the trial with a bad curve is not asked to stop")
	}
}
