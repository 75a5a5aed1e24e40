package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// filled has trials with odd values, an attempt without points, and a final one.
func filled(t *testing.T, trials int) *sqlStore {
	t.Helper()
	s := openTest(t, filepath.Join(t.TempDir(), "from.db"))
	for i := range trials {
		id := collector.TrialID{Namespace: "ns", Name: fmt.Sprint("e-", i), Experiment: "e", UID: fmt.Sprint("uid-", i)}
		points := testPoints(0, 9_000)
		points[3].Value, points[4].Value, points[5].Value = math.NaN(), math.Inf(1), math.Copysign(0, -1)
		points[6].Text, points[7].Time, points[8].Step = "1.00", time.Time{}, collector.NoStep
		second := collector.Attempt{ID: "pod/1"}
		if err := errors.Join(s.Append(t.Context(), id, testAttempt, points), s.Append(t.Context(), id, second, points[:10]),
			s.Append(t.Context(), id, collector.Attempt{ID: "pod/2"}, nil), s.Finish(t.Context(), id, second, "a note")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// breaks fails after some appends.
type breaks struct {
	collector.Store
	after int
}

var errBroken = errors.New("broken")

func (b *breaks) Append(ctx context.Context, id collector.TrialID, a collector.Attempt, points []collector.Point) error {
	if b.after--; b.after < 0 {
		return errBroken
	}
	return b.Store.Append(ctx, id, a, points)
}

func TestACopyGoesOnWhereItWasBrokenOff(t *testing.T) {
	from := filled(t, 3)
	to := openTest(t, filepath.Join(t.TempDir(), "to.db"))
	ignore := func(CopyProgress) {}
	if err := Copy(t.Context(), from, &breaks{to, 6}, nil, ignore); !errors.Is(err, errBroken) {
		t.Fatalf("error %v", err)
	}
	var last CopyProgress
	if err := Copy(t.Context(), from, to, nil, func(p CopyProgress) { last = p }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(CopyProgress{Trials: 3, Total: 3, Equal: 1, Points: 27_030, Copied: 18_020}, last); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
	for i := range 3 {
		uid := fmt.Sprint("uid-", i)
		want, wantErr := sum(t.Context(), from, uid)
		got, err := sum(t.Context(), to, uid)
		if want != got || errors.Join(wantErr, err) != nil {
			t.Errorf("%s: %+v, want %+v", uid, got, want)
		}
	}
	if err := Copy(t.Context(), from, to, nil, func(p CopyProgress) { last = p }); err != nil || last.Equal != 3 || last.Copied != 0 {
		t.Errorf("again: %+v, %v", last, err)
	}
}

func TestACopyThatDiffersIsAnError(t *testing.T) {
	tests := map[string]func(s collector.Store, id collector.TrialID) error{
		"another value": func(s collector.Store, id collector.TrialID) error {
			points := testPoints(0, 1)
			points[0].Value = 77
			return s.Append(context.Background(), id, testAttempt, points)
		},
		"one more point": func(s collector.Store, id collector.TrialID) error {
			return s.Append(context.Background(), id, testAttempt, testPoints(30_000, 30_001))
		},
		"one more attempt": func(s collector.Store, id collector.TrialID) error {
			return s.Append(context.Background(), id, collector.Attempt{ID: "pod/9"}, nil)
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			from := filled(t, 1)
			to := openTest(t, filepath.Join(t.TempDir(), "to.db"))
			if err := spoil(to, collector.TrialID{Namespace: "ns", Name: "e-0", Experiment: "e", UID: "uid-0"}); err != nil {
				t.Fatal(err)
			}
			err := Copy(t.Context(), from, to, nil, func(CopyProgress) {})
			if !errors.Is(err, errOther) || !strings.Contains(err.Error(), "ns/e-0") {
				t.Errorf("error %v", err)
			}
		})
	}
}
