package trial

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/trainer"
)

const isStopped = v1beta1.TrialEarlyStopped

func givenUp(t *v1beta1.Trial) {
	t.Annotations = map[string]string{v1beta1.AnnotationStopEarly: "worse than the median"}
}

func alsoStopped(t *v1beta1.Trial) { t.Annotations[v1beta1.AnnotationStop] = "goal reached" }

func abandoned(t *v1beta1.Trial) { t.MarkEarlyStopped("", metav1.NewTime(noon)) }

// terminating are running pods whose grace ends so long after noon.
func terminating(left time.Duration) []corev1.Pod {
	pods := podsIn(corev1.PodRunning)
	end := metav1.NewTime(noon.Add(left))
	pods[0].DeletionTimestamp = &end
	return pods
}

func TestATrialThatIsStoppedEarlyEndsAfterItsPods(t *testing.T) {
	some, all := data{stored: stored(points("loss", 3, 1))}, data{final: true, stored: stored(points("loss", 3, 1, 0.5))}
	gone, deleting := job{presence: removed}, jobIn(trainer.Running)
	deleting.deleting = true
	broken := jobIn(trainer.Failed)
	broken.deleting = true
	brokenAndGone := job{presence: present, state: trainer.State{Phase: trainer.Failed}}
	ended := podsIn(corev1.PodFailed, corev1.PodSucceeded)
	tests := map[string]struct {
		seen seen
		want outcome
		ago  time.Duration // since the trial is being stopped
	}{
		"its job is removed first":              {seen{trial: aTrial(givenUp), job: jobIn(trainer.Running), pods: podsIn(corev1.PodRunning)}, outcome{Remove: true, After: podsEnd}, 0},
		"its job is removed without pods":       {seen{trial: aTrial(givenUp), job: jobIn(trainer.Running)}, outcome{Remove: true, After: podsEnd}, 0},
		"a job that goes is not removed again":  {seen{trial: aTrial(givenUp), job: deleting, pods: podsIn(corev1.PodRunning)}, outcome{After: podsEnd}, 0},
		"pods that end are waited for":          {seen{trial: aTrial(givenUp), job: gone, pods: terminating(time.Minute)}, outcome{After: podsEnd}, patience + time.Second},
		"the wait for pods has an end":          {seen{trial: aTrial(givenUp), job: gone, pods: terminating(-patience), data: some}, outcome{State: isStopped, Loss: "1/3/1"}, time.Hour},
		"the end is not overslept":              {seen{trial: aTrial(givenUp), job: gone, pods: terminating(soon - patience)}, outcome{After: soon}, time.Hour},
		"pods that are not deleted are left":    {seen{trial: aTrial(givenUp), job: gone, pods: podsIn(corev1.PodRunning), data: some}, outcome{State: isStopped, Loss: "1/3/1"}, patience},
		"a job that does not go is left":        {seen{trial: aTrial(givenUp), job: jobIn(trainer.Running), data: some}, outcome{State: isStopped, Loss: "1/3/1"}, patience},
		"without pods nothing is waited for":    {seen{trial: aTrial(givenUp), job: gone, data: all}, outcome{State: isStopped, Loss: "0.5/3/0.5"}, 0},
		"pods that have ended are not":          {seen{trial: aTrial(givenUp), job: deleting, pods: ended, data: all}, outcome{State: isStopped, Loss: "0.5/3/0.5"}, 0},
		"the last report is waited for":         {seen{trial: aTrial(givenUp), job: gone, pods: ended, data: some}, outcome{After: podsEnd}, 10 * time.Second},
		"but not for ever":                      {seen{trial: aTrial(givenUp), job: gone, data: some}, outcome{State: isStopped, Loss: "1/3/1"}, patience},
		"the collector None has none":           {seen{trial: aTrial(givenUp, collecting(v1beta1.NoneCollector)), job: gone}, outcome{State: isStopped}, 0},
		"a trial without a job has no wait":     {seen{trial: aTrial(unseen, givenUp)}, outcome{State: isStopped}, 0},
		"a summary stands in for lost reports":  {seen{trial: aTrial(givenUp), job: gone, pods: ended, data: data{condensed: true, summary: []collector.Series{points("loss", 7)}, stored: some.stored}}, outcome{State: isStopped, Loss: "7/7/7"}, 0},
		"an ended job wins":                     {seen{trial: aTrial(givenUp), job: jobIn(trainer.Succeeded), data: all}, outcome{State: isSucceeded, Loss: "0.5/3/0.5"}, 0},
		"a failed job wins":                     {seen{trial: aTrial(givenUp), job: jobIn(trainer.Failed), data: all}, outcome{State: isFailed, Loss: "0.5/3/0.5"}, 0},
		"a job that fails as it goes does not":  {seen{trial: aTrial(givenUp), job: broken, data: all}, outcome{State: isStopped, Loss: "0.5/3/0.5"}, 0},
		"nor one that failed before it went":    {seen{trial: aTrial(givenUp), job: brokenAndGone, data: all}, outcome{State: isStopped, Loss: "0.5/3/0.5"}, 0},
		"to be killed wins, and waits for none": {seen{trial: aTrial(givenUp, alsoStopped), job: jobIn(trainer.Running), pods: podsIn(corev1.PodRunning), data: some}, outcome{State: isKilled, Loss: "1/3/1"}, 0},
		"its job does not stay, retained":       {seen{trial: aTrial(abandoned, retain), job: jobIn(trainer.Running)}, outcome{Remove: true}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.seen.wait = stopWait(tc.seen.pods, noon.Add(-tc.ago), noon)
			if diff := cmp.Diff(tc.want, outcomeOf(plan(tc.seen, noon))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// bench is a controller with one trial, its job and its pod. Nothing plays the
// garbage collector or the kubelet: the pod ends when the test deletes it.
type bench struct {
	*Controller
	client client.Client
	now    time.Time
}

func newBench(t *testing.T, tr *v1beta1.Trial) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, batchv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(tr, v1beta1.GroupVersion.WithKind("Trial"))}
	gvk := batchv1.SchemeGroupVersion.WithKind("Job")
	tr.Spec.RunSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"batch/v1","kind":"Job"}`)}
	b := &bench{now: noon}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(tr).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		WithIndex(&corev1.Pod{}, podIndex, func(o client.Object) []string { return []string{o.GetLabels()[v1beta1.LabelTrial]} }).
		WithObjects(tr,
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: tr.Namespace, Name: tr.Name, OwnerReferences: owner}},
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: tr.Namespace, Name: "pod", Labels: map[string]string{v1beta1.LabelTrial: tr.Name}, CreationTimestamp: tr.CreationTimestamp},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			}).Build()
	memory, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() })
	b.Controller = New(Options{
		Client: b.client, Reader: b.client, Store: memory, Metrics: NewMetrics(metrics.Options{Registry: prometheus.NewRegistry()}, b.client),
		Recorder: events.NewFakeRecorder(10), Now: func() time.Time { return b.now },
	})
	b.kinds[gvk] = true
	return b
}

// step reconciles the trial and returns it.
func (b *bench) step(t *testing.T, tr *v1beta1.Trial) *v1beta1.Trial {
	t.Helper()
	key := client.ObjectKeyFromObject(tr)
	if _, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	after := &v1beta1.Trial{}
	if err := b.client.Get(t.Context(), key, after); err != nil {
		t.Fatal(err)
	}
	return after
}

// report stores points of loss, one a step, from the given step on.
func (b *bench) report(t *testing.T, tr *v1beta1.Trial, from int, values ...float64) {
	t.Helper()
	s := points("loss", values...)
	for i := range s.Points {
		n := int64(from + i)
		s.Points[i].Step, s.Points[i].Seq, s.Points[i].Text = n, n, strconv.FormatFloat(values[i], 'g', -1, 64)
	}
	if err := b.Store.Append(t.Context(), idOf(tr), s.Attempt, s.Points); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsReportedAfterTheStopCounts(t *testing.T) {
	one := int64(1)
	tests := map[string]struct {
		// end is what happens to the pod after the last points came.
		end  func(*testing.T, *bench)
		want string
	}{
		"the pod goes": {func(t *testing.T, b *bench) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
			if err := b.client.Delete(t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &one}); err != nil {
				t.Fatal(err)
			}
			if err := b.Store.Finish(t.Context(), idOf(aTrial()), collector.Attempt{ID: "pod/0", Started: noon}, ""); err != nil {
				t.Fatal(err)
			}
		}, "0.5/3/0.5"},
		"the pod hangs": {func(_ *testing.T, b *bench) { b.now = b.now.Add(patience) }, "0.5/3/0.5"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := aTrial(givenUp)
			b := newBench(t, tr)
			b.report(t, tr, 0, 3, 2)
			if after := b.step(t, tr); !after.IsRunning() {
				t.Fatalf("before its pod has ended the trial is %s", after.LastCondition().Type)
			}
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(tr), &batchv1.Job{}); !apierrors.IsNotFound(err) {
				t.Fatalf("the job is not removed: %v", err)
			}
			b.report(t, tr, 2, 1, 0.5)
			tc.end(t, b)
			after := b.step(t, tr)
			if !after.IsEarlyStopped() || after.Status.Observation == nil {
				t.Fatalf("after its pod has ended the trial is %+v", after.Status)
			}
			m := after.Status.Observation.Metrics[0]
			if got := m.Min + "/" + m.Max + "/" + m.Latest; got != tc.want {
				t.Errorf("it observed %s, want %s", got, tc.want)
			}
			if len(b.memory.trials) != 0 {
				b.step(t, tr)
			}
			if len(b.memory.trials) != 0 {
				t.Errorf("it is remembered after its end: %v", b.memory.trials)
			}
		})
	}
}

// The clock goes on between two looks at it, and a pod's grace ends in between.
func TestTheWaitEndsNoEarlierForThePlanThanForTheReading(t *testing.T) {
	for left := range 8 {
		t.Run(strconv.Itoa(left)+" ms", func(t *testing.T) {
			tr := aTrial(givenUp)
			b := newBench(t, tr)
			b.report(t, tr, 0, 3, 0.5)
			grace := b.graceOfItsPod(t)
			b.now = grace.Add(-time.Second)
			b.step(t, tr)
			b.now = grace.Add(patience - time.Duration(left)*time.Millisecond)
			b.Now = func() time.Time {
				b.now = b.now.Add(time.Millisecond)
				return b.now
			}
			after := b.step(t, tr)
			for range 10 {
				if after.IsCompleted() {
					break
				}
				after = b.step(t, tr)
			}
			if !after.IsEarlyStopped() || after.Status.Observation == nil {
				t.Errorf("the trial is %+v", after.Status)
			}
		})
	}
}

// graceOfItsPod deletes the pod, which does not go, and returns the end of its grace.
func (b *bench) graceOfItsPod(t *testing.T) time.Time {
	t.Helper()
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: "ns", Name: "pod"}
	if err := b.client.Get(t.Context(), key, pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = []string{"example.com/stays"}
	if err := errors.Join(b.client.Update(t.Context(), pod), b.client.Delete(t.Context(), pod), b.client.Get(t.Context(), key, pod)); err != nil {
		t.Fatal(err)
	}
	return pod.DeletionTimestamp.Time
}
