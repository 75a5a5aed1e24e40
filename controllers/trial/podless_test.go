package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// about is a warning about an object, seen some time before noon.
func about(kind, name, message string, ago time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: name + message[:1] + ago.String()},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "ns", Name: name},
		Type:           corev1.EventTypeWarning, Message: message, LastTimestamp: metav1.NewTime(noon.Add(-ago)),
	}
}

const overQuota = `Error creating: pods "exp-0000-x7k2p" is forbidden: exceeded quota: small, limited: limits.cpu=1`

func withConditions(tr *v1beta1.Trial) {
	tr.Spec.SuccessCondition, tr.Spec.FailureCondition = "status.succeeded", "status.failed"
}

func TestAJobWithoutPodsSaysWhy(t *testing.T) {
	const quota = "a pod is forbidden: exceeded quota: small, limited: limits.cpu=1"
	justStarted := func(tr *v1beta1.Trial) { *tr.Status.StartTime = metav1.NewTime(noon.Add(-30 * time.Second)) }
	starting := func(tr *v1beta1.Trial) { *tr.Status.StartTime = metav1.NewTime(noon.Add(-5 * time.Second)) }
	tests := map[string]struct {
		change func(*v1beta1.Trial)
		events []*corev1.Event
		said   string // before
		want   string
	}{
		"a quota": {events: []*corev1.Event{about("Job", "exp-0000", overQuota, time.Second)}, want: "2030-01-02T12:00:00Z, because " + quota},
		"a LimitRange, of the collector it may be": {events: []*corev1.Event{about("Job", "exp-0000",
			`Error creating: pods "exp-0000-x7k2p" is forbidden: minimum cpu usage per Container is 20m, but request is 10m`, time.Second)}, want: v1beta1.AnnotationCollector + "cpu-request"},
		"events that are one":     {events: []*corev1.Event{about("Job", "exp-0000", "(combined from similar events): "+overQuota, time.Second)}, want: "2030-01-02T12:00:00Z, because " + quota},
		"the newest event counts": {events: []*corev1.Event{about("Job", "exp-0000", overQuota, time.Minute), about("Job", "exp-0000", "other", time.Second)}, want: "2030-01-02T12:00:00Z, because other"},
		"of what the job made":    {events: []*corev1.Event{about("ReplicaSet", "exp-0000-workers-0", overQuota, time.Second)}, want: "because " + quota},
		"of a trial of an experiment that is named like this trial": {change: justStarted, events: []*corev1.Event{about("Job", "exp-0000-0001", overQuota, time.Second)}},
		"of an experiment's record":                                 {change: justStarted, events: []*corev1.Event{about("Suggestion", "exp-0000-b", "x", time.Second)}},
		"of a Service that the job made":                            {change: justStarted, events: []*corev1.Event{about("Service", "exp-0000-worker-0", "x", time.Second)}},
		"the time stays":                                            {events: []*corev1.Event{about("Job", "exp-0000", "other", time.Second)}, said: noPods + "2030-01-02T11:30:00Z, because " + quota, want: "2030-01-02T11:30:00Z, because other"},
		"nothing says why":                                          {want: "2030-01-02T12:00:00Z, because nothing has made them"},
		"it has only begun":                                         {change: justStarted},
		"pods come in a moment":                                     {change: starting, events: []*corev1.Event{about("Job", "exp-0000", overQuota, time.Second)}},
		"of another trial":                                          {change: justStarted, events: []*corev1.Event{about("Job", "exp-00001", overQuota, time.Second)}},
		"of a deleted trial":                                        {change: justStarted, events: []*corev1.Event{about("Job", "exp-0000", overQuota, 2*time.Hour)}},
		"what the trial itself warns":                               {change: justStarted, events: []*corev1.Event{about("Trial", "exp-0000", "x", time.Second)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := aTrial(withConditions)
			if tc.change != nil {
				tc.change(tr)
			}
			if tc.said != "" {
				tr.Condition(v1beta1.TrialRunning).Message = messageRunning + ". " + tc.said
			}
			b := newBench(t, tr)
			if err := b.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}); err != nil {
				t.Fatal(err)
			}
			for _, e := range tc.events {
				if err := b.client.Create(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			message := b.step(t, tr).Condition(v1beta1.TrialRunning).Message
			if tc.want == "" && message != messageRunning || !strings.Contains(message, tc.want) || tc.want != "" && !strings.HasPrefix(message, messageRunning+". "+noPods) {
				t.Errorf("the trial says %q, want %q", message, tc.want)
			}
		})
	}
}

