// Package scrape reads metrics from the endpoint of a Prometheus client library.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Config describes a Source.
type Config struct {
	// URL is the endpoint, http or https. A certificate is not verified, as in
	// the kubelet's probes: the endpoint is the pod's own.
	URL string
	// Header is sent with each request.
	Header http.Header
	// Metrics are the wanted metrics, each a name or a selector such as
	// loss{split="test"}; see parse.Selector.
	Metrics []string
	// LastPatience is how long the scrape after Drain may take. Default: 2 s, since
	// the program has ended; at most 10 s.
	LastPatience time.Duration
	// State is a file in which the source remembers which series it reads for
	// each metric. It must outlive the process. Empty: not remembered.
	State string
	// Last are the last points that an earlier collector recorded, by metric:
	// the first scrape records only what has changed since.
	Last map[string]collector.Point
	// Mine says whether the program that listens at the endpoint's port is the
	// measured one; see OwnListener. Nil: it is.
	Mine func() error
	// Drain is closed when the program has ended. What the endpoint then still
	// answers is read a last time.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Source reads metrics from the endpoint of a Prometheus client library.
//
// A metric that has been 0 since it was first seen may not have been set yet. It is
// recorded when it changes, when its step has changed twice, or at the end.
//
// A value is recorded when it, the step, or the timestamp that the endpoint
// gives it differs from the one recorded last. So a gauge that stands still
// makes one point, however often it is scraped.
//
// A metric is the samples of its name; a histogram is its _sum, _count and
// _bucket. When several series match, the one without labels is read, else the
// first by its labels; that is reported once, and the choice is kept.
//
// The step is the value of a metric that is named global_step, step, iteration
// or epoch (the first of these that is there); also with "_total" at the end,
// and with the beginning of a wanted metric's name in front: for train_loss,
// train_epoch too. Where it has labels, the series with those of the metric is
// taken, else the first.
//
// An endpoint that is not up yet is waited for. One that is gone may come back;
// what was set after the last scrape is then lost.
//
// Points cannot be read again. Seq is a counter from 0: give the points to
// something that keeps them.
type Source struct {
	cfg       Config
	selectors []parse.Selector
}

var _ collector.Source = (*Source)(nil)

const (
	// interval is the time between two scrapes. It is longer where an answer takes
	// long: the endpoint is busy with scrapes for one part in scrapeShare of the time
	// at most, unless it would have to be left alone for more than maxInterval.
	interval    = 250 * time.Millisecond
	maxInterval = 5 * time.Second
	scrapeShare = 10
)

// New returns a source named "prometheus:" and the URL.
func New(cfg Config) (*Source, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("the endpoint's address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the endpoint's address %q must be http://host:port/path or https://host:port/path", cfg.URL)
	}
	if len(cfg.Metrics) == 0 {
		return nil, errors.New("a scrape needs at least one metric")
	}
	s := &Source{cfg: cfg}
	for _, m := range cfg.Metrics {
		selector, err := parse.NewSelector(m)
		if err != nil {
			return nil, err
		}
		s.selectors = append(s.selectors, selector)
	}
	s.cfg.Clock = cfg.Clock.OrReal()
	return s, nil
}

// Points implements collector.Source.
func (s *Source) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		r := &run{
			cfg: s.cfg, yield: yield, page: newPage(s.selectors), client: newClient(),
			last: maps.Clone(s.cfg.Last), zeros: map[string]zero{}, found: map[string]bool{}, said: source.Troubles{Prefix: "prometheus", Yield: yield},
		}
		if r.last == nil {
			r.last = map[string]collector.Point{}
		}
		defer r.client.CloseIdleConnections()
		if r.load() {
			r.run(ctx)
		}
	}
}

// run is one run of a Source's Points.
type run struct {
	cfg    Config
	yield  source.Yield
	client *http.Client
	page   *page
	seq    int64
	last   map[string]collector.Point // recorded, by metric
	zeros  map[string]zero            // held back, by metric
	found  map[string]bool            // metrics that were seen
	said   source.Troubles
	wait   source.Wait

	took     time.Duration // that the endpoint needed for its last answer
	answered bool
	refusal  error // the last reason for which there was no answer
}

// run scrapes until the source is drained, or ctx ends.
func (r *run) run(ctx context.Context) {
	for {
		last := source.Closed(r.cfg.Drain)
		if !r.scrape(ctx, last) {
			return
		}
		if ctx.Err() != nil {
			r.yield(collector.Point{}, ctx.Err())
			return
		}
		if last {
			r.finish()
			return
		}
		select {
		case <-ctx.Done():
		case <-r.cfg.Drain:
		case <-r.cfg.Clock.After(pause(r.took)):
		}
	}
}

// pause is the time until the next scrape, when the last answer took some time.
func pause(took time.Duration) time.Duration {
	return max(interval, min(took*(scrapeShare-1), maxInterval))
}

