package suggest_test

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

func numbered(numbers ...int) []suggest.Trial {
	trials := make([]suggest.Trial, len(numbers))
	for i, n := range numbers {
		trials[i] = suggest.Trial{Number: n, State: suggest.Succeeded}
	}
	return trials
}

func TestNextNumberGoesOnFromWhatIsSettled(t *testing.T) {
	record := new(suggest.Record)
	for name, c := range map[string]struct {
		study          suggest.Study
		promised, next int
	}{
		"no trials":                {suggest.Study{}, 0, 0},
		"no trials, yet settled":   {suggest.Study{Record: record, Settled: 3}, 0, 0},
		"no promise":               {suggest.Study{Trials: numbered(7, 3, 5)}, 0, 8},
		"settled without a record": {suggest.Study{Trials: numbered(7, 3, 5), Settled: 3}, 0, 8},
		"none settled":             {suggest.Study{Trials: numbered(7, 3, 5), Record: record}, 0, 8},
		"less than none":           {suggest.Study{Trials: numbered(7, 3, 5), Record: record, Settled: -2}, 0, 8},
		"some settled":             {suggest.Study{Trials: numbered(1, 2, 9, 4), Record: record, Settled: 2}, 2, 10},
		"all settled":              {suggest.Study{Trials: numbered(1, 2, 9), Record: record, Settled: 3}, 3, 10},
		"more than all":            {suggest.Study{Trials: numbered(1, 2, 9), Record: record, Settled: 30}, 3, 10},
		"numbers below 0":          {suggest.Study{Trials: numbered(-5, -4), Record: record, Settled: 2}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.study.Promised(); got != c.promised {
				t.Errorf("%d are promised, want %d", got, c.promised)
			}
			if got := c.study.NextNumber(); got != c.next {
				t.Errorf("the next number is %d, want %d", got, c.next)
			}
		})
	}
}

func TestSettleGoesToTheFirstTrialThatHasNotEnded(t *testing.T) {
	s := suggest.Study{Trials: numbered(0, 1, 2, 3)}
	s.Trials[2].State, s.Trials[3].State = suggest.Running, suggest.Failed
	s.Settle()
	first := s.Record
	if first == nil || s.Settled != 2 {
		t.Fatalf("%d are settled, want 2", s.Settled)
	}
	s.Trials[2].State = suggest.Killed
	s.Settle()
	if s.Record != first || s.Settled != 4 {
		t.Errorf("%d are settled, want all 4 of the same record", s.Settled)
	}
	s.Trials = s.Trials[:3]
	s.Settle()
	if s.Record == first || s.Settled != 3 { // another trial may come in the place of the one that is gone
		t.Errorf("%d are settled, want all that are left, of a new record", s.Settled)
	}
	first = s.Record
	s.Record, s.Trials[0].State = nil, suggest.Running
	s.Settle()
	if s.Record == nil || s.Record == first || s.Settled != 0 {
		t.Errorf("%d are settled, want none of a new record", s.Settled)
	}
}
