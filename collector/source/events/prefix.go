package events

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

const (
	// maxPlaces bounds the tags that may be a missing metric, and those that may not;
	// maxTags are named in an error message.
	maxPlaces  = 10_000
	maxTags    = 100
	maxTagName = 200
)

// scalars returns the places of the scalars that were read past: those that may be one
// of the metrics, and others.
func (r *dirRun) scalars(ctx context.Context, metrics []string) []place {
	found, others := map[place]bool{}, map[place]bool{}
	for _, f := range r.files {
		dir := r.places.dir(f.run.name)
		wanted := parse.NewWanted(nil, func(tag []byte) {
			if len(tag) > maxTagName {
				return
			}
			p, into := place{Run: f.run.name, Tag: string(tag)}, others
			if slices.ContainsFunc(metrics, func(m string) bool { return katibMatches(m, dir, p.Tag) }) {
				into = found
			}
			if len(into) < maxPlaces {
				into[p] = true
			}
		})
		// What is wrong with the file was said when it was read.
		_ = r.again(ctx, f, wanted, func(parse.Scalar) bool { return true })
	}
	maps.Copy(found, others)
	return slices.Collect(maps.Keys(found))
}

// again reads once more what was read of a file.
func (r *dirRun) again(ctx context.Context, f *eventFile, wanted *parse.Wanted, emit func(parse.Scalar) bool) error {
	file, err := source.Open(r.tree.Place(f.path))
	if err != nil {
		return err
	}
	defer file.Close()
	more := true
	for at := f.passed; more && at < f.off && ctx.Err() == nil; {
		next, err := r.events.Read(io.NewSectionReader(file, 0, f.off), at, wanted, func(s parse.Scalar) bool {
			more = emit(s)
			return more
		})
		if next == at {
			return err
		}
		at = next
	}
	return nil
}

// katibMatches is Katib's rule: the tag begins with what follows the last slash
// of the metric's name, and the path of its directory ends in what comes before.
func katibMatches(metric, dir, tag string) bool {
	end, start := "", metric
	if i := strings.LastIndexByte(metric, '/'); i >= 0 {
		end, start = metric[:i], metric[i+1:]
	}
	return strings.HasPrefix(tag, start) && strings.HasSuffix(dir, end)
}

// prefix reports the metrics that were found nowhere by Katib's rule, which can
// only be done when it is sure that nothing better comes. Katib takes all that
// matches for one curve. Here it is one tag of one run: the tag that differs
// from the name by a number, as TensorFlow 1 makes names unique, else the
// shortest, in the run that began first. The others are named in a warning.
func (r *dirRun) prefix(ctx context.Context) bool {
	lost := r.lost()
	if len(lost) == 0 {
		return true
	}
	tags := r.scalars(ctx, lost)
	var missing []string
	for i, metric := range r.cfg.Metrics {
		if ctx.Err() != nil {
			return true
		}
		if len(r.places.Places[metric]) > 0 {
			continue
		}
		found := r.katibPlaces(metric, tags)
		if len(found) == 0 {
			missing = append(missing, metric)
			continue
		}
		others := ""
		if len(found) > 1 {
			others = ", not for " + quoted(found[1:])
		}
		if !r.said.Tell(fmt.Errorf("no tag is named %s; %q is taken for it%s: name the metric exactly", metric, found[0], others)) ||
			!r.readAgain(ctx, i, found[0]) {
			return false
		}
	}
	if len(missing) == 0 {
		return true
	}
	text := notFound(missing, tags)
	if len(tags) == 0 {
		text += ", nor any other scalar"
	}
	return r.said.Tell(&source.MissingError{Metrics: missing, Text: text})
}

// lost are the metrics that no tag is named.
func (r *dirRun) lost() []string {
	return slices.DeleteFunc(slices.Clone(r.cfg.Metrics), func(m string) bool { return len(r.places.Places[m]) > 0 })
}

func notFound(missing []string, tags []place) string {
	names := map[string]bool{}
	for _, p := range tags {
		names[p.Tag] = true
	}
	there := slices.Sorted(maps.Keys(names))
	return parse.NotFound(missing, there[:min(len(there), maxTags)])
}

// notYet reports the metrics that were not found so far, when the program has written for a
// while, and again when less is missing. The files are read again for it once.
func (r *dirRun) notYet(ctx context.Context, now time.Time) bool {
	lost := r.lost()
	if !r.any || !r.wait.Due(now, len(lost)) {
		return true
	}
	if r.tags == nil {
		r.tags = append([]place{}, r.scalars(ctx, lost)...)
	}
	missing := slices.DeleteFunc(lost, func(m string) bool { return len(r.katibPlaces(m, r.tags)) > 0 })
	if len(missing) == 0 || len(r.tags) == 0 {
		return true
	}
	return r.said.Tell(&source.MissingError{Yet: true, Metrics: missing, Text: "so far " + notFound(missing, r.tags)})
}

// katibPlaces returns the places that Katib would read for a metric, the best
// first.
func (r *dirRun) katibPlaces(metric string, tags []place) []place {
	found := slices.DeleteFunc(slices.Clone(tags), func(p place) bool { return !katibMatches(metric, r.places.dir(p.Run), p.Tag) })
	base := metric[strings.LastIndexByte(metric, '/')+1:]
	began := map[string]int64{}
	for _, f := range r.files {
		if b, ok := began[f.run.name]; !ok || f.began.UnixNano() < b {
			began[f.run.name] = f.began.UnixNano()
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(unlike(a.Tag, base), unlike(b.Tag, base)), cmp.Compare(len(a.Tag), len(b.Tag)),
			cmp.Compare(began[a.Run], began[b.Run]), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Tag, b.Tag))
	})
	return found
}

// unlike is 0 for a tag that is the name, or the name with a number.
func unlike(tag, base string) int {
	rest := tag[len(base):]
	if rest == "" || rest[0] == '_' && len(rest) > 1 && strings.Trim(rest[1:], "0123456789") == "" {
		return 0
	}
	return 1
}

// readAgain yields a place's values as points of a metric. They have sources of
// their own, since their files were read before.
func (r *dirRun) readAgain(ctx context.Context, metric int, p place) bool {
	wanted := parse.NewWanted([]string{p.Tag}, nil)
	ok := true
	for _, f := range r.files {
		if f.run.name != p.Run || f.off <= f.passed {
			continue
		}
		named := *f
		named.source = f.source + "#" + r.cfg.Metrics[metric]
		named.fileSession = fileSession{session: f.session, last: -1}
		r.sessions.recall(&named)
		err := r.again(ctx, f, wanted, func(s parse.Scalar) bool {
			ok = s.Tag < 0 || r.point(&named, metric, &s, 0)
			return ok
		})
		if !ok || err != nil && !r.trouble(f, err) {
			return false
		}
	}
	return true
}

// quoted lists places, the first six of them.
func quoted(places []place) string {
	const most = 6
	var names []string
	for _, p := range places[:min(len(places), most)] {
		names = append(names, strconv.Quote(p.String()))
	}
	said := strings.Join(names, ", ")
	if left := len(places) - most; left > 0 {
		said += fmt.Sprintf(" and %d more", left)
	}
	return said
}
