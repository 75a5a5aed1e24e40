package file

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// maxLine bounds a line, in bytes. Only the beginning of a longer one is read.
const maxLine = 1 << 20

// maxKeptSamples bounds the room for samples that is kept from one line to the
// next.
const maxKeptSamples = 4096

// lines cuts a stream of bytes into lines and yields their points. A line ends
// with a line feed or a carriage return, so that each state of a progress bar
// is a line.
type lines struct {
	parser parse.Line
	source string
	base   int64 // added to every place to give the Seq
	now    func() time.Time
	yield  source.Yield

	at      time.Time // of the bytes that were fed last
	partial []byte    // the line that has no end yet; partial[0] is at start
	start   int64
	cutting bool // the rest of a line that is too long is being dropped
	samples []collector.Point
	items   *items       // nil: there are none, or all metrics were seen
	names   *parse.Names // nil: what is missing is not said
	asked   []string     // without repeats
	missing []string     // of them
	any     bool         // something was fed
	kept    bool         // by a StreamWriter, which writes noEnd
	wait    source.Wait

	echo io.Writer // gets what is fed; nil: nothing does

	skipper *parse.Text // the parser, if it can pass over many lines at once
	dense   bool        // the last line had a sample, or nothing could be passed over
}

// maxNamesSearched bounds, in bytes, how much of a text is searched for metrics that
// were not requested, and maxNames how many are remembered: the first lines usually
// name them all.
const (
	maxNamesSearched = 128 << 10
	maxNames         = 100
)

// want sets which metrics are wanted. If the configuration says so, items are read, and end
// says what was not found.
func (l *lines) want(cfg Config) (err error) {
	l.asked = source.NotFound(cfg.Metrics, func(string) bool { return false })
	l.missing = slices.Clone(l.asked)
	if cfg.Format == parse.FormatText && len(cfg.Filters) == 0 {
		l.items = newItems(l.source, l.asked)
	}
	if cfg.Explain {
		l.names, err = parse.NewNames(parse.NamesConfig{Format: cfg.Format, Filters: cfg.Filters, MaxBytes: maxNamesSearched, MaxNames: maxNames})
	}
	return err
}

// newLines begins the lines of a source.
func newLines(parser parse.Line, name string, now func() time.Time, yield source.Yield) *lines {
	parser.Reset()
	l := &lines{parser: parser, source: name, now: now, yield: yield}
	l.skipper, _ = parser.(*parse.Text)
	return l
}

// feed takes the bytes at a place, counted from base. Calls without a reset
// between them are of bytes that follow each other. It returns false when the consumer has had enough.
func (l *lines) feed(at int64, b []byte) bool {
	ok := l.cut(at, b)
	l.any = l.any || len(b) > 0
	if l.names != nil && len(l.missing) > 0 {
		_, _ = l.names.Write(b) // never fails
		ok = ok && l.notYet()
	}
	for l.echo != nil && len(b) > 0 {
		b = b[zeros(b):]
		n := next(b, 0, 0)
		_, _ = l.echo.Write(b[:n]) // a log that is gone is no reason not to measure
		b = b[n:]
	}
	return ok
}

// cut yields the points of the lines that end in the bytes.
func (l *lines) cut(at int64, b []byte) bool {
	l.at = l.now()
	// Where the next line feed and carriage return are: each is looked for once,
	// and not in each line.
	lf, cr := next(b, '\n', 0), next(b, '\r', 0)
	for i := 0; i < len(b); {
		if n := l.skip(b[i:cr]); n > 0 {
			if i += n; i > lf {
				lf = next(b, '\n', i)
			}
			continue
		}
		end := min(lf, cr)
		if end == len(b) {
			return l.keep(at+int64(i), b[i:])
		}
		if end == lf {
			lf = next(b, '\n', end+1)
		} else {
			cr = next(b, '\r', end+1)
		}
		if !l.complete(at+int64(i), b[i:end]) {
			return false
		}
		i = end + 1
	}
	return true
}

