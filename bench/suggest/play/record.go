package play

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Key names a game: what has been played under a key is not played again.
type Key struct {
	Suite   string `json:"suite"`
	Problem string `json:"problem"`
	Regime  string `json:"regime"`
	Method  string `json:"method"`
	Version string `json:"version"`
	Seed    uint64 `json:"seed"`
	Budget  int    `json:"budget"`
	// Draw is how the instance of a function was drawn, problem.Draw; 0 for real tasks.
	Draw int `json:"draw,omitempty"`
}

// Record is the result of a game.
type Record struct {
	Key
	Path Path `json:"path"`
	// Visited is how the best point improved that was tried, where trials are noisy.
	Visited Path `json:"visited,omitempty"`
	// CPU and Wall are what a suggestion cost, in seconds.
	CPU  Spread `json:"cpu"`
	Wall Spread `json:"wall"`
	// Error says why the game ended early; empty when it did not.
	Error string `json:"error,omitempty"`
}

// Spread of a cost over the suggestions of a game.
type Spread struct {
	Median float64 `json:"p50"`
	P95    float64 `json:"p95"`
	Total  float64 `json:"total"`
}

// NewRecord condenses a game.
func NewRecord(k Key, p Played, err error) Record {
	r := Record{Key: k, Path: append(Path{}, p.Path...), Visited: p.Visited} // a path is never null in JSON
	r.CPU = spread(p.Spent, func(c Cost) time.Duration { return c.CPU })
	r.Wall = spread(p.Spent, func(c Cost) time.Duration { return c.Wall })
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func spread(spent []Cost, of func(Cost) time.Duration) Spread {
	if len(spent) == 0 {
		return Spread{}
	}
	list := make([]float64, len(spent))
	total := 0.0
	for i, c := range spent {
		list[i] = of(c).Seconds()
		total += list[i]
	}
	slices.Sort(list)
	last := float64(len(list) - 1)
	return Spread{Median: list[int(0.5*last)], P95: list[int(0.95*last)], Total: total}
}

// After is the loss of the recommendation at that time; see Path.After.
func (r Record) After(at float64) float64 { return r.Path.After(at) }

// Store is a file of records, one JSON object a line, that only grows. It may be
// used from several goroutines.
type Store struct {
	mu   sync.Mutex
	file *os.File
	have map[Key]bool
	all  []Record
}

// OpenStore reads what is there. An empty name makes a store in memory. A last
// line that was cut off, as a killed program leaves it, is dropped.
func OpenStore(name string) (*Store, error) {
	s := &Store{have: map[Key]bool{}}
	if name == "" {
		return s, nil
	}
	data, whole, err := s.read(name)
	if err != nil {
		return nil, err
	}
	if whole < len(data) {
		if err := os.Truncate(name, int64(whole)); err != nil {
			return nil, err
		}
	}
	s.file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return s, err
}

// read notes the records of a file, and says how much of it is whole lines.
func (s *Store) read(name string) (data []byte, whole int, err error) {
	data, err = os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	whole = bytes.LastIndexByte(data, '\n') + 1
	for line := range bytes.Lines(data[:whole]) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, 0, fmt.Errorf("results %s: %w; remove the line %.80s", name, err, line)
		}
		s.note(r)
	}
	return data, whole, nil
}

func (s *Store) note(r Record) {
	s.have[r.Key] = true
	s.all = append(s.all, r)
}

// Has says whether a game has been played.
func (s *Store) Has(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.have[k]
}

// Add appends a record.
func (s *Store) Add(r Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(r)
	if s.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(line, '\n'))
	return err
}

// Records are all that there are, in the order in which they came.
func (s *Store) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Close the file.
func (s *Store) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// ReadRecords reads several files, which stay as they are.
func ReadRecords(names []string) ([]Record, error) {
	var out []Record
	for _, name := range names {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there are no results in %s: %w", name, err)
		}
		s := &Store{have: map[Key]bool{}}
		if _, _, err := s.read(name); err != nil {
			return nil, err
		}
		out = append(out, s.all...)
	}
	return out, nil
}