// scrape reads the endpoint once.
func (r *run) scrape(ctx context.Context, last bool) bool {
	r.took = 0
	if r.cfg.Mine != nil {
		if err := r.cfg.Mine(); err != nil {
			r.refusal = err
			return errors.Is(err, ErrNoListener) || r.said.Tell(err)
		}
	}
	at := r.cfg.Clock.Now()
	err := r.fetch(ctx, last)
	var refused *unreachableError
	switch {
	case ctx.Err() != nil:
		return true
	case errors.As(err, &refused): // not up yet, or gone
		r.refusal = refused.err
		// What answers next is a program that was started again.
		clear(r.last)
	case err != nil && !r.said.Tell(err):
		return false
	default:
		r.answered, r.took = true, r.cfg.Clock.Now().Sub(at)
	}
	for _, err := range r.page.errs {
		if !r.said.Tell(err) {
			return false
		}
	}
	return r.record(last) && r.notYet()
}

// record yields what has changed.
func (r *run) record(last bool) bool {
	if r.page.choose(last) {
		// Before anything of them is yielded.
		if err := source.SaveState(r.cfg.State, r.page.owners); err != nil && !r.said.Tell(fmt.Errorf("remembering which series are read: %w", err)) {
			return false
		}
	}
	for _, metric := range r.cfg.Metrics {
		reading, several := r.page.read(metric)
		if reading == nil {
			continue
		}
		r.found[metric] = true
		if several != "" && !r.said.Tell(fmt.Errorf("the metric %s is several series; %s is read: name the metric by its labels, as %s", metric, reading.series, several)) {
			return false
		}
		p := collector.Point{
			Metric: metric, Value: reading.value, Text: reading.text, Step: r.page.step(reading), Time: reading.time, Source: r.name(),
		}
		if r.unset(p) && !last || r.unchanged(p) {
			continue
		}
		if p.Time.IsZero() {
			p.Time = r.cfg.Clock.Stamp()
		}
		if !r.put(p) {
			return false
		}
	}
	return true
}

// put yields a point.
func (r *run) put(p collector.Point) bool {
	delete(r.zeros, p.Metric)
	p.Seq = r.seq
	r.last[p.Metric] = p
	r.seq++
	return r.yield(p, nil)
}

// zero is a metric that has been 0 since it was first seen.
type zero struct {
	point collector.Point
	steps int // how often its step has changed
}

// unset reports whether a reading is of a metric that may never have been set: a
// gauge of a client library is 0 until then. It is held back as long as it is 0,
// until the step has changed twice: a program may set its step at the beginning of
// an epoch, and the metric at its end.
func (r *run) unset(p collector.Point) bool {
	if _, known := r.last[p.Metric]; known || p.Value != 0 || !p.Time.IsZero() {
		return false
	}
	z, held := r.zeros[p.Metric]
	if held && p.Step != z.point.Step {
		z.steps++
	}
	z.point = p
	r.zeros[p.Metric] = z
	return z.steps < 2
}

func (r *run) name() string { return "prometheus:" + r.cfg.URL }

// unchanged compares a reading with the point recorded last. Its time is zero
// where the endpoint gives none.
func (r *run) unchanged(p collector.Point) bool {
	last, known := r.last[p.Metric]
	same := p.Value == last.Value || math.IsNaN(p.Value) && math.IsNaN(last.Value)
	return known && same && p.Step == last.Step && (p.Time.IsZero() || p.Time.Equal(last.Time))
}

// finish says what was never found.
func (r *run) finish() {
	for _, metric := range slices.Sorted(maps.Keys(r.zeros)) { // the endpoint went before the last scrape
		z := r.zeros[metric]
		if z.point.Time.IsZero() {
			z.point.Time = r.cfg.Clock.Stamp()
		}
		if !r.put(z.point) {
			return
		}
	}
	if !r.answered && len(r.cfg.Last) == 0 {
		r.said.Tell(fmt.Errorf("%s never answered: %w", r.cfg.URL, r.refusal))
		return
	}
	if missing := r.missing(); len(missing) > 0 {
		r.said.Tell(&source.MissingError{Metrics: missing, Text: r.cfg.URL + ": " + r.page.notFound(missing)})
	}
}

// missing are the metrics that the endpoint did not show.
func (r *run) missing() []string {
	return source.NotFound(r.cfg.Metrics, func(m string) bool { return r.found[m] || r.cfg.Last[m].Metric != "" })
}

// notYet says what was not found so far, when there have been other metrics for a while.
func (r *run) notYet() bool {
	missing := r.missing()
	if len(r.page.hints) == 0 || !r.wait.Due(r.cfg.Clock.Now(), len(missing)) {
		return true
	}
	return r.said.Tell(&source.MissingError{Yet: true, Metrics: missing, Text: r.cfg.URL + ": so far " + r.page.notFound(missing)})
}

// load reads which series were chosen before.
func (r *run) load() bool {
	if err := source.LoadState(r.cfg.State, &r.page.owners); err != nil {
		r.page.owners = map[string]string{}
		return r.said.Tell(fmt.Errorf("the state of an earlier collector is lost, another series may be read: %w", err))
	}
	return true
}
