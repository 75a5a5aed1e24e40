package source

import (
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
// A new file whose steps go on belongs to the session at hand, and so do steps
// that go back within one file: they are the program's own.
type SessionPoint struct {
	collector.Point
	// Session counts from 0.
	Session int
	// Began is when the session began; the zero time for session 0, which
	// begins with the program.
	Began time.Time
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
}

func newEventSessions(metrics int) *eventSessions {
	return &eventSessions{began: make([]time.Time, 1), tracks: make([]track, metrics)}
}

// at returns the session of a file that began at a time.
func (s *eventSessions) at(began time.Time) int {
	n := len(s.began) - 1
	for n > 0 && s.began[n].After(began) {
		n--
	}
	return n
}

// session returns the session of a value, and begins one if the value shows it.
func (r *eventRun) session(f *eventFile, metric int, s *parse.Scalar) int {
	t := &r.sessions.tracks[metric]
	if t.file == f && t.session == f.session { // as nearly always
		t.step = max(t.step, s.Step)
		if s.Time.After(t.time) {
			t.time = s.Time
		}
		return f.session
	}
	if f.session == noSession {
		f.session = r.sessions.at(f.began)
	}
	if t.seen && t.session == f.session && s.Step <= t.step && f.began.After(t.time) {
		r.restart(f, f.began, t.time)
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
	return f.session
}

// sessionStart deals with a file's word that the program began again at a step.
func (r *eventRun) sessionStart(f *eventFile, s *parse.Scalar) {
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
			return
		case t.file == f && s.Time.After(t.time):
			r.restart(f, s.Time, t.time)
			return
		}
	}
}

// restart puts a file into the next session, which it begins if there is none.
// Files of which nothing was reported yet may have begun before it; those that
// began after it come along.
func (r *eventRun) restart(f *eventFile, began, last time.Time) {
	old := f.session
	if next := old + 1; next < len(r.sessions.began) {
		f.session = next
		return
	}
	if len(r.sessions.began) == maxSessions {
		return
	}
	for _, o := range r.files {
		if o.session == noSession && o.began.After(last) && o.began.Before(began) {
			began = o.began
		}
	}
	if newest := r.sessions.began[old]; !began.After(newest) {
		began = newest.Add(1) // the order of sessions is that of their times
	}
	r.sessions.began = append(r.sessions.began, began)
	f.session = old + 1
	for _, o := range r.files {
		if o.session == old && !o.began.Before(began) {
			o.session = f.session
		}
	}
}
