package store_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// placed is a point and the attempt that it is of.
type placed struct {
	Attempt string
	collector.Point
}

// appendRandom stores points that meet in steps, sources and values: of trials that
// were resumed, begun anew, without steps and with values that are not numbers.
func appendRandom(t *testing.T, s collector.Store, trial collector.TrialID, r *rand.Rand) (all []placed) {
	t.Helper()
	for _, attempt := range []collector.Attempt{second, first, {ID: "pod/0a", Started: first.Started}, {ID: "no start time"}} {
		var batch []collector.Point
		checkpoint, stepless := int64(r.IntN(5)), r.IntN(3)
		for i := range int64(r.IntN(40)) {
			p := point(randomMetrics[r.IntN(3)], checkpoint+i/3, i, float64(r.IntN(5)))
			p.Source = []string{"stdout", "file:/log", "push"}[r.IntN(3)]
			p.Time = base.Add(time.Duration(r.IntN(3)) * time.Nanosecond)
			switch r.IntN(10) {
			case 0:
				p.Value = math.NaN()
			case 1:
				p.Value, p.Text = math.NaN(), "diverged"
			case 2:
				p.Value = math.Inf(r.IntN(2)*2 - 1)
			case 3:
				p.Text = "1.00"
			case 4:
				p.Value = math.Copysign(0, -1)
			}
			if r.IntN(4) < stepless {
				p.Step = collector.NoStep
			}
			batch, all = append(batch, p), append(all, placed{attempt.ID, p})
		}
		r.Shuffle(len(batch), func(i, k int) { batch[i], batch[k] = batch[k], batch[i] })
		mustAppend(t, s, trial, attempt, batch...)
	}
	return all
}

var randomMetrics = []string{"loss", "accuracy", "f1"}

func testScanEnds(t *testing.T, s collector.Store) {
	trial := collector.TrialID{UID: "A"}
	appendRandom(t, s, trial, rand.New(rand.NewPCG(1, 9)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	err := s.Scan(ctx, trial.UID, nil, func(collector.Attempt, collector.Point) error {
		read++
		cancel()
		return nil
	})
	if read != 1 || err == nil {
		t.Errorf("%d points after the caller's end, error %v", read-1, err)
	}
}

// testScan checks the order, which aggregators rely on, and that nothing is missing.
func testScan(t *testing.T, s collector.Store) {
	for seed := range uint64(25) {
		trial := collector.TrialID{UID: string(rune('A' + seed))}
		all := appendRandom(t, s, trial, rand.New(rand.NewPCG(seed, 9)))
		for _, metrics := range [][]string{nil, {"loss"}, {"f1", "accuracy", "unknown", "f1"}, {"unknown"}} {
			want := slices.DeleteFunc(slices.Clone(all), func(p placed) bool { return metrics != nil && !slices.Contains(metrics, p.Metric) })
			age := map[string]int{"pod/1": 0, "pod/0a": 1, "pod/0": 2, "no start time": 3}
			slices.SortFunc(want, func(a, b placed) int {
				return cmp.Or(cmp.Compare(age[a.Attempt], age[b.Attempt]), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
			})
			var got []placed
			err := s.Scan(t.Context(), trial.UID, metrics, func(a collector.Attempt, p collector.Point) error {
				got = append(got, placed{a.ID, p})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "points", want, got)
		}
	}
}
