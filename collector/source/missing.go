package source

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// maxNamesSearched bounds how much of a text is searched for names that
	// nobody asked for, in bytes: the first lines name all that there is.
	maxNamesSearched = 1 << 20
	// maxNames bounds the names that are remembered.
	maxNames = 100
)

// MissingError says which metrics were asked for and never found, and what there
// is instead.
type MissingError struct {
	// Metrics are those that were not found.
	Metrics []string
	// Text is the whole message, one sentence or more.
	Text string
}

// Error implements error.
func (e *MissingError) Error() string { return e.Text }

// Missing returns the metrics that were not found.
func (e *MissingError) Missing() []string { return e.Metrics }

// notFound is what a source says of metrics that it never found: all of them at
// once, since few such messages are kept.
func notFound(metrics []string, format string, args ...any) error {
	return &MissingError{Metrics: metrics, Text: fmt.Sprintf(format, args...)}
}

// Wanted is what was asked for in lines of text. It is for sources that shall say
// what was never found, with a MissingError at their end.
type Wanted struct {
	Format  string
	Metrics []string
	Filters []string
}

// search looks for the metrics that are still missing. It costs nothing any more
// once all were found.
type search struct {
	metrics []string // without repeats
	missing map[string]bool
	names   *parse.Names
	any     bool // something was written
}

// newSearch returns nil for nil.
func newSearch(w *Wanted) (*search, error) {
	if w == nil {
		return nil, nil
	}
	names, err := parse.NewNames(parse.NamesConfig{
		Format: w.Format, Filters: w.Filters, MaxBytes: maxNamesSearched, MaxNames: maxNames})
	if err != nil {
		return nil, err
	}
	s := &search{missing: map[string]bool{}, names: names}
	for _, m := range w.Metrics {
		if !s.missing[m] {
			s.missing[m] = true
			s.metrics = append(s.metrics, m)
		}
	}
	return s, nil
}

// found takes note of a metric.
func (s *search) found(metric string) {
	if s != nil && len(s.missing) > 0 {
		delete(s.missing, metric)
	}
}

// text takes the next bytes, unless nothing is missing.
func (s *search) text(b []byte) {
	if s == nil {
		return
	}
	s.any = s.any || len(b) > 0
	if len(s.missing) > 0 {
		_, _ = s.names.Write(b) // never fails
	}
}

// end returns a MissingError, or nil when nothing is missing.
func (s *search) end() error {
	if s == nil || len(s.missing) == 0 || !s.any {
		return nil
	}
	s.names.End()
	var missing []string
	for _, m := range s.metrics {
		if s.missing[m] {
			missing = append(missing, m)
		}
	}
	return &MissingError{Metrics: missing, Text: s.names.Missing(s.metrics, missing)}
}

// strangers are names that were pushed and that nobody asked for.
type strangers struct {
	mu    sync.Mutex
	names []string
}

func (s *strangers) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" && len(name) <= maxStrangerName && len(s.names) < maxNames && !parse.IsStep(name) && !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

// maxStrangerName bounds a name that is remembered, in bytes.
const maxStrangerName = 200

func (s *strangers) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}
