package algorithm_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// With several objectives trials are modelled by all parameters together and by
// each on its own, by turns: each answer must be that of the one or the other.
func TestTPEModelsTogetherAndApartByTurns(t *testing.T) {
	setting := func(name, value string) []suggest.Setting { return []suggest.Setting{{Name: name, Value: value}} }
	together, apart := setting("multivariate", "true"), setting("multivariate", "false")
	cases := map[string]struct {
		specs      []suggest.ParameterSpec
		algorithm  string
		objectives int
		settings   []suggest.Setting
		odd        []suggest.Setting // whose answer trials of odd numbers have; the others: together
	}{
		"one objective is modelled together":       {flat(), "tpe", 1, nil, together},
		"two objectives take turns":                {flat(), "tpe", 2, nil, apart},
		"three do under the name of Katib":         {flat(), "multivariate-tpe", 3, nil, apart},
		"what was asked for is done":               {flat(), "tpe", 2, together, together},
		"groups are as they were asked for":        {flat(), "tpe", 2, setting("group", "true"), append(setting("multivariate", "true"), setting("group", "true")...)},
		"what depends on each other stays so":      {tree(), "tpe", 2, nil, together},
		"the other settings hold in both":          {flat(), "tpe", 2, setting("gamma", "0.4"), append(setting("gamma", "0.4"), apart...)},
		"a number of candidates holds in both too": {flat(), "tpe", 2, setting("n_EI_candidates", "3"), append(setting("n_EI_candidates", "3"), apart...)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			space := newSpace(t, c.specs...)
			r, _ := algorithm.Get(c.algorithm)
			made := func(settings []suggest.Setting) suggest.Algorithm {
				a, err := r.New(space, settings)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			even := append(slices.Clone(together), c.settings...)
			if slices.Equal(c.settings, together) {
				even = together
			}
			asked, first, second := made(c.settings), made(even), made(c.odd)
			ended := tpeCase{objectives: c.objectives}
			s := ended.study(space)
			different := 0
			for number := range 40 {
				want, other := first, second
				if number%2 == 1 {
					want, other = second, first
				}
				got := answer(t, space, asked, s)
				if diff := cmp.Diff(texts(space, answer(t, space, want, s)), texts(space, got)); diff != "" {
					t.Fatalf("trial %d (-want +got):\n%s", number, diff)
				}
				if !cmp.Equal(texts(space, answer(t, space, other, s)), texts(space, got)) {
					different++
				}
				trial := &suggest.Trial{Number: number, Point: got[0].Point}
				ended.end(space, trial)
				s.Trials = append(s.Trials, trial)
			}
			if turns := !slices.Equal(even, c.odd); turns != (different > 0) {
				t.Errorf("both answered differently %d times; taking turns: %v", different, turns)
			}
		})
	}
}

func answer(t *testing.T, space suggest.Space, a suggest.Algorithm, s suggest.Study) []suggest.Proposal {
	t.Helper()
	got, err := a.Suggest(t.Context(), s, 1)
	if err != nil || len(got) != 1 || !space.Contains(got[0].Point) {
		t.Fatalf("%+v, %v", got, err)
	}
	return got
}
