package suggest

// Record stands for the list that the trials of several studies come from, such
// as the same study at each question. It is told apart by its address alone;
// see Study.Record.
type Record struct{ _ byte } // with no size, two could have one address

// Promised is how many of the first trials the study makes a promise about:
// Settled, but at least 0 and at most all of them; 0 without a Record.
func (s Study) Promised() int {
	if s.Record == nil {
		return 0
	}
	return max(0, min(s.Settled, len(s.Trials)))
}

// Settle keeps Record and Settled for a study that grows: new trials come last
// and have larger numbers, and what has ended does not change. Call it before a
// question, or when trials have ended; it looks at those only that were not
// settled before. When a settled trial has changed nevertheless, set Record to
// nil first: then all begins anew, as it does when settled trials are gone.
func (s *Study) Settle() {
	if s.Record == nil || s.Settled > len(s.Trials) {
		s.Record, s.Settled = new(Record), 0
	}
	s.Settled = s.Promised()
	for s.Settled < len(s.Trials) && s.Trials[s.Settled].State.Finished() {
		s.Settled++
	}
}
