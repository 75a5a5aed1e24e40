package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// sessionsName follows the name of the state file.
	sessionsName = ".sessions"
	// maxSessionBytes bounds what is read of it: the program may write there too.
	maxSessionBytes = 256 << 20
)

// sessionLine is what was decided of one source. Lines are appended, since a
// tree may have very many files, and before a point rests on them. A line that a
// kill cut short was thus never acted upon.
type sessionLine struct {
	// Source of the points, to which the line applies from the Seq From on.
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
	given   []sessionLine // in the order of From
	metrics map[string]bool
}

// loadSessions reads what was decided.
func (r *eventRun) loadSessions() error {
	if r.cfg.State == "" {
		return nil
	}
	f, err := openRegular(r.cfg.State + sessionsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var b []byte
	if err == nil {
		defer f.Close()
		b, err = io.ReadAll(io.LimitReader(f, maxSessionBytes))
	}
	if err != nil {
		return fmt.Errorf("tfevent: the sessions that an earlier collector saw are lost, points may be reported twice: %w", err)
	}
	for text := range bytes.Lines(b) {
		var line sessionLine
		if json.Unmarshal(text, &line) == nil {
			r.sessions.remember(line)
		}
	}
	return nil
}

// remember takes a line in that an earlier collector wrote.
func (s *eventSessions) remember(line sessionLine) {
	switch n := len(s.began); {
	case line.Session < 0 || line.Session > n || line.Session >= maxSessions:
		return
	case line.Session == n:
		s.began = append(s.began, time.Unix(0, line.Began))
	}
	m := s.earlier[line.Source]
	if m == nil {
		m = &remembered{metrics: map[string]bool{}}
		s.earlier[line.Source] = m
	}
	if line.Metric != "" {
		m.metrics[line.Metric] = true
	}
	if n := len(m.given); n == 0 || m.given[n-1].Session != line.Session {
		m.given = append(m.given, line)
	}
}

// decide notes that a file is in its session from its next point on. The metric
// is the one whose first value decided it, if one did.
func (r *eventRun) decide(f *eventFile, metric string) {
	line := sessionLine{Source: f.source, From: f.last + 1, Session: f.session, Metric: metric}
	if f.session > 0 {
		line.Began = r.sessions.began[f.session].UnixNano()
	}
	r.sessions.unsaved = append(r.sessions.unsaved, line)
}

// saveSessions writes what was decided. When that fails, only a restart suffers,
// and it is tried again with the next decision.
func (r *eventRun) saveSessions() (ok bool) {
	s := r.sessions
	if r.cfg.State == "" {
		s.unsaved = s.unsaved[:0]
	}
	if len(s.unsaved) == 0 {
		return true
	}
	b := []byte("\n") // there may be a line before it that was not written whole
	for _, line := range s.unsaved {
		text, err := json.Marshal(line)
		if err != nil {
			return r.trouble(fmt.Errorf("tfevent: remembering the session of %s: %w", line.Source, err))
		}
		b = append(append(b, text...), '\n')
	}
	if err := appendTo(r.cfg.State+sessionsName, b); err != nil {
		return r.trouble(fmt.Errorf("tfevent: remembering the sessions: %w", err))
	}
	s.unsaved = s.unsaved[:0]
	return true
}

func appendTo(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
