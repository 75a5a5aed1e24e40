package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// eventState is what an EventDir remembers beyond its life.
type eventState struct {
	// Places of the metrics.
	Places map[string][]place `json:"places"`
	// Replaced files, with the times in which they began, as Unix nanoseconds.
	Replaced map[string]int64 `json:"replaced,omitempty"`
}

// loadState reads what was remembered. What cannot be read counts as nothing.
func (r *eventRun) loadState() error {
	if r.cfg.State == "" {
		return nil
	}
	b, err := readState(r.cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s eventState
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return fmt.Errorf("tfevent: the state of an earlier collector is lost, metrics that are in several runs may be mixed: %w", err)
	}
	for i, metric := range r.cfg.Metrics {
		for _, p := range s.Places[metric] {
			r.names.own(i, p)
		}
	}
	if s.Replaced != nil {
		r.names.replaced = s.Replaced
	}
	return nil
}

// saveState remembers the places before anything is reported from them. When
// that fails, only a restart suffers.
func (r *eventRun) saveState() (ok bool) {
	if r.cfg.State == "" {
		return true
	}
	s := eventState{Places: map[string][]place{}, Replaced: r.names.replaced}
	for i, metric := range r.cfg.Metrics {
		if owners := r.names.owners[i]; len(owners) > 0 {
			s.Places[metric] = owners
		}
	}
	b, err := json.Marshal(s)
	if err == nil {
		err = replaceFile(r.cfg.State, b)
	}
	return err == nil || r.trouble(fmt.Errorf("tfevent: remembering the places of the metrics: %w", err))
}
