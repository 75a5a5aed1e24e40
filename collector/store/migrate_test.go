package store

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// oldFile is a file as the first release wrote it.
func oldFile(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/sqlite-v1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "points.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileOfTheFirstReleaseKeepsEverything(t *testing.T) {
	before := time.Now().Add(-2 * time.Second)
	s := openTest(t, oldFile(t))
	experiments := map[string]string{"random-0007": "random", "a-b-12345": "a-b", "plain": "", "x-12": "", "-0001": "", "zwölf-0001": "zwölf"}
	infos, err := s.Inventory(t.Context())
	if err != nil || len(infos) != len(experiments) {
		t.Fatalf("trials %v, %v", infos, err)
	}
	for _, info := range infos {
		if want, known := experiments[info.Name]; !known || info.Experiment != want || info.Namespace != "ns" || info.Touched.Before(before) || info.Points != 7 || info.TextBytes != 5 {
			t.Errorf("trial %+v, want experiment %q", info, want)
		}
	}
	bits := cmp.Comparer(func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	})
	attempt := collector.Attempt{ID: "pod/0", Started: time.Unix(1, 5).UTC()}
	for n, name := range []string{"random-0007", "a-b-12345", "plain", "x-12", "-0001", "zwölf-0001"} {
		want := []collector.Series{{Attempt: attempt, Metric: "Loss"}, {Attempt: attempt, Metric: "loss", Points: []collector.Point{
			{Metric: "loss", Value: 0.25, Text: "0.250", Step: collector.NoStep, Seq: 1 << 60, Source: "file:/log"}}}}
		for i, v := range []float64{1, 0.5, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)} {
			series := &want[(i+1)%2]
			series.Points = append(series.Points, collector.Point{Metric: series.Metric, Value: v, Step: int64(i), Seq: int64(i*10 + n),
				Source: "stdout", Time: time.Unix(2, int64(i)).UTC()})
		}
		got, err := collector.ReadSeries(t.Context(), s, "uid-"+name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, bits); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		states, err := s.Attempts(t.Context(), "uid-"+name)
		wantState := []collector.AttemptState{{Attempt: attempt, Acked: map[string]int64{"stdout": int64(51 + n), "file:/log": 1<<60 + 1}, Final: true, Note: "note " + name}}
		if d := cmp.Diff(wantState, states); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	// What was sent before the upgrade may be sent again.
	if err := s.Append(t.Context(), collector.TrialID{UID: "uid-plain", Experiment: "e"}, attempt,
		[]collector.Point{{Metric: "loss", Source: "stdout", Seq: 2, Value: 99}}); err != nil {
		t.Fatal(err)
	}
	series, err := collector.ReadSeries(t.Context(), s, "uid-plain", "loss")
	if err != nil || len(series) != 1 || len(series[0].Points) != 4 {
		t.Errorf("series %v, %v", series, err)
	}
	infos, err = s.Inventory(t.Context())
	if i := slices.IndexFunc(infos, func(info collector.TrialInfo) bool { return info.UID == "uid-plain" }); err != nil || i < 0 || infos[i].Experiment != "e" {
		t.Errorf("trials %v, %v: want one of experiment e", infos, err)
	}
}

func TestEveryEngineHasMigrationsThatSplit(t *testing.T) {
	counts := map[string][]int{"sqlite": {5, 5, 3, 1}, "postgres": {6, 3, 1}, "mysql": {5, 3, 1}}
	for _, d := range []*dialect{sqliteDialect(), postgresDialect(), mysqlDialect()} {
		all, err := migrations(d.name)
		if err != nil || len(all) != len(counts[d.name]) {
			t.Fatalf("%s: %d migrations, %v", d.name, len(all), err)
		}
		for i, text := range all {
			split := statements(text)
			if len(split) != counts[d.name][i] {
				t.Errorf("%s: migration %d has %d statements, %d were found", d.name, i+1, counts[d.name][i], len(split))
			}
			for _, s := range split {
				if !slices.ContainsFunc([]string{"CREATE ", "ALTER ", "UPDATE "}, func(verb string) bool { return strings.HasPrefix(s, verb) }) {
					t.Errorf("%s: migration %d: statement %q", d.name, i+1, s)
				}
			}
		}
	}
}

func TestAMigrationThatFailsLeavesTheFileAsItWas(t *testing.T) {
	path := oldFile(t)
	db := openPlain(t, path)
	if _, err := db.ExecContext(t.Context(), "CREATE INDEX trial_experiment ON trial (namespace)"); err != nil {
		t.Fatal(err)
	}
	if _, err := openSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "migration 2") {
		t.Errorf("error %v", err)
	}
	var version, columns int
	err := db.QueryRowContext(t.Context(), "SELECT (SELECT max(version) FROM migration), (SELECT count(*) FROM pragma_table_info('trial'))").Scan(&version, &columns)
	if err != nil || fmt.Sprint(version, columns) != "1 4" {
		t.Errorf("version %d, %d columns, %v", version, columns, err)
	}
}
