package main

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func TestRunPlaysEachGameOnce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.jsonl")
	args := []string{"-suite", "s1", "-problem", "branin-2,ackley", "-method", "random,sobol:random_state=3", "-seeds", "3", "-budget", "12", "-out", out, "-version", "v1"}
	for range 2 {
		if err := runCommand(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	records, err := play.ReadRecords([]string{out})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[play.Key]bool{}
	for _, r := range records {
		if r.Error != "" || seen[r.Key] {
			t.Errorf("%+v: seen %v, error %q", r.Key, seen[r.Key], r.Error)
		}
		seen[r.Key] = true
	}
	if want := 4 * 2 * 3; len(records) != want {
		t.Errorf("%d records, want %d", len(records), want)
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"3": {0, 1, 2}, "10-12": {10, 11, 12}, "0": nil, "x": nil, "": nil} {
		got, err := parseSeeds(text)
		if (err != nil) != (want == nil) {
			t.Errorf("%q: error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestJoinSettings(t *testing.T) {
	got := joinSettings([]string{"random", "tpe:a=1", "b=2", "sobol"})
	if diff := cmp.Diff([]string{"random", "tpe:a=1,b=2", "sobol"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGamesOfFunctionsPlayInstances(t *testing.T) {
	o := options{suites: []string{"s1"}, problems: []string{"sphere-10"}, methods: []string{"random"}, seeds: "2", version: "v1", budget: 5}
	jobs, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]bool{}
	for _, j := range jobs {
		places[j.run.Problem.At[0].Value] = true
		if j.key.Draw != problem.Draw {
			t.Errorf("%+v does not say that it is of an instance", j.key)
		}
	}
	if len(places) != 2 {
		t.Errorf("the optimum of two games is at %v", places)
	}
}
