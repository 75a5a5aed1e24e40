package history

import (
	"maps"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// Follower reads studies for an algorithm that replays what happened, trial by
// trial: it says what has changed since the last time. It is not safe for use from
// several goroutines at once.
type Follower struct {
	*Reader
	// History of the last study.
	History History
	// Seed of the last study.
	Seed uint64
}

// NewFollower makes a follower of studies of the space.
func NewFollower(space suggest.Space) *Follower { return &Follower{Reader: NewReader(space)} }

// Follow goes on to the study. changed are the positions of the trials that are
// new or have another outcome, ascending; again is true when something else
// changed, so that a replay has to begin anew.
func (f *Follower) Follow(s suggest.Study, seed uint64) (changed []int, again bool) {
	before, now := f.History, f.Read(s)
	again = seed != f.Seed || len(now.Rows) < len(before.Rows) || !slices.Equal(before.Warm, now.Warm)
	for i, row := range now.Rows {
		if i < len(before.Rows) {
			old := before.Rows[i]
			if old == row {
				continue
			}
			again = again || old.Class.Ended() || old.Number != row.Number || !old.Point.Equal(row.Point) || !maps.Equal(old.Meta, row.Meta)
		}
		changed = append(changed, i)
	}
	f.History, f.Seed = now, seed
	return changed, again
}
