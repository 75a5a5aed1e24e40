package study

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// Analyzed is the study with the trials of the last Update, for suggest/analysis.
// Curves and earlier experiments are left out. A trial's resource is its value of the
// parameter for it: none is recorded of a point that a user queued.
func (s *Study) Analyzed() suggest.Study {
	out := s.question()
	at, known := out.Space.Index(s.trials.spec.Algorithm.ResourceParameter())
	if !known {
		return out
	}
	out.Trials = slices.Clone(out.Trials)
	for i, t := range out.Trials {
		if len(t.Point) > at && t.Point[at].IsSet() && t.Point[at].Float() != t.Resource {
			own := *t
			own.Resource = t.Point[at].Float()
			out.Trials[i] = &own
		}
	}
	return out
}
