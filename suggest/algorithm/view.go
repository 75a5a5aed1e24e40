package algorithm

import (
	"sync"

	"github.com/vernier-ml/vernier/suggest"
)

// view derives the trials of one study from those of another, and gives the same
// pointers again where a trial has not changed.
type view struct {
	mu   sync.Mutex
	from []*suggest.Trial // of the last study
	to   []*suggest.Trial // what was made of them
}

// of derives a trial from each trial.
func (v *view) of(trials []*suggest.Trial, derive func(*suggest.Trial) *suggest.Trial) []*suggest.Trial {
	v.mu.Lock()
	defer v.mu.Unlock()
	to := make([]*suggest.Trial, len(trials))
	for i, t := range trials {
		if i < len(v.from) && v.from[i] == t {
			to[i] = v.to[i]
		} else {
			to[i] = derive(t)
		}
	}
	v.from, v.to = trials, to
	return to
}
