package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// retrying is a trial whose job may be made again n times, and was done times, the last
// after the job with the given UID.
func retrying(n, done int32, last types.UID) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) { t.Spec.Retry, t.Status.Retries, t.Status.RetriedJob = n, done, last }
}

func TestAFailedJobIsMadeAgain(t *testing.T) {
	failed := func(uid types.UID, change ...func(*job)) job {
		j := jobIn(trainer.Failed)
		j.uid = uid
		for _, f := range change {
			f(&j)
		}
		return j
	}
	leaving, gone := func(j *job) { j.deleting = true }, func(j *job) { j.exists = false }
	stoppedEarly := func(t *v1beta1.Trial) { t.Annotations = map[string]string{v1beta1.AnnotationStopEarly: "it is bad"} }
	tests := map[string]struct {
		seen    seen
		want    outcome
		retries int32
	}{
		"it is counted first":            {seen{trial: aTrial(retrying(2, 0, "")), job: failed("a")}, outcome{State: isRunning}, 1},
		"then removed":                   {seen{trial: aTrial(retrying(2, 1, "a")), job: failed("a")}, outcome{Remove: true}, 1},
		"then waited for":                {seen{trial: aTrial(retrying(2, 1, "a")), job: failed("a", leaving)}, outcome{}, 1},
		"then made":                      {seen{trial: aTrial(retrying(2, 1, "a")), job: failed("a", gone)}, outcome{Create: true}, 1},
		"also the last one":              {seen{trial: aTrial(retrying(1, 1, "a")), job: failed("a", gone)}, outcome{Create: true}, 1},
		"the next failure counts":        {seen{trial: aTrial(retrying(2, 1, "a")), job: failed("b")}, outcome{State: isRunning}, 2},
		"and the one after that is last": {seen{trial: aTrial(retrying(2, 2, "b")), job: failed("c")}, outcome{State: isFailed}, 2},
		"one that fails before its trial was told of it": {seen{trial: aTrial(unseen, retrying(1, 0, "")), job: failed("a")}, outcome{State: isRunning}, 1},
		"none is made of a trial that is stopped":        {seen{trial: aTrial(stopped, retrying(2, 0, "")), job: failed("a")}, outcome{State: isKilled}, 0},
		"nor of one that is stopped early":               {seen{trial: aTrial(stoppedEarly, retrying(2, 0, "")), job: failed("a", gone)}, outcome{State: v1beta1.TrialEarlyStopped}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(tc.seen, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if d.status == nil {
				return
			}
			if d.status.Retries != tc.retries || d.status.StartTime == nil {
				t.Errorf("%d retries, want %d; status %+v", d.status.Retries, tc.retries, d.status)
			}
			if tc.want.State == isRunning && d.status.RetriedJob != tc.seen.job.uid {
				t.Errorf("job %q counts, want %q", d.status.RetriedJob, tc.seen.job.uid)
			}
			if message := last(d.status).Message; tc.want.State == isRunning && !strings.Contains(message, "Job message: M") {
				t.Errorf("it does not say why: %s", message)
			}
		})
	}
}