func TestWhatRefusesPodsIsToldFromWhatLetsThemWait(t *testing.T) {
	for why, want := range map[string]trainer.Remedy{
		`a pod is forbidden: violates PodSecurity "restricted:latest"`:                    trainer.Repair,
		"a pod is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi": trainer.Repair,
		`a pod is forbidden: error looking up service account ns/x`:                       trainer.Repair,
		`Error creating: admission webhook "policy" denied the request: no`:               trainer.Repair,
		`Error creating: Pod "exp-0000-x" is invalid: spec.containers[0].image: Required`: trainer.Repair,
		"a pod is forbidden: exceeded quota: small, limited: limits.cpu=1":                trainer.Room,
		"3/3 tasks in gang unschedulable: queue is full":                                  trainer.Room,
		"PipelineRun waits: the maximum of concurrent ones runs":                          trainer.Room,
		nothingMade: trainer.Room,
	} {
		if got := remedyOf(why, trainer.Room); got != want {
			t.Errorf("%q: %v, want %v", why, got, want)
		}
	}
}

// A quota keeps the pods of many trials away; they share one look at the warnings.
func TestTrialsWithoutPodsShareOneLookAtTheWarnings(t *testing.T) {
	lists, fail := 0, false
	api := interceptor.NewClient(fake.NewClientBuilder().WithIndex(&corev1.Event{}, "type", func(client.Object) []string { return []string{corev1.EventTypeWarning} }).
		WithObjects(about("Job", "exp-0000", overQuota, time.Second)).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if lists++; fail {
				return errors.New("the role does not allow it")
			}
			return c.List(ctx, list, opts...)
		},
	})
	c := &Controller{Options: Options{Reader: api}}
	tr := aTrial()
	for n, now := range []time.Time{noon, noon.Add(9 * time.Second), noon.Add(11 * time.Second)} {
		if why := c.podless(t.Context(), tr, now); !strings.Contains(why, "exceeded quota") {
			t.Errorf("look %d: %q", n, why)
		}
	}
	if lists != 2 {
		t.Errorf("the warnings were listed %d times in 11 seconds, want 2", lists)
	}
	other := aTrial(func(tr *v1beta1.Trial) { tr.Namespace = "other" })
	for range 3 {
		c.podless(t.Context(), other, noon.Add(11*time.Second))
		c.podless(t.Context(), tr, noon.Add(11*time.Second))
	}
	if lists != 3 {
		t.Errorf("the warnings of two namespaces were listed %d times, want 3", lists)
	}
	fail = true
	if why := c.podless(t.Context(), tr, noon.Add(time.Hour)); why != "" {
		t.Errorf("when they cannot be read: %q", why)
	}
}

func TestATrialWithPodsIsNotSaidToHaveNone(t *testing.T) {
	tr := aTrial(withConditions)
	b := newBench(t, tr)
	if err := b.client.Create(t.Context(), about("Job", "exp-0000", overQuota, time.Second)); err != nil {
		t.Fatal(err)
	}
	if message := b.step(t, tr).Condition(v1beta1.TrialRunning).Message; message != messageRunning {
		t.Errorf("it says %q", message)
	}
}

// Once Katib is uninstalled, a deleted trial must not stay behind its finalizer.
func TestADeletedTrialThatKatibLeftBehindGoes(t *testing.T) {
	tr := aTrial(func(tr *v1beta1.Trial) { tr.Finalizers = []string{"clean-metrics-in-db"} })
	b := newBench(t, tr)
	if err := b.client.Delete(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(tr)
	if _, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Get(t.Context(), key, tr); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is still there: %v, finalizers %v", err, tr.Finalizers)
	}
}
