package cmaes

import (
	"context"
	"fmt"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// numbersOnly is a space without choices: numbers in between, with few levels,
// and with more levels than models see, by turns.
func numbersOnly(t testing.TB, dims int) suggest.Space {
	t.Helper()
	specs := make([]suggest.ParameterSpec, dims)
	for i := range specs {
		specs[i] = suggest.ParameterSpec{Name: fmt.Sprintf("p%d", i), Kind: suggest.Double, Min: "0", Max: "1"}
		switch i % 3 {
		case 1:
			specs[i].Kind, specs[i].Max = suggest.Int, "20"
		case 2:
			specs[i].Kind, specs[i].Max = suggest.Int, "1000000"
		}
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// measured is a trial with the squared distance from a corner, where many samples
// lie outside of the box.
func measured(space suggest.Space, number int, p suggest.Point, meta suggest.Meta) *suggest.Trial {
	u, _ := space.Encode(p)
	loss := 0.0
	for _, v := range u {
		loss += v * v
	}
	return &suggest.Trial{Number: number, Point: p, Meta: meta, State: suggest.Succeeded, Values: []float64{loss}}
}

// Whichever sample a surrogate picks, a replay finds where it lay before it was
// moved into the box and to a level: the first one, which is drawn from the
// low-discrepancy sequence, and those outside, which are drawn twice, too.
func TestAReplayFindsEachSampleThatASurrogatePicks(t *testing.T) {
	for _, parallel := range []int{1, 5} {
		space := numbersOnly(t, 3)
		built, err := New(space, suggest.Settings{{Name: "surrogate", Value: "true"}})
		if err != nil {
			t.Fatal(err)
		}
		a, s := built.(*cmaes), suggest.Study{Space: space, Seed: 4, Objectives: []suggest.Objective{{Name: "loss"}}}
		outside, moved := 0, 0
		for len(s.Trials) < 150 {
			got, err := a.Suggest(t.Context(), s, parallel)
			if err != nil || len(got) != parallel {
				t.Fatalf("%v, %v", got, err)
			}
			state := a.replay.Ahead.State
			for _, p := range got {
				trial := measured(space, len(s.Trials), p.Point, p.Meta)
				s.Trials = append(s.Trials, trial)
				if p.Fallback != "" {
					continue
				}
				r := history.NewReader(space).Read(suggest.Study{Objectives: s.Objectives, Trials: []*suggest.Trial{trial}}).Rows[0]
				row := a.rules.raw(r, state)
				if &row[0] == &r.X[0] {
					t.Fatalf("%d at a time: the sample of trial %d is not found", parallel, trial.Number)
				}
				if row[0] != r.X[0] {
					outside++
				}
				if row[1] != r.X[1] {
					moved++
				}
			}
		}
		if outside < 10 || moved < 50 {
			t.Errorf("%d at a time: %d samples outside of the box and %d between levels, want more to look at", parallel, outside, moved)
		}
	}
}

// endsAfter is a context whose deadline passes after so many looks at it.
type endsAfter struct {
	context.Context
	looks, most int
}

func (c *endsAfter) Err() error {
	if c.looks++; c.looks > c.most {
		return context.DeadlineExceeded
	}
	return nil
}

// A study may have many thousands of results, and all of them are looked at.
func TestASurrogateLooksAtTheTime(t *testing.T) {
	const trials = 20 * surrogateChunk
	for _, c := range []struct{ dims, most, looks int }{
		{3, 0, 1},
		{3, 10, 11}, // of 20 parts of the trials
		{surrogateMost/surrogateLeast + 1, 1000, 0}, // there are never enough results
	} {
		space := numbersOnly(t, c.dims)
		built, err := New(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, s := built.(*cmaes), suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
		p := space.Decode(make([]float64, c.dims))
		for i := range trials {
			s.Trials = append(s.Trials, measured(space, i, p, nil))
		}
		if err := a.catchUp(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		ctx := &endsAfter{Context: t.Context(), most: c.most}
		if got := surrogateOf(ctx, a.follower, a.replay.Ahead.State); got != nil || ctx.looks != c.looks {
			t.Errorf("%d parameters, a deadline after %d looks: it was looked at %d times, want %d", c.dims, c.most, ctx.looks, c.looks)
		}
	}
}

// What has no time for the surrogate is a sample all the same, and says so.
func TestASampleWithoutTheSurrogateSaysSo(t *testing.T) {
	space := numbersOnly(t, 3)
	built, err := New(space, suggest.Settings{{Name: "surrogate", Value: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
	for len(s.Trials) < 60 {
		got, err := built.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Trials = append(s.Trials, measured(space, len(s.Trials), got[0].Point, got[0].Meta))
	}
	for fallback, most := range map[string]int{"": 1000, "deadline": 1} {
		got, err := built.Suggest(&endsAfter{Context: t.Context(), most: most}, s, 1)
		if err != nil || len(got) != 1 || got[0].Fallback != fallback || got[0].Meta["cma"] == "" {
			t.Errorf("a deadline after %d looks: %+v, %v, want a sample with the fallback %q", most, got, err, fallback)
		}
	}
}
