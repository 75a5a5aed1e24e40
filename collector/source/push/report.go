package push

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// PathReport takes reports, under the token where there is one.
const PathReport = "/report"

const (
	// maxKey bounds the header Idempotency-Key, in bytes.
	maxKey = 256
	// maxStrange bounds the reports that are searched for names that were not asked
	// for.
	maxStrange = 1000
)

// routes are what is served beside Katib's report_metrics.
func (h *handlers) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+PathReport, h.report)
	mux.HandleFunc(PathReport, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send metrics by POST, as a JSON object", http.StatusMethodNotAllowed)
	})
	mux.Handle("POST "+pathTrainer, h.trainer)
	h.mlflow.serveOn(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("nothing is served at %s: send metrics to %s", r.URL.Path, PathReport), http.StatusNotFound)
	})
	return mux
}

// guard lets only requests pass whose path begins with the token.
func guard(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			http.Error(w, "the path does not begin with the token of this trial: take the address from the environment of this process", http.StatusForbidden)
			return
		}
		if r.URL.Path == "/"+given {
			r.URL.Path += "/"
		}
		http.StripPrefix("/"+given, h).ServeHTTP(w, r)
	})
}

// reports takes JSON objects, or lists of them.
type reports struct {
	in       *intake
	keys     *window      // of requests with a key; guarded by the journal's lock
	searched atomic.Int64 // reports that were searched for names
}

func newReports(in *intake) *reports { return &reports{in: in, keys: newWindow()} }

func (s *reports) apply(e entry) {
	if e.Key != "" {
		s.keys.add(e.Key)
	}
}

// ServeHTTP implements http.Handler.
func (s *reports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		http.Error(w, fmt.Sprintf("the Idempotency-Key has %d bytes; at most %d are taken", len(key), maxKey), http.StatusBadRequest)
		return
	}
	body, release, err := s.in.body(w, r, maxBody)
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	samples, err := s.parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(samples) > maxReportPoints {
		refuse(w, fmt.Errorf("%w: %d; send at most %d", errTooMany, len(samples), maxReportPoints))
		return
	}
	e := entry{Points: s.in.records(samples)}
	if key != "" {
		e.Key = digestOf(key)
	}
	again := false
	err = s.in.journal.append(func() (entry, bool) {
		again = key != "" && s.keys.has(e.Key)
		return e, !again && (len(e.Points) > 0 || key != "")
	})
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"points": len(samples), "duplicate": again})
}

func (s *reports) parse(body []byte) ([]collector.Point, error) {
	parser := parse.NewAnyJSON()
	if len(s.in.metrics) > 0 {
		parser = parse.NewJSON(s.in.metrics)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("the report is empty: send a JSON object")
	}
	samples, err := parser.ParseAll(nil, body)
	// A report is most often of one metric or of all: one with less than that may
	// name what is missing.
	if err == nil && len(samples) < len(s.in.wanted) && len(body) <= smallBody && s.searched.Add(1) <= maxStrange {
		others, _ := parse.NewAnyJSON().ParseAll(nil, body) // it was parsed a moment ago
		for _, o := range others {
			s.in.wants(o.Metric)
		}
	}
	return samples, err
}

// statusOf is the status for a request that was not taken.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errJournalClosed):
		return http.StatusGone
	case errors.Is(err, errJournalFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return http.StatusInsufficientStorage
	case errors.Is(err, errNoRoom):
		return http.StatusServiceUnavailable
	case errors.Is(err, errJournalLine), errors.Is(err, errTooLarge), errors.Is(err, errTooMany):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return http.StatusBadRequest // the client went away
	}
	return http.StatusInternalServerError
}

// refuse says why a request was not taken.
func refuse(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, err.Error(), status)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away will ask again
}
