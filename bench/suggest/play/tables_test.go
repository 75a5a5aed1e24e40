package play

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// smallTable has two parameters with two and three values, two trainings a point,
// and lacks the second one of the last point.
func smallTable(t *testing.T) (name, sum string, p *problem.Problem) {
	t.Helper()
	data := []byte(`[{"name": "small", "counts": [2, 3], "repeats": 2}]` + "\n")
	for i := range 6 {
		for r := range 2 {
			v := float32(i) + float32(r)/2
			if i == 5 && r == 1 {
				v = float32(math.NaN())
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	hash := sha256.Sum256(data)
	name = filepath.Join(t.TempDir(), "tables.bin")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return name, hex.EncodeToString(hash[:]), &problem.Problem{
		Name: "small", Suite: problem.Tabular, Table: &problem.Table{Name: "small"}, Parameters: []suggest.ParameterSpec{
			{Name: "a", Kind: suggest.Categorical, List: []string{"x", "y"}}, {Name: "b", Kind: suggest.Discrete, List: []string{"1", "5", "9"}},
		},
	}
}

func TestATrialDrawsATrainingOfItsPoint(t *testing.T) {
	name, sum, p := smallTable(t)
	tables, err := ReadTables(name, sum)
	if err != nil {
		t.Fatal(err)
	}
	evaluate, err := tables.Evaluator(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[[2]string]struct {
		values []float64
		mean   float64
	}{{"x", "1"}: {[]float64{0, 0.5}, 0.25}, {"x", "9"}: {[]float64{2, 2.5}, 2.25}, {"y", "1"}: {[]float64{3, 3.5}, 3.25}, {"y", "9"}: {[]float64{5}, 5}} {
		point, ok := p.Space().Parse([]suggest.Assignment{{Name: "a", Value: text[0]}, {Name: "b", Value: text[1]}})
		if !ok {
			t.Fatalf("%v is not in the space", text)
		}
		seen := map[float64]bool{}
		for number := range 40 {
			o, err := evaluate(t.Context(), number, point)
			if err != nil {
				t.Fatal(err)
			}
			if seen[o.Values[0]] = true; *o.Mean != want.mean {
				t.Errorf("%v: mean %v, want %v", text, *o.Mean, want.mean)
			}
		}
		if len(seen) != len(want.values) || !seen[want.values[0]] {
			t.Errorf("%v: trials have %v, want %v", text, seen, want.values)
		}
	}
}

// playSmallTable plays a game of six trials on the table, as many as it has points.
func playSmallTable(t *testing.T, method string, r Regime, with func(suggest.Algorithm) suggest.Algorithm) Played {
	t.Helper()
	name, sum, p := smallTable(t)
	tables, err := ReadTables(name, sum)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := NewOurs(method)
	if err != nil {
		t.Fatal(err)
	}
	build := ours.New
	ours.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		a, err := build(space, settings)
		return with(a), err
	}
	run := Run{Problem: p, Regime: r, Seed: 3, Budget: 6}
	if run.Evaluate, err = tables.Evaluator(p, 3); err != nil {
		t.Fatal(err)
	}
	played, err := Play(t.Context(), ours, run)
	if err != nil {
		t.Fatal(err)
	}
	return played
}

func TestTheRecommendedPointIsWorthTheMeanOfItsTrainings(t *testing.T) {
	played := playSmallTable(t, "grid", regime(t, Sequential), func(a suggest.Algorithm) suggest.Algorithm { return a })
	if diff := cmp.Diff(0.25, played.Path.After(6)); diff != "" {
		t.Errorf("loss in the end -want +got:\n%s", diff)
	}
}

// faithful recommends its first point, whatever the others are worth.
type faithful struct{ suggest.Algorithm }

func (faithful) Recommend(_ context.Context, s suggest.Study) (suggest.Recommendation, bool) {
	return suggest.Recommendation{Trial: s.Trials[0]}, true
}

func TestAPlayerWithRepeatsRecommendsItself(t *testing.T) {
	batches := Regime{Name: "batches", Parallel: 2, Batch: true}
	played := playSmallTable(t, "grid+repeats", batches, func(a suggest.Algorithm) suggest.Algorithm { return faithful{a} })
	for _, s := range played.Path {
		if s[0] > 2 { // after the first batch
			t.Errorf("the path goes on to %v; want the first recommendation alone", s)
		}
	}
	if first := played.Path.After(1); first == 0.25 || played.Path.After(6) != first {
		t.Errorf("the recommendation is %v, then %v; want the first point", first, played.Path.After(6))
	}
	if got := played.Visited.After(6); got != 0.25 {
		t.Errorf("the best point that was tried is worth %v, want 0.25", got)
	}
}

func TestTablesThatAreNotWhatTheyShouldBeAreRefused(t *testing.T) {
	name, sum, p := smallTable(t)
	if _, err := ReadTables(name, "0"+sum[1:]); err == nil && sum[0] != '0' {
		t.Error("a file with another checksum is read")
	}
	short := []byte(`[{"name": "small", "counts": [2, 3], "repeats": 2}]` + "\n1234")
	hash := sha256.Sum256(short)
	if err := os.WriteFile(name, short, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTables(name, hex.EncodeToString(hash[:])); err == nil {
		t.Error("a file that lacks losses is read")
	}
	if _, err := (Tables{}).Evaluator(p, 1); err == nil {
		t.Error("a problem without a table has an evaluator")
	}
}

// Tasks that share a space must not share the first points of a seed.
func TestRealTasksHaveSeedsOfTheirOwn(t *testing.T) {
	table := func(name string) *problem.Problem { return &problem.Problem{Name: name, Table: &problem.Table{}} }
	seen := map[uint64]bool{}
	for _, name := range []string{"a", "b"} {
		for seed := range uint64(3) {
			seen[Run{Problem: table(name), Seed: seed}.seed()] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("two tasks with three seeds have %d", len(seen))
	}
	if got := (Run{Problem: &problem.Problem{Name: "branin-2"}, Seed: 3}).seed(); got != 3 {
		t.Errorf("a function has the seed %d, want 3", got)
	}
}
