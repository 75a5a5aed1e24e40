package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// heldUp is a pod that began to wait before noon: for a node, where reason is
// Unschedulable, or for what a container lacks.
func heldUp(reason string, ago time.Duration) []corev1.Pod {
	at := metav1.NewTime(noon.Add(-ago))
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: at}, Status: corev1.PodStatus{Phase: corev1.PodPending, StartTime: &at}}
	if reason == corev1.PodReasonUnschedulable {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: at}}
	} else {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	return []corev1.Pod{pod}
}

func failedPods(ago time.Duration) []corev1.Pod {
	pods := podsIn(corev1.PodFailed)
	pods[0].CreationTimestamp = metav1.NewTime(noon.Add(-ago))
	pods[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Controller: ptr.To(true)}}
	return pods
}

func ran(since time.Duration) []corev1.Pod {
	pods := podsIn(corev1.PodFailed, corev1.PodRunning)
	for i := range pods {
		pods[i].Status.StartTime = &metav1.Time{Time: noon.Add(-since).Add(time.Duration(i) * time.Minute)}
	}
	return pods
}

func waitsAtMost(d time.Duration) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) { t.Spec.MaxWaitDuration = &metav1.Duration{Duration: d} }
}

func runsAtMost(d time.Duration) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) { t.Spec.MaxDuration = &metav1.Duration{Duration: d} }
}

