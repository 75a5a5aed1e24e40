package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/local"
)

// storeOf makes a file with n trials of 10 points, two of each experiment.
func storeOf(t *testing.T, n int) string {
	t.Helper()
	address := "sqlite:" + filepath.Join(t.TempDir(), "points.db")
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var points []collector.Point
		for k := range int64(10) {
			points = append(points, collector.Point{Metric: "loss", Source: "stdout", Seq: k, Step: k, Value: float64(k), Time: time.Unix(k, 0)})
		}
		id := collector.TrialID{Namespace: "ns", Name: fmt.Sprintf("e%d-%04d", i/2, i%2), Experiment: fmt.Sprint("e", i/2), UID: fmt.Sprint("uid-", i)}
		if err := s.Append(t.Context(), id, collector.Attempt{ID: "pod/0"}, points); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// storeCommand runs `vernier store ...`.
func storeCommand(t *testing.T, args ...string) (out, stderr string, err error) {
	t.Helper()
	cmd := newStoreCommand(noInstanceStore)
	var o, e bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func statOf(t *testing.T, address string) map[string]any {
	t.Helper()
	out, _, err := storeCommand(t, "stat", address, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var stat map[string]any
	if err := json.Unmarshal([]byte(out), &stat); err != nil {
		t.Fatal(err)
	}
	return stat
}

func TestStoreStat(t *testing.T) {
	address := storeOf(t, 4)
	stat := statOf(t, address)
	got := fmt.Sprint(stat["points"], stat["trials"], stat["experiments"], stat["schema"])
	if got != "40 4 2 4" || stat["bytes"].(float64) < 1000 || stat["bytesPerPoint"].(float64) != stat["bytes"].(float64)/40 {
		t.Errorf("stat %v", stat)
	}
	out, _, err := storeCommand(t, "stat", address)
	if err != nil || !strings.Contains(out, "BYTES/POINT") || !strings.Contains(out, "SQLite 3") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestStoreMigrateCopiesAndSaysSo(t *testing.T) {
	from, to := storeOf(t, 4), "sqlite:"+filepath.Join(t.TempDir(), "to.db")
	t.Setenv("VERNIER_TEST_TARGET", to)
	out, progress, err := storeCommand(t, "migrate", "--from", from, "--to", "env:VERNIER_TEST_TARGET")
	if err != nil || !strings.Contains(progress, "4 of 4 trials, 40 points") {
		t.Fatalf("%v: %s", err, progress)
	}
	if d := cmp.Diff("4 trials with 40 points are equal in both stores: 4 were copied (40 points), 0 were equal before\n", out); d != "" {
		t.Error(d)
	}
	out, _, err = storeCommand(t, "migrate", "--from", from, "--to", to)
	if err != nil || !strings.Contains(out, "0 were copied (0 points), 4 were equal before") {
		t.Errorf("again: %v: %s", err, out)
	}
	if got := fmt.Sprint(statOf(t, to)["points"]); got != "40" {
		t.Errorf("%s points", got)
	}
}

func TestStorePrune(t *testing.T) {
	address := storeOf(t, 6)
	out, said, err := storeCommand(t, "prune", address, "--max-experiments", "1", "--dry-run")
	if err != nil || strings.Count(out, "would delete ns/") != 4 || !strings.Contains(said, "4 trials") || fmt.Sprint(statOf(t, address)["trials"]) != "6" {
		t.Errorf("dry run: %v: %s%s", err, out, said)
	}
	kept := strings.Fields(out)[2]
	if _, said, err = storeCommand(t, "prune", address, "--max-experiments", "1", "--keep", kept); err != nil || !strings.Contains(said, "deleted the curves of 3 trials") {
		t.Errorf("%v: %s", err, said)
	}
	if got := fmt.Sprint(statOf(t, address)["trials"]); got != "3" {
		t.Errorf("%s trials are left", got)
	}
	if _, said, err = storeCommand(t, "prune", address, "--max-age", "720h"); err != nil || !strings.Contains(said, "0 trials") {
		t.Errorf("nothing is that old: %v: %s", err, said)
	}
}

func TestStoreCommandsRefuse(t *testing.T) {
	address := storeOf(t, 1)
	tests := map[string]struct {
		args []string
		want string
		code int
	}{
		"a password on the command line": {[]string{"stat", "postgres://u:s3cret@localhost/db"}, "env:VERNIER_STORE", exitUsage},
		"a file that is not there":       {[]string{"stat", "sqlite:/no/such.db"}, "no such file", exitFailure},
		"a variable that is not set":     {[]string{"stat", "env:VERNIER_TEST_NONE"}, "VERNIER_TEST_NONE", exitFailure},
		"an unknown kind":                {[]string{"stat", "oracle://h/db"}, "postgres://", exitFailure},
		"nothing listens":                {[]string{"stat", "postgres://u@127.0.0.1:1/db"}, "connect", exitUnreachable},
		"no retention":                   {[]string{"prune", address}, "--max-age", exitUsage},
		"an age that is not known":       {[]string{"prune", address, "--max-age", "1m"}, "2h0m0s", exitUsage},
		"a keep without namespace":       {[]string{"prune", address, "--max-experiments", "1", "--keep", "x"}, "NAMESPACE/TRIAL", exitUsage},
		"no store, without an instance":  {[]string{"stat"}, "name a store", exitUsage},
		"no target":                      {[]string{"migrate", "--from", address}, "--to", exitUsage},
		"one store twice":                {[]string{"migrate", "--from", address, "--to", address}, "different", exitUsage},
		"a source that is not there":     {[]string{"migrate", "--from", "sqlite:/no/such.db", "--to", address}, "no such file", exitFailure},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := storeCommand(t, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") || exitCode(err) != tc.code {
				t.Errorf("exit code %d, error %v, want %d, %q", exitCode(err), err, tc.code, tc.want)
			}
		})
	}
}

func TestTheInstancesOwnStoreIsTheDefault(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	stat := func() (string, error) {
		root := newRootCommand(false)
		root.SilenceErrors, root.SilenceUsage = true, true
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"--home", home, "store", "stat"})
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := stat(); exitCode(err) != exitNotFound || !strings.Contains(err.Error(), "--home") {
		t.Errorf("without an instance: code %d, %v", exitCode(err), err)
	}
	path := local.Home(home).StorePath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := stat(); err != nil || !strings.Contains(out, "SQLite 3") {
		t.Errorf("%v:\n%s", err, out)
	}
}
