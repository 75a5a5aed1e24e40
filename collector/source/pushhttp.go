package source

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
	"syscall"

	"github.com/vernier-ml/vernier/collector/parse"
)

// maxKey bounds the header Idempotency-Key, in bytes.
const maxKey = 256

// Paths of a Push, under the token where there is one.
const (
	PathReport  = "/report"
	pathTrainer = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"
)

func (p *Push) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathReport, p.serveReport)
	mux.HandleFunc(PathReport, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send metrics by POST, as a JSON object", http.StatusMethodNotAllowed)
	})
	mux.HandleFunc("POST "+pathTrainer, p.serveTrainer)
	p.addMLflow(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("nothing is served at %s: send metrics to %s", r.URL.Path, PathReport), http.StatusNotFound)
	})
	return mux
}

// guard lets only requests pass whose path begins with the token.
func (p *Push) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(token), []byte(p.cfg.Token)) != 1 {
			http.Error(w, "the path does not begin with the token of this trial: take the address from the environment of this process", http.StatusForbidden)
			return
		}
		if r.URL.Path == "/"+token {
			r.URL.Path += "/"
		}
		http.StripPrefix("/"+token, h).ServeHTTP(w, r)
	})
}

// serveReport takes a JSON object, or a list of them.
func (p *Push) serveReport(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		http.Error(w, fmt.Sprintf("the Idempotency-Key has %d bytes; at most %d are taken", len(key), maxKey), http.StatusBadRequest)
		return
	}
	body, release, err := p.body(w, r, maxBody)
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	samples, err := p.parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(samples) > maxReportPoints {
		http.Error(w, fmt.Sprintf("%d points in one report; send at most %d", len(samples), maxReportPoints), http.StatusRequestEntityTooLarge)
		return
	}
	e := entry{Points: p.entryPoints(samples)}
	if key != "" {
		e.Key = digestOf(key)
	}
	again := false
	err = p.journal.append(func() (entry, bool) {
		again = key != "" && p.state.keys.has(e.Key)
		return e, !again && (len(e.Points) > 0 || key != "")
	}, p.state.apply)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"points": len(samples), "duplicate": again})
}

func (p *Push) entryPoints(samples []parse.Sample) []entryPoint {
	now := p.cfg.Clock.Now()
	points := make([]entryPoint, 0, len(samples))
	for _, s := range samples {
		points = append(points, newEntryPoint(s, now))
	}
	return points
}

func (p *Push) parse(body []byte) ([]parse.Sample, error) {
	parser, ok := p.parsers.Get().(*parse.JSON)
	if !ok {
		parser = parse.NewAnyJSON()
		if len(p.cfg.Metrics) > 0 {
			var err error
			if parser, err = parse.NewJSON(p.cfg.Metrics); err != nil {
				return nil, err
			}
		}
	}
	defer p.parsers.Put(parser)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("the report is empty: send a JSON object")
	}
	samples, err := parser.ParseAll(nil, body)
	// A report is most often of one metric or of all: one with less than that may
	// name what is missing.
	if err == nil && len(samples) < len(p.wanted) {
		p.strange(body)
	}
	return samples, err
}

// maxStrange bounds the reports that are searched for names that nobody asked
// for.
const maxStrange = 1000

// strange remembers the names in a report.
func (p *Push) strange(body []byte) {
	if p.searched.Add(1) > maxStrange || len(body) > smallBody {
		return
	}
	samples, err := parse.NewAnyJSON().ParseAll(nil, body)
	if err != nil {
		return // the same as before
	}
	for _, s := range samples {
		p.wants(s.Metric)
	}
}

// errNoRoom says that too many large requests are being read.
var errNoRoom = errors.New("too much is sent at the same time: try again")

// errTooLarge says that a body is over its limit.
var errTooLarge = errors.New("the body of the request is too large")

// body reads the body of a request. release must be called when it is not used
// any longer.
func (p *Push) body(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error) {
	vacate, err := p.enter(r, limit)
	if err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		err = p.work.Acquire(r.Context(), int64(len(body)))
	}
	if err != nil {
		vacate()
		if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
			err = fmt.Errorf("%w: it may have %d bytes; send it in parts, one request after the other", errTooLarge, over.Limit)
		}
		return nil, nil, err
	}
	return body, func() {
		p.work.Release(int64(len(body)))
		vacate()
	}, nil
}

// enter waits for room for the body of a request.
func (p *Push) enter(r *http.Request, limit int64) (vacate func(), err error) {
	need := limit
	if 0 <= r.ContentLength && r.ContentLength < limit {
		need = r.ContentLength
	}
	if need <= smallBody {
		return func() {}, nil // not even behind those that wait
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomPatience)
	defer cancel()
	if err := p.room.Acquire(ctx, need); err != nil {
		return nil, errNoRoom
	}
	return func() { p.room.Release(need) }, nil
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
	case errors.Is(err, errJournalLine), errors.Is(err, errTooLarge):
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
