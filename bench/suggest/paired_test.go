package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func TestChaptersArePlayedSeedBySeed(t *testing.T) {
	o := options{version: "v1", seeds: "3"}
	jobs, err := o.chapters(pairedPlan(), words{"fronts", "large"})
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
	_, err = o.chapters(pairedPlan(), words{"larg"})
	if err == nil || !strings.Contains(err.Error(), `"larg"`) {
		t.Fatalf("an unknown chapter: %v", err)
	}
	for _, c := range pairedPlan() {
		if !strings.Contains(err.Error(), c.name) {
			t.Errorf("the chapter %s is not offered: %v", c.name, err)
		}
	}
}

func TestTheTasksOfARegimeAreOfDifferentFamilies(t *testing.T) {
	for _, name := range []string{"continuous", "mixed", "parallel", "fidelity", "fronts", "large"} {
		of := map[string]string{}
		for _, j := range jobsOf(t, name) {
			family := j.run.Problem.Family
			if had := of[family]; had != "" && had != j.key.Problem {
				t.Errorf("chapter %s: %s and %s are both of the family %s", name, had, j.key.Problem, family)
			}
			of[family] = j.key.Problem
		}
	}
}

// TestEachFamilyMeetsRandomSearch but those of trained models, which are not in
// the paired run.
func TestEachFamilyMeetsRandomSearch(t *testing.T) {
	var all []string
	for _, c := range pairedPlan() {
		for _, j := range jobsOf(t, c.name) {
			all = append(all, j.run.Problem.Family+" "+j.key.Method)
		}
	}
	for _, p := range problem.All() {
		if p.Suite == problem.Learning {
			continue
		}
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

func jobsOf(t *testing.T, chapter string) []job {
	t.Helper()
	o := options{version: "v1", seeds: "1"}
	jobs, err := o.chapters(pairedPlan(), words{chapter})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}