func TestLimitsOfTime(t *testing.T) {
	limits := Limits{Repair: 15 * time.Minute}
	withRoom := Limits{Repair: 15 * time.Minute, Room: time.Hour}
	podlessFor := func(ago time.Duration, why string) *v1beta1.Trial {
		return aTrial(func(t *v1beta1.Trial) {
			t.Condition(v1beta1.TrialRunning).Message = messageRunning + ". " + noPods + noon.Add(-ago).Format(time.RFC3339) + ", because " + why
		})
	}
	suspendedSince := func(ago time.Duration) job {
		j := jobIn(trainer.Pending)
		j.state.Since = noon.Add(-ago)
		return j
	}
	running := jobIn(trainer.Running)
	goesOn, fails := outcome{State: isRunning, After: lookAgain}, outcome{State: isFailed}
	tests := map[string]struct {
		seen seen
		want outcome
		why  string
	}{
		"an image is waited for":                {seen{trial: aTrial(), job: running, pods: heldUp("ErrImagePull", 14*time.Minute), limits: limits}, goesOn, ""},
		"an image does not come":                {seen{trial: aTrial(), job: running, pods: heldUp("ErrImagePull", 16*time.Minute), limits: limits}, fails, "It waited too long. container main of pod p cannot get its image"},
		"no limit":                              {seen{trial: aTrial(), job: running, pods: heldUp("ErrImagePull", 999*time.Hour)}, goesOn, ""},
		"a full cluster is waited for":          {seen{trial: aTrial(), job: running, pods: heldUp("Unschedulable", 999*time.Hour), limits: limits}, goesOn, ""},
		"but not where that has a limit":        {seen{trial: aTrial(), job: running, pods: heldUp("Unschedulable", 2*time.Hour), limits: withRoom}, fails, "finds no node"},
		"a program that crashes has its own":    {seen{trial: aTrial(waitsAtMost(time.Minute)), job: running, pods: heldUp("CrashLoopBackOff", time.Hour), limits: limits}, goesOn, ""},
		"pods that fail one after the other":    {seen{trial: aTrial(waitsAtMost(time.Minute)), job: running, pods: failedPods(time.Hour), limits: limits}, goesOn, "1 of its pods failed and none runs"},
		"the experiment's limit of a node":      {seen{trial: aTrial(waitsAtMost(time.Minute)), job: running, pods: heldUp("Unschedulable", 2*time.Minute), limits: limits}, fails, "finds no node"},
		"the experiment waits longer":           {seen{trial: aTrial(waitsAtMost(time.Hour)), job: running, pods: heldUp("ErrImagePull", 16*time.Minute), limits: limits}, goesOn, ""},
		"the experiment waits forever":          {seen{trial: aTrial(waitsAtMost(0)), job: running, pods: heldUp("ErrImagePull", 16*time.Hour), limits: limits}, goesOn, ""},
		"a refusal of pods, said for long":      {seen{trial: podlessFor(16*time.Minute, "the namespace's LimitRange is forbidden"), job: running, podless: "a pod violates PodSecurity", limits: limits}, fails, "violates PodSecurity"},
		"a refusal of pods, said now":           {seen{trial: aTrial(), job: running, podless: "a pod violates PodSecurity", limits: limits}, goesOn, ""},
		"a refusal of pods after a full quota":  {seen{trial: podlessFor(20*time.Hour, "exceeded quota: small"), job: running, podless: "a pod violates PodSecurity", limits: limits}, goesOn, ""},
		"a quota is waited for":                 {seen{trial: podlessFor(20*time.Hour, "exceeded quota: small"), job: running, podless: "a pod is forbidden: exceeded quota: small", limits: limits}, goesOn, ""},
		"a queue of the job's own controller":   {seen{trial: podlessFor(20*time.Hour, "nothing has made them"), job: running, podless: nothingMade, limits: limits}, goesOn, ""},
		"such a queue that has a limit":         {seen{trial: podlessFor(20*time.Hour, "nothing has made them"), job: running, podless: nothingMade, limits: withRoom}, fails, "nothing has made them"},
		"a queue of which an event tells":       {seen{trial: podlessFor(20*time.Hour, "the queue is full"), job: running, podless: "queue resource quota insufficient", limits: limits}, goesOn, ""},
		"a queue is waited for":                 {seen{trial: aTrial(), job: suspendedSince(20 * time.Hour), limits: limits}, goesOn, ""},
		"a queue that has a limit":              {seen{trial: aTrial(), job: suspendedSince(20 * time.Hour), limits: withRoom}, fails, "suspended"},
		"a queue, since a preemption":           {seen{trial: aTrial(), job: suspendedSince(20 * time.Minute), limits: withRoom}, goesOn, ""},
		"a preemption without a time":           {seen{trial: aTrial(), job: jobIn(trainer.Pending), data: data{stored: stored(points("loss", 3))}, limits: Limits{Room: time.Minute}}, outcome{State: isRunning, After: lookAgain, Loss: "3/3/3"}, v1beta1.PreemptedSays},
		"such a one, said an hour ago":          {seen{trial: aTrial(saying(messageRunning + ". " + v1beta1.PreemptedSays)), job: jobIn(trainer.Pending), limits: Limits{Room: time.Minute}}, fails, v1beta1.PreemptedSays},
		"a trial runs too long":                 {seen{trial: aTrial(runsAtMost(time.Hour)), job: running, pods: ran(61 * time.Minute), data: data{stored: stored(points("loss", 3))}}, outcome{State: isFailed, Loss: "3/3/3"}, "maxTrialDuration, 1h0m0s"},
		"a trial that will have run too long":   {seen{trial: aTrial(runsAtMost(time.Hour)), job: running, pods: ran(time.Hour - 3*time.Second)}, outcome{After: 3 * time.Second}, ""},
		"a trial that has not begun to run":     {seen{trial: aTrial(runsAtMost(time.Minute)), job: suspendedSince(time.Hour)}, goesOn, ""},
		"an end that came before it was looked": {seen{trial: aTrial(runsAtMost(time.Hour)), job: jobIn(trainer.Succeeded), pods: ran(2 * time.Hour), data: data{final: true, stored: stored(points("loss", 3))}}, outcome{State: isSucceeded, Loss: "3/3/3"}, ""},
		"the job goes although it is retained":  {seen{trial: aTrial(lost, retain), job: running}, outcome{Remove: true}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(tc.seen, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if d.status != nil && !strings.Contains(last(d.status).Message, tc.why) {
				t.Errorf("message %q lacks %q", last(d.status).Message, tc.why)
			}
		})
	}
}

