// Package probe tries what the collector would read: it runs the collector's own
// sources over a file, a directory, an endpoint or the output of a program, and
// says what they found, what they could not read, and which names they saw that
// were not asked for.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// Kinds of what is probed, as the API names its collectors.
const (
	StdOut           = "StdOut"
	File             = "File"
	TensorFlowEvent  = "TensorFlowEvent"
	PrometheusMetric = "PrometheusMetric"
)

// Limits of what is kept for the report.
const (
	// MaxTroubles bounds the troubles that are kept; the others are counted.
	MaxTroubles = 20
	// maxNames bounds the names that are kept, and the metrics read when none
	// was asked for.
	maxNames = 1000
	// maxSearched bounds how much of a file is searched for names, in bytes, and
	// maxHeader the header of a table.
	maxSearched = 8 << 20
	maxHeader   = 1 << 20
	// maxNear bounds the names offered for one that was not found.
	maxNear = 3
)

// Number is a float64 that is written as JSON also when it is not finite: as
// "NaN", "+Inf" or "-Inf".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(nil, n.String()), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// String is the shortest form of the number.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// Metric is what was found of one metric.
type Metric struct {
	Name string `json:"name"`
	// Count is the number of points, NaNs that of those that are not a number.
	Count int `json:"count"`
	NaNs  int `json:"nans"`
	// First and Last are in the order of reading. Min and Max are nil when no
	// point is a number.
	First Number  `json:"first"`
	Last  Number  `json:"last"`
	Min   *Number `json:"min"`
	Max   *Number `json:"max"`
	// FirstStep and LastStep are the least and greatest step, nil when no point
	// has one. Stepless counts the points without.
	FirstStep *int64 `json:"firstStep"`
	LastStep  *int64 `json:"lastStep"`
	Stepless  int    `json:"stepless"`
	// Begin and End are the earliest and latest time that the source states, nil
	// when it states none.
	Begin *time.Time `json:"begin"`
	End   *time.Time `json:"end"`
	// Sources are where it was found, at most three.
	Sources []string `json:"sources"`
	// Purged counts the points of event files that count neither here nor in a
	// trial: those of an earlier start of the program, for steps at which a later
	// one began again, or that lie behind these.
	Purged int `json:"purged,omitempty"`
	// Late: a trial gets the points only when its program ends, because they are written
	// as `name: value` and name=value may still come. Hint says how to get them before.
	Late bool   `json:"late,omitempty"`
	Hint string `json:"hint,omitempty"`
}

// Missing is a metric that was asked for and not found.
type Missing struct {
	Name string `json:"name"`
	// Near are names that were seen and may be meant.
	Near []string `json:"near"`
	// Hint says what else may be the reason; empty when nothing is known.
	Hint string `json:"hint,omitempty"`
}