// skip returns how much of b, which begins with a line or goes on with one, is
// passed over because nothing is in it.
func (l *lines) skip(b []byte) int {
	if l.skipper == nil || l.items != nil || l.dense || l.cutting || len(l.partial) > 0 {
		return 0
	}
	l.dense = true // until a line has no sample
	return l.skipper.Skip(b)
}

// next returns the place of the first c from a place on, or len(b).
func next(b []byte, c byte, from int) int {
	if k := bytes.IndexByte(b[from:], c); k >= 0 {
		return from + k
	}
	return len(b)
}

// zeros returns how many zeros b begins with.
func zeros(b []byte) int {
	n := 0
	for n+8 <= len(b) && binary.NativeEndian.Uint64(b[n:]) == 0 {
		n += 8
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

// complete takes the last bytes of a line.
func (l *lines) complete(at int64, b []byte) bool {
	if l.cutting {
		l.cutting = false
		return true
	}
	if len(l.partial) == 0 {
		return l.line(at, b)
	}
	if !l.keep(at, b) {
		return false
	}
	cut := l.cutting
	l.cutting = false
	return cut || l.flush()
}

// keep takes bytes of a line whose end has not been seen.
func (l *lines) keep(at int64, b []byte) bool {
	if l.cutting {
		return true
	}
	if len(l.partial) == 0 {
		text := b[zeros(b):] // a hole of any size must not fill the line
		l.start = at + int64(len(b)-len(text))
		b = text
	}
	room := maxLine - len(l.partial)
	l.partial = append(l.partial, b[:min(room, len(b))]...)
	if len(b) <= room {
		return true
	}
	note := fmt.Errorf("%s: the line at byte %d is longer than %d bytes; only its beginning was read", l.source, l.start, maxLine)
	if !l.yield(collector.Point{}, note) {
		return false
	}
	// What stands at the cut may be half a number.
	l.partial = l.partial[:bytes.LastIndexAny(l.partial, " \t,;")+1]
	ok := l.flush()
	l.cutting = true
	return ok
}

// flush reads the line that has no end as it is.
func (l *lines) flush() bool {
	if len(l.partial) == 0 {
		return true
	}
	ok := l.line(l.start, l.partial)
	l.reset()
	return ok
}

// noEnd stands before the line feed of a line that had none, in the output that a
// StreamWriter keeps of a program that did not end well.
const noEnd = "\x00\x00\x00"

// last reads the line that has no end, once nothing follows it any more.
func (l *lines) last() bool {
	ok := l.tail(l.start, l.partial, false)
	l.reset()
	return ok
}

// tail reads one line without an end. killed: the program, or what kept its output, did
// not end well.
func (l *lines) tail(at int64, b []byte, killed bool) bool {
	text := b[zeros(b):]
	if len(text) == 0 {
		return true
	}
	at += int64(len(b) - len(text))
	torn, err := l.parseTail(l.parser, text, killed)
	ok := l.report(at, err)
	if l.items != nil {
		also, _ := l.parseTail(l.items.parser, text, killed)
		torn = cmp.Or(torn, also)
		l.hold(at)
	}
	if ok && torn != "" {
		return l.yield(collector.Point{}, fmt.Errorf("%s: the output ends at byte %d in the middle of a number; this value of %s was left out",
			l.source, at+int64(len(text)), torn))
	}
	return ok
}

// parseTail parses a line without an end into samples, and returns the metric of the first
// value that was left out because it may be torn.
func (l *lines) parseTail(parser parse.Line, text []byte, killed bool) (torn string, err error) {
	l.samples, err = parser.Parse(l.samples[:0], text)
	var longer []collector.Point
	if len(l.samples) > 0 {
		longer, _ = parser.Parse(nil, append(text[:len(text):len(text)], '9'))
	}
	if killed || bytes.IndexByte([]byte(".eE+-"), text[len(text)-1]) >= 0 { // no whole number ends so
		torn = l.dropTorn(longer)
	}
	return torn, err
}

// dropTorn takes away the samples of a last line whose number may go on, and
// returns the metric of the first: those that one more digit at the end of the line
// would change, which longer has.
func (l *lines) dropTorn(longer []collector.Point) (metric string) {
	l.samples = slices.DeleteFunc(l.samples, func(s collector.Point) bool {
		k := slices.IndexFunc(longer, func(x collector.Point) bool { return x.Seq == s.Seq && x.Metric == s.Metric })
		torn := k >= 0 && (math.Float64bits(longer[k].Value) != math.Float64bits(s.Value) || longer[k].Text != s.Text || longer[k].Step != s.Step)
		if torn && metric == "" {
			metric = s.Metric
		}
		return torn
	})
	return metric
}

// reset forgets the line that has no end.
func (l *lines) reset() {
	l.partial, l.cutting = l.partial[:0], false
	if cap(l.partial) > readSize {
		l.partial = nil
	}
}

// notYet yields what was not found so far, when other names have been there for a while.
func (l *lines) notYet() bool {
	late := l.items.found()
	if len(l.names.Names())+len(l.names.Hints())+len(late) == 0 || !l.wait.Due(l.at, len(l.missing)) {
		return true
	}
	var texts []string
	if never := source.NotFound(l.missing, func(m string) bool { return slices.Contains(late, m) }); len(never) > 0 {
		texts = append(texts, l.names.Missing(l.asked, never))
	}
	for _, m := range late {
		how := cmp.Or(l.names.Hints()[m], "print "+m+"=...")
		texts = append(texts, fmt.Sprintf("%s is read when the program ends; to see it before: %s", m, how))
	}
	text := "so far " + strings.Join(texts, "; ")
	return l.yield(collector.Point{}, &source.MissingError{Yet: true, Metrics: slices.Clone(l.missing), Text: text})
}

// end yields the items of what was not found, and what was never found.
func (l *lines) end() bool {
	for _, p := range l.items.all() {
		l.seen(p.Metric)
		if !l.yield(p, nil) {
			return false
		}
	}
	if l.names == nil || len(l.missing) == 0 || !l.any {
		return true
	}
	l.names.End()
	return l.yield(collector.Point{}, &source.MissingError{Metrics: l.missing, Text: l.names.Missing(l.asked, l.missing)})
}

// line yields the points of one line.
func (l *lines) line(at int64, b []byte) bool {
	if text, torn := bytes.CutSuffix(b, []byte(noEnd)); torn && l.kept {
		return l.tail(at, text, true)
	}
	// A file that was truncated under a writer that does not append begins
	// with a hole.
	text := b[zeros(b):]
	at += int64(len(b) - len(text))
	var err error
	l.samples, err = l.parser.Parse(l.samples[:0], text)
	ok := l.report(at, err)
	if l.items != nil {
		l.samples, _ = l.items.parser.Parse(l.samples[:0], text)
		l.hold(at)
	}
	return ok
}

// report yields the samples of a line at a place.
func (l *lines) report(at int64, err error) bool {
	l.dense = len(l.samples) > 0
	for i := range l.samples {
		p := &l.samples[i]
		l.seen(p.Metric)
		l.place(p, l.source, at)
		if !l.yield(*p, nil) {
			return false
		}
	}
	if cap(l.samples) > maxKeptSamples {
		l.samples = nil
	}
	if err != nil {
		return l.yield(collector.Point{}, fmt.Errorf("%s: the line at byte %d: %w", l.source, at, err))
	}
	return true
}

// place completes a sample of a line at a place.
func (l *lines) place(p *collector.Point, name string, at int64) {
	p.Source, p.Seq = name, l.base+at+p.Seq
	if p.Time.IsZero() {
		p.Time = l.at
	}
}

// seen notes that a metric was found.
func (l *lines) seen(metric string) {
	if len(l.missing) == 0 {
		return
	}
	l.missing = slices.DeleteFunc(l.missing, func(m string) bool { return m == metric })
	if l.items == nil {
		return
	}
	if delete(l.items.held, metric); len(l.missing) == 0 {
		l.items = nil
	}
}
