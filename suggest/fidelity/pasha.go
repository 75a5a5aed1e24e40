package fidelity

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// pashaTop is the highest rung at the start: two rungs, whose orders are compared
// (R_0 = eta r in algorithm 1 of the paper).
const pashaTop = 1

// pashaPercentile is of the differences between pairs that change places and
// back: what is nearer together is taken as equal.
const pashaPercentile = 0.9

// pashaPairs bounds how many entries are paired, the best ones.
const pashaPairs = 32

// PASHA is progressive ASHA (Bohdal et al., "PASHA: efficient HPO and NAS with
// progressive resource allocation", ICLR 2023, algorithm 1): the highest rung
// begins low, and rises by one while the soft ranking of the points there differs
// from the one at the rung below.
func PASHA() propose.Registration {
	summary := "ASHA that gives larger resources only once the order of the points at the highest two rungs disagrees. For very large data or models, where a good order is enough."
	return registration("pasha", summary, "", nil, func(f *fidelity, _ *suggest.SettingsReader) suggest.Algorithm {
		return &asha{fidelity: f, top: func(b *rungBook) int {
			bracket := b.bracket(0)
			// A rung that was opened stays open.
			top := min(f.depth, max(pashaTop, len(bracket.rungs)-1))
			for top < f.depth && !bracket.stable(b, top) {
				top++
			}
			return top
		}}
	})
}

// pair is a point at two rungs.
type pair struct{ below, above *rungEntry }

// stable says whether the points at the rung are in the order that they have at
// the rung below, where those whose losses differ by epsilon or less may change
// places.
func (r *bracketBook) stable(b *rungBook, rung int) bool {
	if rung < 1 || rung >= len(r.rungs) {
		return true
	}
	var pairs []pair
	for _, e := range r.rungs[rung].ranked() {
		number, _ := metaNumber(e.trial.Meta, suggest.MetaParent)
		if below := b.entry(number); below != nil && below.usable() {
			pairs = append(pairs, pair{below: below, above: e})
		}
	}
	epsilon := crossing(pairs)
	before := slices.Clone(pairs)
	slices.SortFunc(before, func(p, q pair) int { return p.below.compare(q.below) })
	for place, p := range pairs {
		there := before[place].below
		if math.Abs(p.below.loss-there.loss) > epsilon || p.below.violation != there.violation {
			return false
		}
	}
	return true
}

// crossing estimates the noise of rankings (section 4.2 of the paper): a high
// percentile of the final differences between points whose curves cross and
// cross back. 0 when there are none.
func crossing(pairs []pair) float64 {
	pairs = pairs[:min(len(pairs), pashaPairs)]
	var differences []float64
	for i := range pairs {
		for j := range i {
			if d, ok := crosses(pairs[i].above.trial.Curve, pairs[j].above.trial.Curve); ok {
				differences = append(differences, d)
			}
		}
	}
	if len(differences) == 0 {
		return 0
	}
	slices.Sort(differences)
	return differences[int(pashaPercentile*float64(len(differences)-1))]
}

// crosses says whether two curves change their order at least twice on the steps
// that both have, and how far they are apart on the last of these.
func crosses(a, b []suggest.Sample) (difference float64, ok bool) {
	changes, order := 0, 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := cmp.Compare(a[i].Step, b[j].Step); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			now := 0
			switch {
			case a[i].Value < b[j].Value:
				now = -1
			case a[i].Value > b[j].Value:
				now = 1
			}
			if now != 0 && order != 0 && now != order {
				changes++
			}
			if now != 0 {
				order = now
			}
			if d := math.Abs(a[i].Value - b[j].Value); !math.IsNaN(d) {
				difference = d
			}
			i++
			j++
		}
	}
	return difference, changes >= 2
}
