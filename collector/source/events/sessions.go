package events

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/journal"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
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
// What was decided is remembered (see Config.State) before a point rests
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
	// sessionsName follows the name of the state file.
	sessionsName = ".sessions"
	// maxSessionBytes and maxSessionLine bound the decisions that are remembered.
	maxSessionBytes = 256 << 20
	maxSessionLine  = 16 << 20
)

// fileSession is what is decided of one file.
type fileSession struct {
	session int
	last    int64           // Seq of the last point
	decided map[string]bool // metrics whose first value has a session
	listed  bool            // an earlier collector reported from it
	given   []decision      // what that decided of points that are still to come
}

// track is how far a metric has come.
type track struct {
	seen    bool
	session int
	step    int64     // the largest
	time    time.Time // the latest
	file    *eventFile
}

// goOn takes in a further value of the session.
func (t *track) goOn(f *eventFile, s *parse.Scalar) {
	t.file, t.step = f, max(t.step, s.Step)
	if s.Time.After(t.time) {
		t.time = s.Time
	}
}

// sessions tells the starts of a program apart.
type sessions struct {
	metrics []string
	began   []time.Time
	tracks  []track // by metric
	said    *source.Troubles

	log     *journal.Journal // of decisions; nil: they are not remembered
	earlier map[string]*remembered
	unsaved []decision
}

// decision is what was decided of one source, before a point rests on it.
type decision struct {
	// Source of the points, to which it applies from the Seq From on.
	Source string `json:"source"`
	From   int64  `json:"from"`
	// Session that they belong to, and the time in which it began, as Unix
	// nanoseconds.
	Session int   `json:"session"`
	Began   int64 `json:"began,omitempty"`
	// Metric whose first value it was, if it was one.
	Metric string `json:"metric,omitempty"`
}

// remembered is what an earlier collector decided of a source.
type remembered struct {
	given   []decision // in the order of From
	metrics map[string]bool
}

func newSessions(metrics []string, said *source.Troubles) *sessions {
	return &sessions{metrics: metrics, began: make([]time.Time, 1), tracks: make([]track, len(metrics)), said: said, earlier: map[string]*remembered{}}
}

// load reads what was decided.
func (s *sessions) load(state string) (ok bool) {
	if state == "" {
		return true
	}
	log, err := journal.Open(journal.Config{Path: state + sessionsName, Limit: maxSessionBytes, MaxLine: maxSessionLine})
	if err != nil {
		return s.said.Tell(fmt.Errorf("the sessions that an earlier collector saw are lost, points may be reported twice: %w", err))
	}
	s.log = log
	for line, err := range log.Lines(context.Background(), 0) {
		var batch []decision
		if err == nil && json.Unmarshal(line.Text, &batch) == nil {
			for _, d := range batch {
				s.remember(d)
			}
		}
	}
	return true
}

func (s *sessions) close() {
	if s.log != nil {
		_ = s.log.Close() // everything is written
	}
}

// remember takes in what an earlier collector decided.
func (s *sessions) remember(d decision) {
	switch n := len(s.began); {
	case d.Session < 0 || d.Session > n || d.Session >= maxSessions:
		return
	case d.Session == n:
		s.began = append(s.began, time.Unix(0, d.Began))
	}
	m := s.earlier[d.Source]
	if m == nil {
		m = &remembered{metrics: map[string]bool{}}
		s.earlier[d.Source] = m
	}
	if d.Metric != "" {
		m.metrics[d.Metric] = true
	}
	if n := len(m.given); n == 0 || m.given[n-1].Session != d.Session {
		m.given = append(m.given, d)
	}
}

// recall gives a file what an earlier collector decided of its points.
func (s *sessions) recall(f *eventFile) {
	if m := s.earlier[f.source]; m != nil {
		f.fileSession = fileSession{session: noSession, last: -1, listed: true, given: m.given, decided: maps.Clone(m.metrics)}
	}
}