// A job whose pods came without their collector is made again a few times, each later
// than the one before, and never counts as one that reported nothing.
func TestAJobThatNothingMeasuresIsMadeAgain(t *testing.T) {
	const why = "its pod p came without the metrics collector"
	said := func(ago time.Duration) func(*v1beta1.Trial) {
		return func(t *v1beta1.Trial) {
			c := t.Condition(v1beta1.TrialRunning)
			c.Message, c.LastUpdateTime = messageRunning+". Its job is made again "+uncollectedSince+why, metav1.NewTime(noon.Add(-ago))
		}
	}
	of := func(phase trainer.Phase, uid types.UID) job {
		j := jobIn(phase)
		j.uid, j.atPod = uid, true
		return j
	}
	tests := map[string]struct {
		seen    seen
		want    outcome
		retries int32
	}{
		"one that runs is counted":             {seen{trial: aTrial(retrying(0, 0, "")), job: of(trainer.Running, "a"), uncollected: why}, outcome{State: isRunning}, 1},
		"one that succeeded too":               {seen{trial: aTrial(retrying(0, 0, "")), job: of(trainer.Succeeded, "a"), uncollected: why, wait: time.Second}, outcome{State: isRunning}, 1},
		"then removed while it runs":           {seen{trial: aTrial(retrying(0, 1, "a")), job: of(trainer.Running, "a")}, outcome{Remove: true}, 1},
		"and after its success":                {seen{trial: aTrial(retrying(0, 1, "a")), job: of(trainer.Succeeded, "a")}, outcome{Remove: true}, 1},
		"not made at once":                     {seen{trial: aTrial(retrying(0, 2, "a"), said(5*time.Second)), job: job{presence: removed}}, outcome{After: 15 * time.Second}, 2},
		"but in time":                          {seen{trial: aTrial(retrying(0, 2, "a"), said(20*time.Second)), job: job{presence: removed}}, outcome{Create: true}, 2},
		"the last time it fails":               {seen{trial: aTrial(retrying(0, recollect, "c")), job: of(trainer.Succeeded, "d"), uncollected: why}, outcome{State: isFailed}, recollect},
		"none of a trial that is stopped is":   {seen{trial: aTrial(stopped, retrying(0, 1, "a")), job: of(trainer.Running, "a"), uncollected: why}, outcome{State: isKilled}, 1},
		"one that was measured is not made so": {seen{trial: aTrial(retrying(0, 0, "")), job: of(trainer.Succeeded, "a"), data: data{final: true, stored: stored(points("loss", 1))}}, outcome{State: isSucceeded, Loss: "1/1/1"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(tc.seen, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if d.status == nil {
				return
			}
			if d.status.Retries != tc.retries {
				t.Errorf("%d retries, want %d", d.status.Retries, tc.retries)
			}
			if message := last(d.status).Message; tc.seen.uncollected != "" && tc.want.State != isKilled && !strings.Contains(message, why) {
				t.Errorf("it does not say why: %s", message)
			}
		})
	}
}

func TestWhatIsNotMeasured(t *testing.T) {
	marked := map[string]string{trainer.LabelInject: trainer.InjectAtPod, "step": "train"}
	pod := func(labels map[string]string, init string, change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels, CreationTimestamp: metav1.NewTime(noon)}}
		p.Spec.Containers = []corev1.Container{{Name: "main"}}
		p.Spec.InitContainers = []corev1.Container{{Name: init}}
		for _, f := range change {
			f(&p)
		}
		return p
	}
	annotated := func(p *corev1.Pod) { p.Annotations = map[string]string{trainer.AnnotationNotInjected: "no command"} }
	before := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
	other := map[string]string{trainer.LabelInject: trainer.InjectAtPod, "step": "prepare"}
	tests := map[string]struct {
		pods  []corev1.Pod
		data  data
		shown bool // its template, so that the collector was in it
		over  bool
		want  string
	}{
		"a pod with its collector":               {pods: []corev1.Pod{pod(marked, trainer.SidecarLogger)}, over: true},
		"a pod without":                          {pods: []corev1.Pod{pod(marked, "init")}, want: "its pod p came without the metrics collector: the admission webhook"},
		"a pod that says why":                    {pods: []corev1.Pod{pod(marked, "init", annotated)}, want: "no command"},
		"a pod that does not report":             {pods: []corev1.Pod{pod(other, "init")}},
		"a pod of the job before":                {pods: []corev1.Pod{pod(marked, "init", before)}},
		"no pod is seen yet":                     {},
		"none was seen until the end":            {over: true, want: `no pod of it with the labels map[step:train] and a container "main"`},
		"none was seen but the collector was":    {data: data{attempted: true}, over: true},
		"a pod of a job that shows its template": {pods: []corev1.Pod{pod(map[string]string{"step": "train"}, "init")}, shown: true, over: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := aTrial(func(t *v1beta1.Trial) {
				t.Spec.PrimaryContainerName, t.Spec.PrimaryPodLabels = "main", map[string]string{"step": "train"}
			})
			s := seen{trial: tr, pods: tc.pods, data: tc.data, job: job{presence: present, atPod: !tc.shown, made: metav1.NewTime(noon.Add(-time.Minute))}}
			if got := uncollected(tr, s, tc.over); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
