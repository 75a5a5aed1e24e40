//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/e2e/servers"
)

// TestManagersThatStartAtOnceBuildOneSchema opens an empty database from many sides.
func TestManagersThatStartAtOnceBuildOneSchema(t *testing.T) {
	for scheme, start := range starters {
		t.Run(scheme, func(t *testing.T) {
			server := start(t)
			if err := server.Create(t.Context(), "fresh"); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					s, err := store.Open(t.Context(), server.URL("fresh"))
					if err != nil {
						t.Errorf("open: %v", err)
						return
					}
					if err := errors.Join(s.Append(t.Context(), killTrial(i), benchAttempt, killBatchPoints(0)), s.Close()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			refused(t, server)
		})
	}
}

// refused checks that a database of a newer release is not opened, and that errors
// of real servers show no password.
func refused(t *testing.T, server *servers.Server) {
	t.Helper()
	s, err := store.Open(t.Context(), server.URL("fresh"))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := s.Stat(t.Context())
	if err = errors.Join(err, s.Close()); err != nil || stat.Trials != 8 || stat.Points != 8*killBatch || stat.Bytes < 8000 {
		t.Errorf("stat %+v, %v", stat, err)
	}
	if err := server.AdminIn(t.Context(), "fresh", "INSERT INTO migration (version, applied) VALUES (999, 0)"); err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(server.URL("fresh"), "s3cret", "s3cretWRONG", 1)
	for name, tc := range map[string]struct{ url, want string }{
		"a newer schema":         {server.URL("fresh"), "newer release"},
		"no such database":       {server.URL("nonesuch"), "nonesuch"},
		"a password that is not": {wrong, ""},
	} {
		s, err := store.Open(t.Context(), tc.url)
		if err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Close() // it should not be there
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStoreMigrateGoesThroughEveryEngine copies a file to PostgreSQL, to MySQL and
// back to a file with the command, and compares.
func TestStoreMigrateGoesThroughEveryEngine(t *testing.T) {
	dir := t.TempDir()
	postgres, mysql := servers.PostgreSQL(t), servers.MySQL(t)
	if err := errors.Join(postgres.Create(t.Context(), "copy"), mysql.Create(t.Context(), "copy")); err != nil {
		t.Fatal(err)
	}
	first, last := "sqlite:"+filepath.Join(dir, "first.db"), "sqlite:"+filepath.Join(dir, "last.db")
	fillOdd(t, first)
	stops := []string{first, postgres.URL("copy"), mysql.URL("copy"), last}
	for i := range len(stops) - 1 {
		out, err := storeCommand(stops[i:i+2], "migrate", "--from", "env:STORE_0", "--to", "env:STORE_1")
		if err != nil || !strings.Contains(out, "20 trials with 60220 points are equal in both stores: 20 were copied") {
			t.Fatalf("stop %d: %v\n%s", i, err, out)
		}
		out, err = storeCommand(stops[i+1:i+2], "stat", "env:STORE_0")
		if err != nil || !strings.Contains(out, "60220") {
			t.Errorf("stop %d: %v\n%s", i, err, out)
		}
		t.Log(out)
	}
	out, err := storeCommand([]string{first, last}, "migrate", "--from", "env:STORE_0", "--to", "env:STORE_1")
	if err != nil || !strings.Contains(out, "20 were equal before") {
		t.Errorf("first and last differ: %v\n%s", err, out)
	}
	out, err = storeCommand([]string{mysql.URL("copy")}, "prune", "env:STORE_0", "--max-experiments", "1")
	if err != nil || !strings.Contains(out, "10 trials") {
		t.Errorf("prune: %v\n%s", err, out)
	}
}

// fillOdd stores 20 trials of two experiments with values of every kind.
func fillOdd(t *testing.T, url string) {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1}
	for i := range 20 {
		id := collector.TrialID{Namespace: "ns", Name: fmt.Sprintf("odd%d-%04d", i%2, i), Experiment: fmt.Sprint("odd", i%2), UID: fmt.Sprint("uid-", i)}
		var points []collector.Point
		for k := range int64(3011) {
			points = append(points, collector.Point{Metric: []string{"loss", "Loss ", "🎯"}[k%3], Source: "stdout", Step: k / 3, Seq: k * 17,
				Value: odd[k%7], Time: time.Unix(k, 999_999_999).UTC()})
		}
		points[5].Text, points[6].Time, points[7].Step, points[3010].Seq = "1.\x000", time.Time{}, collector.NoStep, math.MaxInt64-1
		if err := errors.Join(s.Append(t.Context(), id, benchAttempt, points), s.Finish(t.Context(), id, benchAttempt, "done")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// storeCommand runs `vernier store` with addresses in STORE_0, STORE_1 and so on.
func storeCommand(addresses []string, args ...string) (string, error) {
	dir := os.Getenv("VERNIER_BIN_DIR")
	if dir == "" {
		return "", errors.New("VERNIER_BIN_DIR is not set: run make e2e")
	}
	cmd := exec.Command(filepath.Join(dir, "vernier"), append([]string{"store"}, args...)...)
	cmd.Env = os.Environ()
	for i, a := range addresses {
		cmd.Env = append(cmd.Env, fmt.Sprintf("STORE_%d=%s", i, a))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
