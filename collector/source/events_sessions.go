package source

import (
	"maps"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// SessionPoint is a point and the session that it belongs to.
//
// A session is a start of the program, as far as it shows in the files: the next
// one begins with a file that began after the last value of a metric and in
// which the metric's steps go back, or in which the writer says that the program
// began again at an earlier step. All files that began since then belong to it.
// What the sessions before measured for these steps is void, as TensorBoard has
// it: report each session as an attempt of its own.
//
// What was decided is remembered (see EventDirConfig.State) before a point rests
// on it: a source that is started anew gives every point the session that it had.
// Of files that an earlier one reported from, it decides only for metrics that
// it did not find in them.
//
// A new file whose steps go on belongs to the session at hand, and so do steps
// that go back within one file: they are the program's own.
type SessionPoint struct {
	collector.Point
	// Session counts from 0.
	Session int
	// Began is when each session up to this one began; the zero time for session
	// 0, which begins with the program.
	Began []time.Time
}

const (
	noSession = -1
	// maxSessions bounds the sessions that are told apart.
	maxSessions = 1000
)

// track is how far a metric has come.
type track struct {
	seen    bool
	session int
	step    int64     // the largest
	time    time.Time // the latest
	file    *eventFile
}

// eventSessions tells sessions apart.
type eventSessions struct {
	began  []time.Time
	tracks []track // by metric

	earlier map[string]*remembered // by source
	unsaved []sessionLine
}

func newEventSessions(metrics int) *eventSessions {
	return &eventSessions{began: make([]time.Time, 1), tracks: make([]track, metrics), earlier: map[string]*remembered{}}
}

// at returns the session of a file that began at a time.
func (s *eventSessions) at(began time.Time) int {
	n := len(s.began) - 1
	for n > 0 && s.began[n].After(began) {
		n--
	}
	return n
}

// recall gives a file what an earlier collector decided of its points.
func (r *eventRun) recall(f *eventFile) {
	if m := r.sessions.earlier[f.source]; m != nil {
		f.listed, f.given, f.decided = true, m.given, maps.Clone(m.metrics)
		f.session = noSession
	}
}

// session gives f the session of a value, which is to be the point at seq, and
// begins one if the value shows it.
func (r *eventRun) session(f *eventFile, metric int, s *parse.Scalar, seq int64) (ok bool) {
	for len(f.given) > 0 && f.given[0].From <= seq {
		f.session, f.given = f.given[0].Session, f.given[1:]
	}
	ok = r.place(f, metric, s)
	f.last = seq
	return ok
}

// place is session for a file that has what was decided of it earlier.
func (r *eventRun) place(f *eventFile, metric int, s *parse.Scalar) (ok bool) {
	t := &r.sessions.tracks[metric]
	if t.file == f && t.session == f.session { // as nearly always
		t.step = max(t.step, s.Step)
		if s.Time.After(t.time) {
			t.time = s.Time
		}
		return true
	}
	if f.session == noSession {
		f.session = r.sessions.at(f.began)
	}
	ok = true
	if name := r.cfg.Metrics[metric]; !f.decided[name] {
		if t.seen && t.session == f.session && s.Step <= t.step && f.began.After(t.time) {
			r.restart(f, f.began, t.time)
		}
		if f.decided == nil {
			f.decided = map[string]bool{}
		}
		f.decided[name] = true
		r.decide(f, name)
		ok = r.saveSessions()
	}
	switch {
	case !t.seen || f.session > t.session:
		*t = track{seen: true, session: f.session, step: s.Step, time: s.Time, file: f}
	case f.session == t.session:
		t.file, t.step = f, max(t.step, s.Step)
		if s.Time.After(t.time) {
			t.time = s.Time
		}
	}
	return ok
}

// sessionStart deals with a file's word that the program began again at a step.
func (r *eventRun) sessionStart(f *eventFile, s *parse.Scalar) (ok bool) {
	if f.listed {
		return true // it was dealt with, and points may have been reported since
	}
	if f.session == noSession {
		f.session = r.sessions.at(f.began)
	}
	for i := range r.sessions.tracks {
		t := &r.sessions.tracks[i]
		if !t.seen || t.session != f.session || s.Step > t.step || t.file.run != f.run {
			continue
		}
		switch {
		case t.file != f && f.began.After(t.time):
			r.restart(f, f.began, t.time)
			return r.saveSessions()
		case t.file == f && s.Time.After(t.time):
			r.restart(f, s.Time, t.time)
			return r.saveSessions()
		}
	}
	return true
}

// restart puts a file into the next session, which it begins if there is none.
// Files of which nothing was reported yet may have begun before it; those that
// began after it come along, unless an earlier collector reported from them.
func (r *eventRun) restart(f *eventFile, began, last time.Time) {
	old := f.session
	if next := old + 1; next < len(r.sessions.began) {
		f.session = next
		r.decide(f, "")
		return
	}
	if len(r.sessions.began) == maxSessions {
		return
	}
	for _, o := range r.files {
		if o.session == noSession && !o.listed && o.began.After(last) && o.began.Before(began) {
			began = o.began
		}
	}
	if newest := r.sessions.began[old]; !began.After(newest) {
		began = newest.Add(1) // the order of sessions is that of their times
	}
	r.sessions.began = append(r.sessions.began, began)
	f.session = old + 1
	r.decide(f, "")
	for _, o := range r.files {
		if o.session == old && !o.listed && !o.began.Before(began) {
			o.session = f.session
			r.decide(o, "")
		}
	}
}
