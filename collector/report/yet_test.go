package report_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source"
)

// late does not find loss until it is told to go on, and then until drain closes.
type late struct{ goOn, drain <-chan struct{} }

func (s late) Points(context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		missing := &source.MissingError{Yet: true, Metrics: []string{"loss"}, Text: "so far loss was not found; there is lr"}
		if !yield(collector.Point{}, missing) {
			return
		}
		<-s.goOn
		if yield(numbers{source: "stdout"}.point(0), nil) {
			<-s.drain
		}
	}
}

// wantNote waits until the service was told a note.
func (s *service) wantNote(t *testing.T, want string) {
	t.Helper()
	for {
		states, err := s.store.Attempts(t.Context(), trial.UID)
		if err != nil {
			t.Fatal(err)
		}
		if len(states) == 1 && states[0].Note == want && !states[0].Final {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("attempts %+v, want the note %q", states, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestWhatIsNotFoundYetIsToldUntilItComes(t *testing.T) {
	s := newService(t, nil)
	goOn, drain := make(chan struct{}), make(chan struct{})
	cfg := s.config(t, "", numbers{})
	cfg.Metrics, cfg.Drain = []string{"loss"}, drain
	cfg.Sources = func(map[string]int64) ([]collector.Source, error) { return []collector.Source{late{goOn, drain}}, nil }
	type outcome struct {
		note string
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		summary, err := report.NewClient(cfg).Run(t.Context())
		ended <- outcome{summary.Note, err}
	}()
	s.wantNote(t, "so far loss was not found; there is lr")
	close(goOn)
	s.wantNote(t, "")
	close(drain)
	if got := <-ended; got != (outcome{}) {
		t.Errorf("it ended with %+v", got)
	}
}
