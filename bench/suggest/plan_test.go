package main

import (
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func TestAPlanIsPlayedSeedBySeed(t *testing.T) {
	o := options{version: "v1", seeds: "3"}
	jobs, err := o.games(partsOf("fronts", "large"))
	if err != nil {
		t.Fatal(err)
	}
	games := map[play.Key]bool{}
	tasks := map[uint64]map[[2]string]bool{}
	for i, j := range jobs {
		if games[j.key] {
			t.Errorf("%+v is there twice", j.key)
		}
		games[j.key] = true
		if i > 0 && j.key.Seed < jobs[i-1].key.Seed {
			t.Fatalf("seed %d comes after seed %d", j.key.Seed, jobs[i-1].key.Seed)
		}
		if tasks[j.key.Seed] == nil {
			tasks[j.key.Seed] = map[[2]string]bool{}
		}
		tasks[j.key.Seed][[2]string{j.key.Problem, j.key.Method}] = true
	}
	if len(tasks) != 3 || len(tasks[0]) != 6*6+3*5 || len(tasks[1]) != len(tasks[0]) || len(tasks[2]) != len(tasks[0]) {
		t.Errorf("%d seeds, with %d, %d and %d games", len(tasks), len(tasks[0]), len(tasks[1]), len(tasks[2]))
	}
}

func TestTheTasksOfARegimeAreOfDifferentFamilies(t *testing.T) {
	for _, name := range []string{"continuous", "mixed", "parallel", "fidelity", "fronts", "large"} {
		of := map[string]string{}
		for _, j := range jobsOf(t, name) {
			family := j.run.Problem.Family
			if had := of[family]; had != "" && had != j.key.Problem {
				t.Errorf("part %s: %s and %s are both of the family %s", name, had, j.key.Problem, family)
			}
			of[family] = j.key.Problem
		}
	}
}

func TestEachFamilyMeetsRandomSearch(t *testing.T) {
	var all []string
	for _, p := range fullPlan() {
		for _, j := range jobsOf(t, p.name) {
			all = append(all, j.run.Problem.Family+" "+j.key.Method)
		}
	}
	for _, p := range problem.All() {
		ours := "auto"
		if p.Suite == problem.Fidelity {
			ours = "mobster"
		}
		for _, method := range []string{ours, "random"} {
			if !slices.Contains(all, p.Family+" "+method) {
				t.Errorf("%s does not play the family %s of %s", method, p.Family, p.Suite)
			}
		}
	}
}

// Two parts have some games in common.
func TestNoGameIsPlayedTwice(t *testing.T) {
	seen := map[play.Key]bool{}
	for _, j := range jobsOf(t, "families", "architectures") {
		if seen[j.key] {
			t.Errorf("%+v is there twice", j.key)
		}
		seen[j.key] = true
	}
}

func jobsOf(t *testing.T, names ...string) []job {
	t.Helper()
	o := options{version: "v1", seeds: "1"}
	jobs, err := o.games(partsOf(names...))
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func partsOf(names ...string) []part {
	return slices.DeleteFunc(fullPlan(), func(p part) bool { return !slices.Contains(names, p.name) })
}
