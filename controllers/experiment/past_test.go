package experiment

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// judgedInTurns has experiments with early stopping, of which the trials that run
// stay, and counts how often each curve is read.
func judgedInTurns(t *testing.T, experiments int) (c *Controller, now *time.Time, judge func(rounds int), reads map[string]int) {
	t.Helper()
	_, _, c = stopping(t)
	at := noon
	now, reads = &at, map[string]int{}
	c.Now = func() time.Time { return at }
	scan := c.Scan
	c.Scan = func(ctx context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
		reads[uid]++
		return scan(ctx, uid, metrics, yield)
	}
	judge = func(rounds int) {
		for range rounds {
			at = at.Add(judgeEvery)
			for i := range experiments {
				exp, trials, _ := stopping(t)
				exp.UID, exp.Name = types.UID(fmt.Sprint(i)), fmt.Sprint("demo-", i)
				trials = slices.Delete(trials, 6, 7) // that would be stopped
				for _, trial := range trials {
					trial.UID = types.UID(fmt.Sprint(i, "/", trial.Name))
				}
				if _, err := c.stopEarly(t.Context(), exp, trials); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return c, now, judge, reads
}

func TestCurvesThatEndedAreReadOnceHoweverManyExperimentsThereAre(t *testing.T) {
	const experiments, rounds = 3 * keptModels, 4
	c, _, judge, reads := judgedInTurns(t, experiments)
	judge(rounds)
	total := 0
	for _, n := range reads {
		total += n
	}
	if want := experiments * (6 + rounds); total != want {
		t.Errorf("%d curves were read, want %d: 6 that ended, and in each round the one that runs", total, want)
	}
	if c.pasts.points != experiments*6*10 {
		t.Errorf("%d points are kept", c.pasts.points)
	}
}

func TestKeptCurvesAreBounded(t *testing.T) {
	c, _, judge, reads := judgedInTurns(t, 5)
	c.pasts.most = 3 * 6 * 10 // of three experiments
	judge(1)
	if c.pasts.points != c.pasts.most {
		t.Errorf("%d points are kept, want %d", c.pasts.points, c.pasts.most)
	}
	for i, kept := range []bool{false, false, true, true, true} {
		if got := len(c.pasts.kept[types.UID(fmt.Sprint(i))].curves) > 0; got != kept {
			t.Errorf("the curves of experiment %d are kept: %v", i, got)
		}
	}
	judge(1)
	for uid, n := range reads {
		if n > 2 {
			t.Errorf("%s was read %d times in two rounds", uid, n)
		}
	}
	c.pasts.most = 10 // less than one experiment has
	judge(2)
	if c.pasts.points != 6*10 {
		t.Errorf("%d points are kept, want those of the last one", c.pasts.points)
	}
}

// That time passes before the next look is known of each experiment.
func TestExperimentsWhoseCurvesMadeWayAreNotJudgedMoreOften(t *testing.T) {
	c, now, judge, reads := judgedInTurns(t, 5)
	c.pasts.most = 1
	judge(1)
	before := len(reads)
	clear(reads)
	*now = now.Add(-judgeEvery) // no time has passed
	judge(1)
	if len(reads) > 0 || before != 5*7 {
		t.Errorf("%d curves were read again at once, %d before", len(reads), before)
	}
}

func TestThePastOfDeletedExperimentsIsForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, _, judge, _ := judgedInTurns(t, 2)
	c.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
	judge(1)
	exp, _, _ := stopping(t)
	exp.Name = "demo-0"
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(exp)}); err != nil {
		t.Fatal(err)
	}
	if len(c.pasts.kept) != 1 || c.pasts.points != 6*10 {
		t.Errorf("%d are kept, with %d points", len(c.pasts.kept), c.pasts.points)
	}
	c.pasts.drop("1")
	c.pasts.drop("1")
	if len(c.pasts.kept) != 0 || c.pasts.points != 0 {
		t.Errorf("%d are kept, with %d points", len(c.pasts.kept), c.pasts.points)
	}
}

// The curves of another metric are others.
func TestThePastIsOfTheObjective(t *testing.T) {
	exp, trials, c := stopping(t)
	of, done := c.pasts.use(exp)
	if err := c.remember(t.Context(), exp, of, trials); err != nil {
		t.Fatal(err)
	}
	done()
	exp.Spec.Objective.ObjectiveMetricName = "acc"
	of, done = c.pasts.use(exp)
	defer done()
	if len(of.curves) > 0 || c.pasts.points > 0 {
		t.Errorf("%d curves of the old objective are kept, %d points", len(of.curves), c.pasts.points)
	}
}
