package study

import "github.com/vernier-ml/vernier/suggest"

// Analyzed is the study with the trials of the last Update, for suggest/analysis.
// Curves and earlier experiments are left out.
func (s *Study) Analyzed() suggest.Study { return s.question() }
