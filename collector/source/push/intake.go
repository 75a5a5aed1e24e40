package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

const (
	// maxBody bounds the body of one request, in bytes. MLflow's own limit for
	// a batch is the same.
	maxBody = 1 << 20
	// maxBodies bounds the large bodies that are held at the same time, in
	// bytes. Those of at most smallBody do not count, so that slow senders of
	// large ones do not hold up the others.
	maxBodies = 4 << 20
	smallBody = 64 << 10
	// maxWork bounds those that are decoded at the same time, in bytes: decoded
	// they take ten times as much.
	maxWork = 1 << 20
	// roomPatience bounds how long a request waits for room for its body.
	roomPatience = 10 * time.Second
	// maxNames bounds the names that were pushed and that were not asked for, and
	// maxName each of them, in bytes.
	maxNames = 100
	maxName  = 200
	// maxValueText bounds the text that is kept of one value, in bytes.
	maxValueText = 256
)

var (
	// errNoRoom says that too many large requests are being read.
	errNoRoom = errors.New("too much is sent at the same time: try again")
	// errTooLarge says that a body is over its limit.
	errTooLarge = errors.New("the body of the request is too large")
	// errTooMany says that one request has too many points.
	errTooMany = errors.New("too many points in one report")
)

// intake is what all protocols share: it reads bodies, and writes the points that
// are wanted into the journal.
type intake struct {
	journal *pushJournal
	metrics []string
	wanted  map[string]bool // nil means all
	others  names           // that were pushed and not asked for
	clock   source.Clock

	room *semaphore.Weighted // for bodies
	work *semaphore.Weighted // for decoding them
}

func newIntake(cfg Config) *intake {
	in := &intake{metrics: cfg.Metrics, clock: cfg.Clock, room: semaphore.NewWeighted(maxBodies), work: semaphore.NewWeighted(maxWork)}
	if len(cfg.Metrics) > 0 {
		in.wanted = map[string]bool{}
		for _, m := range cfg.Metrics {
			in.wanted[m] = true
		}
	}
	return in
}

// wants says whether the points of a metric are kept.
func (in *intake) wants(metric string) bool {
	wanted := metric != "" && (in.wanted == nil || in.wanted[metric])
	if !wanted {
		in.others.add(metric)
	}
	return wanted
}

// records are what is kept of samples. A time that does not fit, or is not stated, is
// that of arrival.
func (in *intake) records(samples []collector.Point) []collector.Record {
	now := in.clock.Stamp()
	records := make([]collector.Record, 0, len(samples))
	for _, s := range samples {
		if _, ok := collector.UnixNano(s.Time); !ok {
			s.Time = now
		}
		records = append(records, collector.RecordOf(s))
	}
	return records
}

// sampleOf reads a value that was sent as text, and the time of it; what cannot
// be read as a time is left out: the time of arrival stands in.
func sampleOf(metric, text, at string) collector.Point {
	s := collector.Point{Metric: metric, Step: collector.NoStep}
	s.Value, s.Text = collector.ParseValue(text, maxValueText)
	s.Time, _ = time.Parse(time.RFC3339Nano, at)
	return s
}

// body reads the body of a request. release must be called when it is not used
// any longer.
func (in *intake) body(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, release func(), err error) {
	vacate, err := in.enter(r, limit)
	if err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		err = in.work.Acquire(r.Context(), int64(len(body)))
	}
	if err != nil {
		vacate()
		if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
			err = fmt.Errorf("%w: it may have %d bytes; send it in parts, one request after the other", errTooLarge, over.Limit)
		}
		return nil, nil, err
	}
	return body, func() {
		in.work.Release(int64(len(body)))
		vacate()
	}, nil
}

// enter waits for room for the body of a request.
func (in *intake) enter(r *http.Request, limit int64) (vacate func(), err error) {
	need := limit
	if 0 <= r.ContentLength && r.ContentLength < limit {
		need = r.ContentLength
	}
	if need <= smallBody {
		return func() {}, nil // not even behind those that wait
	}
	ctx, cancel := context.WithTimeout(r.Context(), roomPatience)
	defer cancel()
	if err := in.room.Acquire(ctx, need); err != nil {
		return nil, errNoRoom
	}
	return func() { in.room.Release(need) }, nil
}

// names are a few names, each once.
type names struct {
	mu    sync.Mutex
	known []string
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != "" && len(name) <= maxName && len(n.known) < maxNames && !parse.IsStep(name) && !slices.Contains(n.known, name) {
		n.known = append(n.known, name)
	}
}

func (n *names) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.known)
}