// decide notes that a file is in its session from its next point on. The metric
// is the one whose first value decided it, if one did.
func (s *sessions) decide(f *eventFile, metric string) {
	d := decision{Source: f.source, From: f.last + 1, Session: f.session, Metric: metric}
	if f.session > 0 {
		d.Began = s.began[f.session].UnixNano()
	}
	s.unsaved = append(s.unsaved, d)
}

// save writes what was decided. When that fails, only a restart suffers, and it
// is tried again with the next decision.
func (s *sessions) save() (ok bool) {
	if s.log == nil {
		s.unsaved = s.unsaved[:0]
	}
	if len(s.unsaved) == 0 {
		return true
	}
	text, err := json.Marshal(s.unsaved)
	if err == nil {
		err = s.log.Append(text)
	}
	if err != nil {
		return s.said.Tell(fmt.Errorf("remembering the sessions: %w", err))
	}
	s.unsaved = s.unsaved[:0]
	return true
}

// newest returns the time of the newest value of a metric.
func (s *sessions) newest(metric int) (at time.Time, seen bool) {
	return s.tracks[metric].time, s.tracks[metric].seen
}

// enter puts a file into the session in which it began.
func (s *sessions) enter(f *eventFile) {
	if f.session != noSession {
		return
	}
	n := len(s.began) - 1
	for n > 0 && s.began[n].After(f.began) {
		n--
	}
	f.session = n
}

// assign gives f the session of a value, which is to be the point at seq, and
// begins one if the value shows it.
func (s *sessions) assign(files []*eventFile, f *eventFile, metric int, v *parse.Scalar, seq int64) (ok bool) {
	for len(f.given) > 0 && f.given[0].From <= seq {
		f.session, f.given = f.given[0].Session, f.given[1:]
	}
	t := &s.tracks[metric]
	s.enter(f)
	ok = true
	if name := s.metrics[metric]; !f.decided[name] {
		if t.seen && t.session == f.session && v.Step <= t.step && f.began.After(t.time) {
			s.restart(files, f, f.began, t.time)
		}
		if f.decided == nil {
			f.decided = map[string]bool{}
		}
		f.decided[name] = true
		s.decide(f, name)
		ok = s.save()
	}
	switch {
	case !t.seen || f.session > t.session:
		*t = track{seen: true, session: f.session, step: v.Step, time: v.Time, file: f}
	case f.session == t.session:
		t.goOn(f, v)
	}
	f.last = seq
	return ok
}

// start deals with a file's word that the program began again at a step.
func (s *sessions) start(files []*eventFile, f *eventFile, v *parse.Scalar) (ok bool) {
	if f.listed {
		return true // it was dealt with, and points may have been reported since
	}
	s.enter(f)
	for i := range s.tracks {
		t := &s.tracks[i]
		if !t.seen || t.session != f.session || v.Step > t.step || t.file.run != f.run {
			continue
		}
		switch {
		case t.file != f && f.began.After(t.time):
			s.restart(files, f, f.began, t.time)
			return s.save()
		case t.file == f && v.Time.After(t.time):
			s.restart(files, f, v.Time, t.time)
			return s.save()
		}
	}
	return true
}

// restart puts a file into the next session, which it begins if there is none.
// Files of which nothing was reported yet may have begun before it; those that
// began after it come along, unless an earlier collector reported from them.
func (s *sessions) restart(files []*eventFile, f *eventFile, began, last time.Time) {
	old := f.session
	if next := old + 1; next < len(s.began) {
		f.session = next
		s.decide(f, "")
		return
	}
	if len(s.began) == maxSessions {
		return
	}
	for _, o := range files {
		if o.session == noSession && !o.listed && o.began.After(last) && o.began.Before(began) {
			began = o.began
		}
	}
	if newest := s.began[old]; !began.After(newest) {
		began = newest.Add(1) // the order of sessions is that of their times
	}
	s.began = append(s.began, began)
	f.session = old + 1
	s.decide(f, "")
	for _, o := range files {
		if o.session == old && !o.listed && !o.began.Before(began) {
			o.session = f.session
			s.decide(o, "")
		}
	}
}
