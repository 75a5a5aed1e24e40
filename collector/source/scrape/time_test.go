package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// TestScrapeWaitsForItsEndpoint begins before there is an endpoint.
func TestScrapeWaitsForItsEndpoint(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tries, drain := 0, make(chan struct{})
	clock := source.Clock{Now: time.Now, After: func(time.Duration) <-chan time.Time {
		tries++
		if tries == 3 {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintln(w, "loss 1")
			}))
			if err := server.Listener.Close(); err != nil {
				t.Error(err)
			}
			server.Listener = listen(t, address)
			server.Start()
			t.Cleanup(server.Close)
		}
		if tries == 5 {
			close(drain)
		}
		return sourcetest.Quick().After(0)
	}}
	points, errs := scraped(t, Config{URL: "http://" + address, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
	if diff := cmp.Diff([]string{"loss=1 at -1"}, points); diff != "" || len(errs) > 0 {
		t.Errorf("points (-want +got):\n%s\nerrors %q", diff, errs)
	}
}

func TestScrapeOfNoProgramSaysSo(t *testing.T) {
	// No test is given port 1, as it may be one that was free a moment ago.
	_, errs := scraped(t, Config{URL: "http://127.0.0.1:1", Metrics: []string{"loss"}, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
	if len(errs) != 1 || !strings.Contains(errs[0], "never answered") || !strings.Contains(errs[0], "connection refused") {
		t.Errorf("errors %q, want one that says that nothing answered", errs)
	}
}

// TestScrapeReadsOnceMoreAtTheEnd holds that a value that is set just before the
// end is read where the endpoint still answers.
func TestScrapeReadsOnceMoreAtTheEnd(t *testing.T) {
	var value atomic.Int64
	value.Store(3)
	drain := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "loss", value.Load()) }))
	defer server.Close()
	clock := source.Clock{Now: time.Now, After: func(time.Duration) <-chan time.Time {
		value.Store(2)
		close(drain)
		return nil
	}}
	points, errs := scraped(t, Config{URL: server.URL, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
	if diff := cmp.Diff([]string{"loss=3 at -1", "loss=2 at -1"}, points); diff != "" || len(errs) > 0 {
		t.Errorf("points (-want +got):\n%s\nerrors %q", diff, errs)
	}
}

func TestScrapeTakesASmallPartOfTheTime(t *testing.T) {
	tests := map[string]struct{ took, want time.Duration }{
		"quick pages":      {time.Millisecond, 250 * time.Millisecond},
		"slow pages":       {100 * time.Millisecond, 900 * time.Millisecond},
		"very slow pages":  {5 * time.Second, 5 * time.Second},
		"a clock set back": {-time.Hour, 250 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pause(test.took); got != test.want {
				t.Errorf("pause %v, want %v", got, test.want)
			}
		})
	}
}

// TestScrapeLooksAgainSoonWithoutAnAnswer holds that only the endpoint's own
// time makes a pause longer: what the collector does meanwhile, on a busy
// machine, must not cost a short program its measurement.
func TestScrapeLooksAgainSoonWithoutAnAnswer(t *testing.T) {
	now, pauses, drain := time.Unix(0, 0), []time.Duration{}, make(chan struct{})
	clock := source.Clock{
		Now: func() time.Time { return now },
		After: func(d time.Duration) <-chan time.Time {
			if pauses = append(pauses, d); len(pauses) == 3 {
				close(drain)
			}
			return sourcetest.Quick().After(0)
		},
	}
	slow := func() error { now = now.Add(time.Second); return ErrNoListener }
	scraped(t, Config{URL: "http://127.0.0.1:1", Metrics: []string{"loss"}, Mine: slow, Drain: drain, Clock: clock})
	want := []time.Duration{interval, interval, interval}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got)\n%s", diff)
	}
}

func TestScrapeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		cancel()
		<-req.Context().Done() // never answers
	}))
	defer server.Close()
	src, err := New(Config{URL: server.URL, Metrics: []string{"loss"}, Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range src.Points(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v, want the context's error", last)
	}
}

func TestScrapeSaysWhatItDoesNotFindWhileTheProgramRuns(t *testing.T) {
	page := func(names string) scrapeAnswer {
		return text(strings.ReplaceAll(names, " ", " 1\n") + " 1\n")
	}
	e := serve(t, httptest.NewServer, page("accuracy"), page("accuracy"), page("accuracy"), page("accuracy"), page("accuracy acc"))
	now := time.Unix(1_700_000_000, 0)
	clock := source.Clock{Now: func() time.Time { return now }, After: func(time.Duration) <-chan time.Time {
		now = now.Add(time.Minute)
		return sourcetest.Quick().After(0)
	}}
	points, errs := scraped(t, Config{URL: e.URL, Metrics: []string{"acc"}, Drain: e.drain, Clock: clock})
	want := []string{"prometheus: " + e.URL + ": so far acc was not found: did you mean accuracy?; there is accuracy"}
	if diff := cmp.Diff(want, errs); diff != "" || len(points) != 1 {
		t.Errorf("points %v, errors (-want +got):\n%s", points, diff)
	}
}
