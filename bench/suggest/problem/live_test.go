package problem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRealTasks(t *testing.T) {
	names := map[bool][]string{}
	for _, half := range []bool{false, true} {
		for _, p := range Real(half) {
			if p.Space().Len() != len(p.Parameters) || p.Verdict != half {
				t.Errorf("%s has a space of %d parameters, want %d, and is of the verdict half: %v, want %v", p.Name, p.Space().Len(), len(p.Parameters), p.Verdict, half)
			}
			names[half] = append(names[half], p.Name)
		}
	}
	// The halves are for ever: a task that changes over takes what was chosen by it along.
	want := []string{
		"hpobench-car", "hpobench-credit_g", "hpobench-phoneme", "hpolib-slice_localization", "nasbench201-cifar10", "nasbench201-imagenet",
		"net-digits-acc", "net-wine-nll", "kernel-wine-nll", "choice-diabetes-mse",
		"boost-randhie-mse", "sgd-diabetes-mae", "sgd-wine-nll", "pipe-digits-acc", "pipe-breast-nll", "pipe-fair-acc",
	}
	if diff := cmp.Diff(want, names[true]); diff != "" || len(names[false]) != 27 {
		t.Errorf("%d tasks to develop with; of the verdict -want +got:\n%s", len(names[false]), diff)
	}
}

func TestTasksOfTheVerdictAreNotFound(t *testing.T) {
	found, err := Find([]string{Live, Tabular}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		if p.Verdict {
			t.Errorf("%s is found", p.Name)
		}
	}
	if _, err := Find([]string{Tabular}, []string{"hpobench-car"}); err == nil {
		t.Error("hpobench-car is found by its name")
	}
}
