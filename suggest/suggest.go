// Package suggest holds the words of search: a Space of parameters, a Point in
// it, the Study with its Trials, and the Algorithm that proposes what to try
// next. It imports the standard library only: no Kubernetes, no clock, no
// input or output, no logging, no global randomness.
//
// A Space is built from strings, as users write them, and is always valid.
// Points travel as strings too: Space.Assignments writes them and Space.Parse
// finds the identical point again.
package suggest

import (
	"context"
	"errors"
)

// ErrExhausted says that the search is over: each point that the algorithm
// could propose is finished or pending already, and no result that may still
// come changes that. Test for it with errors.Is.
var ErrExhausted = errors.New("nothing is left to try: each point of the search space is finished or running")

// Algorithm proposes points.
//
// An Algorithm is a pure function of the Study. It may cache, but a cache can
// be rebuilt from the Study alone and never changes an answer. It may be called
// from several goroutines at once and does not modify the Study.
type Algorithm interface {
	// Suggest proposes at most n points that are worth trying next. The i-th
	// proposal is meant for the trial with number s.NextNumber()+i.
	//
	// Equal study and seed give equal answers, in any process. Trials that are
	// pending or running count: their points are not proposed again in a space
	// with finitely many points. For an algorithm that does not learn from
	// results, asking for n points equals asking n times for one while the
	// earlier ones are pending.
	//
	// What comes back:
	//   - n proposals and nil;
	//   - fewer than n (none, too) and nil: this is all for now. Ask again
	//     when the study has changed;
	//   - none and ErrExhausted: nothing is left, ever. When some points are
	//     left but fewer than n, they come with nil, and the next call, which
	//     sees them pending, tells ErrExhausted;
	//   - none and another error: ctx was cancelled or the study makes no sense.
	//
	// When the deadline of ctx passes, the answer is what there is by then, and
	// at least one proposal.
	//
	// n <= 0 gives none and nil. Trials that the algorithm cannot use (points
	// outside of the space, values that are NaN or infinite) are tolerated.
	Suggest(ctx context.Context, s Study, n int) ([]Proposal, error)
}

// Preparer is what an algorithm may be besides: one that can do in advance the
// part of its work that depends on results only. Call Prepare when results have
// come and no proposals are waited for; the next Suggest is then faster, and
// gives the same answer as without.
type Preparer interface {
	Prepare(ctx context.Context, s Study)
}

// Recommender is what an algorithm may be besides: one that can say which of the points
// that were tried is best where the trial with the best value may have been lucky.
type Recommender interface {
	// Recommend is a function of the Study alone. ok is false when there is too little
	// to tell, or the study does not repeat trials.
	Recommend(ctx context.Context, s Study) (r Recommendation, ok bool)
}

// Recommendation is the point whose further trials are expected to be best on average.
type Recommendation struct {
	// Trial is the first one of the point, and Count how many have measured it.
	Trial *Trial
	Count int
	// Value of the objective that is expected on average, as the user measures it, and
	// Deviation the standard deviation of that belief.
	Value, Deviation float64
	// Noise is the standard deviation of one trial around the average of its point.
	Noise float64
}

// New builds an algorithm for a space. It is the only validation there is: an
// error names the setting or the parameter at fault and says what to do.
type New func(Space, Settings) (Algorithm, error)

// Proposal is a point to try.
type Proposal struct {
	// Point to try. It lies in the space.
	Point Point
	// Meta comes back on the Trial that is made from this proposal. May be nil.
	Meta Meta
	// Resource is how much of the resource (epochs, steps, seconds: the
	// algorithm's settings say which) the trial should use. Zero: all of it.
	Resource float64
	// Why says in a sentence, for the user, why this point. May be empty.
	Why string
	// Fallback is a word for what the algorithm did in place of its normal
	// work, because the study did not allow for that: the label of a metric.
	// Empty when all went well.
	Fallback string
}

// Stopper decides whether a running trial is worth going on with.
type Stopper interface {
	// Stop says whether t, a running trial of s, should be stopped now, and why,
	// in words for the user. Equal arguments give equal answers.
	Stop(s Study, t *Trial) (stop bool, why string)
}

// Limiter is what a Stopper may be besides: one whose judgement of a trial that starts
// now can be told ahead, as callers need that judge on their own.
type Limiter interface {
	// Limit is the value of the main objective that the best value of a trial must not
	// be worse than once it has reported from times. ok is false while value is not known.
	Limit(s Study) (value float64, from int, ok bool)
}