func TestAJobThatCannotBeMadeIsGivenUp(t *testing.T) {
	said := func(what string, ago time.Duration, why string) string {
		return what + noon.Add(-ago).Format(time.RFC3339) + ", because " + why
	}
	waitsFor := func(ago time.Duration, why string) func(*v1beta1.Trial) {
		return func(t *v1beta1.Trial) {
			unseen(t)
			t.MarkCreated(messageWaits+said(notMade, ago, why), metav1.NewTime(noon.Add(-24*time.Hour)))
		}
	}
	waitsSince := func(ago time.Duration) func(*v1beta1.Trial) { return waitsFor(ago, "no kind Y") }
	joblessSince := func(ago time.Duration, why string) func(*v1beta1.Trial) {
		return func(t *v1beta1.Trial) {
			t.Condition(v1beta1.TrialRunning).Message = messageRunning + ". " + said(noJob, ago, why)
		}
	}
	const quota = "exceeded quota: jobs"
	limits := Limits{Repair: 15 * time.Minute}
	tests := map[string]struct {
		trial   *v1beta1.Trial
		trouble string
		limits  Limits
		want    outcome
	}{
		"not yet":                     {aTrial(waitsSince(14 * time.Minute)), "no kind X", limits, outcome{State: v1beta1.TrialCreated, After: kindRetry}},
		"after its time":              {aTrial(waitsSince(16 * time.Minute)), "no kind X", limits, outcome{State: isFailed}},
		"without a limit":             {aTrial(waitsSince(16 * time.Hour)), "no kind X", Limits{}, outcome{State: v1beta1.TrialCreated, After: kindRetry}},
		"a quota on jobs":             {aTrial(waitsFor(16*time.Hour, quota)), quota + ", used: 9", limits, outcome{State: v1beta1.TrialCreated, After: kindRetry}},
		"an error after a full quota": {aTrial(waitsFor(16*time.Hour, quota)), "etcdserver: leader changed", limits, outcome{State: v1beta1.TrialCreated, After: kindRetry}},
		"a job that is made again":    {aTrial(), "no kind X", limits, outcome{State: isRunning, After: kindRetry}},
		"no room for long":            {aTrial(unseen, func(t *v1beta1.Trial) { t.MarkCreated(messageCreated, metav1.NewTime(noon.Add(-time.Hour))) }), noRoom + "x", limits, outcome{State: v1beta1.TrialCreated, After: roomRetry}},
		"no room for too long":        {aTrial(unseen, func(t *v1beta1.Trial) { t.MarkCreated(messageCreated, metav1.NewTime(noon.Add(-time.Hour))) }, waitsAtMost(time.Minute)), noRoom + "x", limits, outcome{State: isFailed}},
		"again, not yet":              {aTrial(joblessSince(14*time.Minute, "no kind Y")), "no kind X", limits, outcome{State: isRunning, After: kindRetry}},
		"again, after its time":       {aTrial(joblessSince(16*time.Minute, "no kind Y")), "no kind X", limits, outcome{State: isFailed}},
		"a job that may still run":    {aTrial(joblessSince(16*time.Hour, "no kind Y")), unseenJob + "forbidden", limits, outcome{State: isRunning, After: kindRetry}},
		"again, in a quota":           {aTrial(joblessSince(16*time.Hour, quota)), quota + ", used: 9", limits, outcome{State: isRunning, After: kindRetry}},
		"again, out of a quota":       {aTrial(joblessSince(16*time.Hour, quota)), "no kind X", limits, outcome{State: isRunning, After: kindRetry}},
		"as soon as the limit is set": {aTrial(waitsFor(2*time.Minute, quota), waitsAtMost(time.Minute)), quota, limits, outcome{State: isFailed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := launched(tc.trial, "", tc.trouble, tc.limits, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("launched (-want +got):\n%s", diff)
			}
			if message := last(d.status).Message; !strings.Contains(message, tc.trouble) {
				t.Errorf("the trial says %q, and not why it has no job: %s", message, tc.trouble)
			}
		})
	}
}

