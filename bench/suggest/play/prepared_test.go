package play

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// diary notes what it is asked, and the number of finished trials that it sees.
type diary struct {
	space suggest.Space
	notes *[]string
}

func (d diary) note(what string, s suggest.Study) {
	finished := 0
	for _, t := range s.Trials {
		if t.State == suggest.Succeeded {
			finished++
		}
	}
	*d.notes = append(*d.notes, what+string(rune('0'+finished)))
}

func (d diary) Suggest(_ context.Context, s suggest.Study, _ int) ([]suggest.Proposal, error) {
	d.note("asked after ", s)
	return []suggest.Proposal{{Point: d.space.Decode(make([]float64, d.space.Len()))}}, nil
}

func (d diary) Prepare(_ context.Context, s suggest.Study) { d.note("learned from ", s) }

func TestLearningIsDoneBeforeTheQuestionWhereItIsNotCounted(t *testing.T) {
	problems, err := problem.Find([]string{problem.Continuous}, []string{"branin-2"})
	if err != nil {
		t.Fatal(err)
	}
	for prepared, want := range map[bool][]string{
		false: {"asked after 1", "asked after 2"},
		true:  {"asked after 1", "learned from 2", "asked after 2", "learned from 3"},
	} {
		var notes []string
		ours := &Ours{Prepared: prepared, New: func(space suggest.Space, _ suggest.Settings) (suggest.Algorithm, error) {
			return diary{space, &notes}, nil
		}}
		costs, err := MeasureLatency(t.Context(), ours, Run{Problem: problems[0], Regime: Regimes()[0]}, 1, 2)
		if err != nil || len(costs) != 2 {
			t.Fatalf("%d costs, %v", len(costs), err)
		}
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("prepared %v (-want +got):\n%s", prepared, diff)
		}
	}
}
