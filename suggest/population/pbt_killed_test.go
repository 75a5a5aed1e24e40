package population

import (
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

func TestKilledTrialsAreRepeatedHoweverOften(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	a := buildPopulation(t, PBT().New, s, nPopulation, "4")
	for i := range 4 {
		s.Trials = append(s.Trials, member(s.Space, i, i, 0, "", float64(i)))
	}
	for i := range 5 {
		killed := member(s.Space, 4+i, 0, 1, "0", 0)
		killed.State, killed.Values = suggest.Killed, nil
		s.Trials = append(s.Trials, killed)
	}
	got, err := a.Suggest(t.Context(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(got, func(p suggest.Proposal) bool { return p.Meta[memberMeta] == "0" })
	if i < 0 || got[i].Meta[suggest.MetaParent] != "0" || !got[i].Point.Equal(s.Trials[4].Point) || strings.Contains(got[i].Why, "failed") {
		t.Errorf("got %+v, want trial 8 again, which was killed", got)
	}
}
