package experiment

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// simulation is a cluster in which anything may happen in any order, and whose
// cache may be behind.
type simulation struct {
	t      *testing.T
	rand   *rand.Rand
	exp    *v1beta1.Experiment
	trials []*v1beta1.Trial // what exists, by number
	past   [][]*v1beta1.Trial
	seen   int // index of the past that the cache shows; never goes back
}

func (s *simulation) active() int { return count(s.trials).active() }

// reconcile is what the controller does, on a cache that may be behind.
func (s *simulation) reconcile() {
	s.past = append(s.past, clone(s.trials))
	s.seen += s.rand.IntN(len(s.past) - s.seen)
	a := planned(s.exp, s.past[s.seen], findings{}, noon)
	before := s.active()
	for n := a.first; n < a.first+a.add; n++ {
		// That the trial exists already is success.
		if n >= len(s.trials) {
			s.trials = append(s.trials, aTrial(n, created))
		}
	}
	if now := s.active(); now > before && now > int(*s.exp.Spec.ParallelTrialCount) {
		s.t.Fatalf("%d trials are active after some were added, %d may be", now, *s.exp.Spec.ParallelTrialCount)
	}
	s.exp.Status = a.status
}

// happen lets one thing happen to one trial.
func (s *simulation) happen() {
	if len(s.trials) == 0 {
		return
	}
	i := s.rand.IntN(len(s.trials))
	t := s.trials[i].DeepCopy()
	at := metav1.NewTime(noon)
	switch state := t.State(); {
	case state.Ended():
		return
	case state == created:
		t.MarkRunning("", at)
	default:
		switch s.rand.IntN(5) {
		case 0:
			t.MarkFailed("", at)
		case 1:
			t.MarkMetricsUnavailable("", at)
		case 2:
			t.MarkKilled("", at)
		default:
			t.MarkSucceeded("", at)
		}
	}
	s.trials[i] = t
}

func clone(trials []*v1beta1.Trial) []*v1beta1.Trial {
	return append([]*v1beta1.Trial(nil), trials...)
}

func TestNoOrderOfEventsOvershoots(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			total := int32(1 + r.IntN(30))
			s := &simulation{t: t, rand: r, exp: anExperiment(maxTrials(total), parallel(1+r.Int32N(8)))}
			for step := 0; !s.exp.IsCompleted(); step++ {
				if step > 20000 {
					t.Fatalf("it does not end: %+v", s.exp.Status)
				}
				switch r.IntN(3) {
				case 0:
					s.reconcile()
				case 1:
					s.happen()
				default:
					if r.IntN(20) == 0 {
						parallel(1 + r.Int32N(8))(s.exp)
					}
				}
				if len(s.trials) > int(total) {
					t.Fatalf("%d trials, %d were asked for", len(s.trials), total)
				}
			}
			if len(s.trials) != int(total) || s.active() != 0 {
				t.Errorf("%d trials, %d of them active; want %d that have ended", len(s.trials), s.active(), total)
			}
		})
	}
}

func TestGrowingBudgetNeverOvershoots(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := &simulation{t: t, rand: r, exp: anExperiment(maxTrials(3), parallel(2), resume(v1beta1.LongRunning))}
		for total := int32(3); total <= 9; total += 3 {
			maxTrials(total)(s.exp)
			deadline := 20000
			for done := false; !done; deadline-- {
				s.reconcile()
				s.happen()
				if len(s.trials) > int(total) {
					t.Fatalf("seed %d: %d trials, %d were asked for", seed, len(s.trials), total)
				}
				done = s.exp.IsCompleted() && len(s.trials) == int(total)
				if deadline == 0 {
					t.Fatalf("seed %d: it does not end: %+v", seed, s.exp.Status)
				}
			}
		}
	}
}

func TestTimeAloneChangesNothing(t *testing.T) {
	exp := anExperiment(goal(1))
	trials := []*v1beta1.Trial{loss1(0, "2"), aTrial(1, running), aTrial(2, running)}
	exp.Status = planned(exp, trials, findings{}, noon).status
	later := planned(exp, trials, findings{}, noon.Add(time.Hour)).status
	if differ, _ := differs(&exp.Status, &later); differ {
		t.Error("the mere passing of time is worth a write")
	}
}
