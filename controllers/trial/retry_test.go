package trial

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
