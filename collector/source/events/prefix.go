package events

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

const (
	// maxStrangers bounds the tags that are remembered because a missing metric
	// may be meant, and maxTags those that are named in an error message.
	maxStrangers = 1000
	maxTags      = 100
	maxTagName   = 200
)

// strangers are tags that are not wanted, seen while a metric is missing.
type strangers struct {
	places map[place]bool  // that a missing metric may be, as Katib sees it
	tags   map[string]bool // for an error message
}

func (s *strangers) add(n *places, run string, tag []byte) {
	if len(tag) > maxTagName {
		return
	}
	if s.tags == nil {
		s.places, s.tags = map[place]bool{}, map[string]bool{}
	}
	for i, metric := range n.metrics {
		if len(n.owners[i]) == 0 && len(s.places) < maxStrangers && katibMatches(metric, n.dir(run), string(tag)) {
			s.places[place{run, string(tag)}] = true
			break
		}
	}
	if len(s.tags) < maxTags {
		s.tags[string(tag)] = true
	}
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
func (r *dirRun) prefix() bool {
	var missing []string
	for i, metric := range r.cfg.Metrics {
		if len(r.places.owners[i]) > 0 {
			continue
		}
		found := r.katibPlaces(metric)
		if len(found) == 0 {
			missing = append(missing, metric)
			continue
		}
		others := ""
		if len(found) > 1 {
			others = ", not for " + source.Quoted(placeNames(found[1:]))
		}
		if !r.said.Tell(fmt.Errorf("no tag is named %s; %q is taken for it%s: name the metric exactly", metric, found[0], others)) ||
			!r.readAgain(i, found[0]) {
			return false
		}
	}
	if len(missing) == 0 {
		return true
	}
	there := slices.Sorted(maps.Keys(r.strangers.tags))
	for _, owners := range r.places.owners {
		there = append(there, placeNames(owners)...)
	}
	text := parse.NotFound(missing, there)
	if len(there) == 0 {
		text += ", nor any other scalar"
	}
	return r.said.Tell(&source.MissingError{Metrics: missing, Text: text})
}

// katibPlaces returns the places that Katib would take for a metric, the best
// first.
func (r *dirRun) katibPlaces(metric string) []place {
	var found []place
	for p := range r.strangers.places {
		if katibMatches(metric, r.places.dir(p.Run), p.Tag) {
			found = append(found, p)
		}
	}
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
func (r *dirRun) readAgain(metric int, p place) bool {
	wanted := parse.NewWanted([]string{p.Tag}, nil)
	for _, f := range r.files {
		if f.run.name == p.Run && f.off > f.passed && !r.readTag(f, metric, wanted) {
			return false
		}
	}
	return true
}

func (r *dirRun) readTag(f *eventFile, metric int, wanted *parse.Wanted) bool {
	file, err := source.Open(r.tree.Place(f.path))
	if err != nil {
		return r.trouble(f, err)
	}
	defer file.Close()
	again := *f
	again.source = f.source + "#" + r.cfg.Metrics[metric]
	again.fileSession = fileSession{session: f.session, last: -1}
	r.sessions.recall(&again)
	ok := true
	for at := f.passed; ok && at < f.off; {
		next, err := r.events.Read(io.NewSectionReader(file, 0, f.off), at, wanted, func(s parse.Scalar) bool {
			ok = s.Tag < 0 || r.point(&again, metric, &s, 0)
			return ok
		})
		if next == at {
			return ok && (err == nil || r.trouble(f, err))
		}
		at = next
	}
	return ok
}

func placeNames(places []place) []string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return names
}