// Trouble is something that could not be read.
type Trouble struct {
	// Line is the number of the line, from 1; 0 when it is not known.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// Report is what a probe found.
type Report struct {
	// Kind, Path and Format are what was read, as the API names it. Path is a
	// file, a directory, an address, or the command line.
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	Format string `json:"format,omitempty"`
	// Metrics are in the order in which they were asked for, or seen.
	Metrics []Metric  `json:"metrics"`
	Missing []Missing `json:"missing"`
	// Unread are names that are written in a way that is not read, with a hint for
	// each, when nothing was asked for or found; at most 20, by name. The empty
	// name is the text as a whole.
	Unread []Missing `json:"unread,omitempty"`
	// Seen are names with numbers that were not asked for, in order of
	// appearance; at most 1000.
	Seen []string `json:"seen"`
	// Recorded are the parameters that the program recorded for TensorBoard, at
	// most 1000.
	Recorded []Recorded `json:"recorded,omitempty"`
	// Troubles are the first 20; MoreTroubles counts the others.
	Troubles     []Trouble `json:"troubles"`
	MoreTroubles int       `json:"moreTroubles,omitempty"`
	// PassedOver is what else a directory holds.
	PassedOver []Passed `json:"passedOver,omitempty"`
	// Bytes were read in Seconds, without the search for names. For a program,
	// Seconds is how long it ran.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// ExitCode is that of the program, 128 and the signal when one ended it; nil
	// when none was run.
	ExitCode *int `json:"exitCode,omitempty"`
	// Interrupted: a signal to this process ended the program.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Target is what is probed. A Target's methods are called in the order in which
// they stand here.
type Target interface {
	// Names returns the names with numbers that there are, in order of
	// appearance, whether or not they are wanted, and hints for those that
	// would be found in another way than it is configured. The hint under the
	// empty name is for those that have none.
	Names(ctx context.Context) (names []string, hints map[string]string, err error)
	// Source makes the collector's own source of the metrics. Its clock must
	// tell the zero time, so that points without a time have none.
	Source(metrics []string) (collector.Source, error)
	// Describe fills in what was read, and what is known of it now.
	Describe(r *Report)
}

// Run reads a target. With no metrics, all that have a name in it are read.
func Run(ctx context.Context, t Target, metrics []string) (*Report, error) {
	if l, ok := t.(interface{ remove() }); ok {
		defer l.remove()
	}
	if slices.Contains(metrics, "") {
		return nil, errors.New("a metric has an empty name")
	}
	names, hints, err := t.Names(ctx)
	if err != nil {
		return nil, err
	}
	names = names[:min(len(names), maxNames)]
	r := &Report{Metrics: []Metric{}, Missing: []Missing{}, Seen: []string{}, Troubles: []Trouble{}}
	asked := metrics
	if len(asked) == 0 {
		asked = slices.Clone(names)
		for _, name := range slices.Sorted(maps.Keys(hints)) { // what is found of them is Late
			if name != "" && len(asked) < maxNames {
				asked = append(asked, name)
			}
		}
	}
	if len(asked) > 0 {
		if err := r.read(ctx, t, asked, hints); err != nil {
			return nil, err
		}
	}
	for _, n := range names {
		if !slices.Contains(asked, n) {
			r.Seen = append(r.Seen, n)
		}
	}
	if len(metrics) > 0 {
		r.missing(asked, names, hints)
	}
	if len(metrics) == 0 && len(r.Metrics) == 0 {
		r.unread(hints)
	}
	t.Describe(r)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("stopped: %w", ctx.Err())
	}
	return r, nil
}

// read runs the source to its end. hints say how names are written.
func (r *Report) read(ctx context.Context, t Target, asked []string, hints map[string]string) error {
	from, err := t.Source(asked)
	if err != nil {
		return err
	}
	found := findings{}
	began := time.Now()
	if events, ok := from.(*events.Dir); ok {
		found = r.sessions(ctx, events)
	} else {
		for p, err := range from.Points(ctx) {
			if ctx.Err() != nil {
				break
			}
			if err != nil {
				r.trouble(err)
				continue
			}
			found.of(p.Metric).add(p)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	for _, name := range asked {
		if m := found[name]; m != nil {
			if m.Late {
				m.Hint = cmp.Or(hints[name], "print "+name+"=...")
			}
			r.Metrics = append(r.Metrics, *m)
			delete(found, name) // asked for twice
		}
	}
	return nil
}

// findings are metrics by name.
type findings map[string]*Metric

func (f findings) of(name string) *Metric {
	m := f[name]
	if m == nil {
		m = &Metric{Name: name}
		f[name] = m
	}
	return m
}

func (r *Report) trouble(err error) {
	if missing := (*source.MissingError)(nil); errors.As(err, &missing) {
		return // they are listed, with hints
	}
	if len(r.Troubles) == MaxTroubles {
		r.MoreTroubles++
		return
	}
	r.Troubles = append(r.Troubles, Trouble{Text: sourceName.ReplaceAllString(err.Error(), "")})
}

// sourceName is what begins the errors of a source.
var sourceName = regexp.MustCompile(`^(?:tfevent|prometheus|stdout|wandb|csv): `)

// missing lists what was asked for and not found.
func (r *Report) missing(asked, names []string, hints map[string]string) {
	for i, name := range asked {
		found := slices.ContainsFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
		if found || slices.Contains(asked[:i], name) {
			continue
		}
		near := parse.Nearest(name, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name }), maxNear)
		if near == nil {
			near = []string{}
		}
		r.Missing = append(r.Missing, Missing{Name: name, Near: near, Hint: cmp.Or(hints[name], hints[""])})
	}
}

// unread lists the hints.
func (r *Report) unread(hints map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(hints)) {
		if len(r.Unread) < MaxTroubles {
			r.Unread = append(r.Unread, Missing{Name: name, Near: []string{}, Hint: hints[name]})
		}
	}
}

// add counts one point.
func (m *Metric) add(p collector.Point) {
	v := Number(p.Value)
	if m.Count++; m.Count == 1 {
		m.First = v
	}
	m.Late = strings.HasSuffix(p.Source, collector.ItemSource)
	if m.Last = v; math.IsNaN(p.Value) {
		m.NaNs++
	} else {
		widen(&m.Min, &m.Max, v, cmp.Compare)
	}
	if p.Step == collector.NoStep {
		m.Stepless++
	} else {
		widen(&m.FirstStep, &m.LastStep, p.Step, cmp.Compare)
	}
	if !p.Time.IsZero() {
		widen(&m.Begin, &m.End, p.Time, time.Time.Compare)
	}
	if len(m.Sources) < 3 && !slices.Contains(m.Sources, p.Source) {
		m.Sources = append(m.Sources, p.Source)
	}
}

// widen takes v into the range from least to most.
func widen[T any](least, most **T, v T, compare func(a, b T) int) {
	if *least == nil || compare(v, **least) < 0 {
		*least = &v
	}
	if *most == nil || compare(v, **most) > 0 {
		*most = &v
	}
}

// ErrNothing says that there is nothing to probe at a path.
var ErrNothing = errors.New("there is nothing to read")
