package file

import (
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// maxNamesSearched bounds how much of a text is searched for names that nobody
// asked for, in bytes, and maxNames how many are remembered: the first lines name
// all that there is.
const (
	maxNamesSearched = 128 << 10
	maxNames         = 100
)

// search looks for the metrics that are still missing. It costs nothing any more
// once all were found. A nil search looks for nothing.
type search struct {
	metrics []string // without repeats
	missing map[string]bool
	names   *parse.Names
	any     bool // something was written
}

func newSearch(cfg Config) (*search, error) {
	names, err := parse.NewNames(parse.NamesConfig{
		Format: cfg.Format, Filters: cfg.Filters, MaxBytes: maxNamesSearched, MaxNames: maxNames})
	if err != nil {
		return nil, err
	}
	s := &search{missing: map[string]bool{}, names: names}
	for _, m := range cfg.Metrics {
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

// end returns a source.MissingError, or nil when nothing is missing.
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
	return &source.MissingError{Metrics: missing, Text: s.names.Missing(s.metrics, missing)}
}