// What GPUs cost is counted from the start of the program, and its first one.
func TestTheStartOfAProgramThatHasGPUsIsWritten(t *testing.T) {
	asks := func(n string) func(*v1beta1.Trial) {
		return func(t *v1beta1.Trial) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1beta1.AnnotationGPUs, n) }
	}
	at := metav1.NewTime(noon.Add(-time.Minute))
	began := func(t *v1beta1.Trial) { t.Status.ProgramStartTime = &at }
	since := func(at metav1.Time) []corev1.Pod {
		pods := podsIn(corev1.PodRunning)
		pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		return pods
	}
	tests := map[string]struct {
		trial *v1beta1.Trial
		pods  []corev1.Pod
		job   trainer.Phase
		want  *metav1.Time // nil: no write
	}{
		"it has started":           {aTrial(asks("2")), since(at), trainer.Running, &at},
		"it waits":                 {aTrial(asks("2")), heldUp("ErrImagePull", time.Minute), trainer.Running, nil},
		"it is known":              {aTrial(asks("2"), began), since(at), trainer.Running, nil},
		"it asks for none":         {aTrial(asks("0")), since(at), trainer.Running, nil},
		"no budget counts GPUs":    {aTrial(), since(at), trainer.Running, nil},
		"another pod is its last":  {aTrial(asks("2"), began), since(metav1.NewTime(noon)), trainer.Failed, &at},
		"its pods tell at the end": {aTrial(), since(at), trainer.Failed, &at},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.trial.Condition(v1beta1.TrialRunning).Message = messageRunning
			d := plan(seen{trial: tc.trial, job: jobIn(tc.job), pods: tc.pods}, noon)
			var got *metav1.Time
			if d.status != nil {
				got = d.status.ProgramStartTime
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("start of the program (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAJobWhoseConditionsDoNotSeeItsEnd(t *testing.T) {
	const byKind, misspelt = `status.conditions.#(type=="Complete")#|#(status=="True")#`, `status.conditions.#(type=="Completed")#|#(status=="True")#`
	complete, failed := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}
	tests := map[string]struct {
		success, failure string
		job              []batchv1.JobCondition
		want             bool
	}{
		"it succeeded, and success is misspelt":     {misspelt, "status.failed", []batchv1.JobCondition{complete}, true},
		"it failed, and only success is looked for": {byKind, "status.nothing", []batchv1.JobCondition{failed}, true},
		"it runs":                                {misspelt, "status.failed", nil, false},
		"it is not over, and success is a count": {"status.succeeded", "status.failed", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := aTrial(func(tr *v1beta1.Trial) { tr.Spec.SuccessCondition, tr.Spec.FailureCondition = tc.success, tc.failure })
			b := newBench(t, tr)
			b.Limits = Limits{Repair: 15 * time.Minute}
			job := &batchv1.Job{}
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(tr), job); err != nil {
				t.Fatal(err)
			}
			job.Status.Conditions = tc.job
			if err := b.client.Status().Update(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				message := b.step(t, tr).Condition(v1beta1.TrialRunning).Message
				if said := strings.Contains(message, "successCondition"); said != tc.want {
					t.Errorf("the trial says %q, of the conditions: want %v", message, tc.want)
				}
				b.now = b.now.Add(14 * time.Minute)
			}
			b.now = b.now.Add(2 * time.Minute)
			if over := b.step(t, tr); over.IsFailed() != tc.want {
				t.Errorf("after half an hour its state is %s, want failed: %v", over.State(), tc.want)
			}
		})
	}
}
