package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func TestPlanOutside(t *testing.T) {
	held := v1beta1.Lease{Attempt: 2, Worker: "w", Started: noon.Add(-time.Hour), Expires: noon.Add(time.Minute), Seconds: 60}
	lost, released, young := held, held, held
	young.Started = noon.Add(-settle / 4)
	lost.Expires, released.Released = noon, true
	early := func(t *v1beta1.Trial) {
		t.Annotations = map[string]string{v1beta1.AnnotationStopEarly: "median: worse"}
	}
	measured := data{stored: []collector.Observation{{Metric: "loss", Min: collector.Measure{Text: "0.5"}, Points: 1}}}
	type result struct {
		State   v1beta1.TrialConditionType
		Says    string
		After   time.Duration
		Loss    string
		Started bool
	}
	cases := map[string]struct {
		trial *v1beta1.Trial
		lease v1beta1.Lease
		data  data
		wait  time.Duration
		want  *result
		after time.Duration
	}{
		"handed out":                           {trial: aTrial(unseen), lease: held, want: &result{State: v1beta1.TrialRunning, Says: "is running", After: time.Minute, Started: true}},
		"handed out a moment ago":              {trial: aTrial(unseen), lease: young, after: settle * 3 / 4},
		"running, and nothing is due":          {trial: aTrial(), lease: held, wait: time.Second, after: time.Second},
		"running, and its lease ends earlier":  {trial: aTrial(), lease: held, wait: time.Hour, after: time.Minute},
		"a new measurement":                    {trial: aTrial(), lease: held, data: measured, want: &result{State: v1beta1.TrialRunning, Says: "is running", After: time.Minute, Loss: "0.5", Started: true}},
		"its worker is lost":                   {trial: aTrial(), lease: lost, want: &result{State: v1beta1.TrialCreated, Says: `its worker "w" has not reported since 2030-01-02T11:59:00Z`, Started: true}},
		"lost before it was said to run":       {trial: aTrial(unseen), lease: lost, want: &result{State: v1beta1.TrialCreated, Says: `its worker "w" has not reported since 2030-01-02T11:59:00Z`}},
		"it was handed back":                   {trial: aTrial(), lease: released, want: &result{State: v1beta1.TrialCreated, Says: `its worker "w" has handed it back`, Started: true}},
		"lost, and that was said":              {trial: aTrial(func(t *v1beta1.Trial) { t.MarkPending("x", "", metav1.NewTime(noon)) }), lease: lost},
		"asked to stop, and a worker runs it":  {trial: aTrial(stopped), lease: held, wait: time.Second, after: time.Second},
		"asked to stop, and no worker runs it": {trial: aTrial(stopped), lease: lost, want: &result{State: v1beta1.TrialKilled, Says: "goal reached", Started: true}},
		"given up, and no worker runs it":      {trial: aTrial(early), lease: lost, data: measured, want: &result{State: v1beta1.TrialEarlyStopped, Says: "median: worse", Loss: "0.5", Started: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := planOutside(seen{trial: c.trial, data: c.data, wait: c.wait}, c.lease, noon)
			if c.want == nil {
				if d.status != nil || d.after != c.after {
					t.Errorf("got %+v, want only to look again after %s", d, c.after)
				}
				return
			}
			if d.status == nil {
				t.Fatal("nothing is written")
			}
			after := &v1beta1.Trial{Status: *d.status}
			got := result{State: after.State(), After: d.after, Started: after.Status.StartTime != nil}
			if m := after.LastCondition().Message; strings.Contains(m, c.want.Says) {
				got.Says = c.want.Says
			} else {
				got.Says = m
			}
			if o := after.Status.Observation; o != nil {
				got.Loss = o.Metrics[0].Min
			}
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
