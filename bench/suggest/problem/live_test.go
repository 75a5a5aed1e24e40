package problem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrainings(t *testing.T) {
	found, err := Find([]string{Live}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var aside []string
	for _, p := range found {
		if p.Space().Len() != len(p.Parameters) {
			t.Errorf("%s has a space of %d parameters, want %d", p.Name, p.Space().Len(), len(p.Parameters))
		}
		if p.Task.Aside {
			aside = append(aside, p.Name)
		}
	}
	want := []string{"net-digits-acc", "net-wine-nll", "kernel-wine-nll", "choice-diabetes-mse"}
	if diff := cmp.Diff(want, aside); diff != "" || len(found) != 12 {
		t.Errorf("%d trainings; kept aside -want +got:\n%s", len(found), diff)
	}
}
