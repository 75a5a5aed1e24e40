package algorithm

import "github.com/vernier-ml/vernier/suggest"

// settled are the first trials of the last study, as far as its caller promised
// that they will not change. Who keeps what it has read of a study keeps this
// with it, and forgets both together. The zero settled is none.
type settled struct {
	record *suggest.Record
	count  int
}

// next goes on to a study: it is how many of its first trials are those of the
// last study, and need no look.
func (k *settled) next(s suggest.Study) (same int) {
	count := s.Promised()
	if s.Record == k.record {
		same = min(count, k.count)
	}
	k.record, k.count = s.Record, count
	return same
}
