package source

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// maxStrangers bounds the tags that are remembered because a missing metric
	// may be meant, and maxTags those that are named in an error message.
	maxStrangers = 1000
	maxTags      = 100
	namedTags    = 6
	maxTagName   = 200
)

// stranger remembers a tag that is not wanted, while a metric is missing.
func (r *eventRun) stranger(tag []byte) {
	n := r.names
	if len(tag) > maxTagName {
		return
	}
	for i, metric := range n.metrics {
		if len(n.owners[i]) > 0 || !katibMatches(metric, n.dir(r.now.run.name), tag) {
			continue
		}
		if p := (place{r.now.run.name, string(tag)}); !n.strangers[p] && len(n.strangers) < maxStrangers {
			n.strangers[p] = true
		}
		break
	}
	if !n.tags[string(tag)] && len(n.tags) < maxTags {
		n.tags[string(tag)] = true
	}
}

// dir returns the path of a run's directory.
func (n *eventNames) dir(run string) string {
	if run == "" {
		return n.root
	}
	return n.root + "/" + run
}

// katibMatches is Katib's rule: the tag begins with what follows the last slash
// of the metric's name, and the path of its directory ends in what comes before.
func katibMatches(metric, dir string, tag []byte) bool {
	end, start := "", metric
	if i := strings.LastIndexByte(metric, '/'); i >= 0 {
		end, start = metric[:i], metric[i+1:]
	}
	return len(tag) >= len(start) && string(tag[:len(start)]) == start && strings.HasSuffix(dir, end)
}

// prefix reports the metrics that were found nowhere by Katib's rule, which can
// only be done when it is sure that nothing better comes. Katib takes all that
// matches for one curve. Here it is one tag of one run: the tag that differs
// from the name by a number, as TensorFlow 1 makes names unique, else the
// shortest, in the run that began first. The others are named in a warning.
func (r *eventRun) prefix() bool {
	var missing []string
	for i, metric := range r.cfg.Metrics {
		if len(r.names.owners[i]) > 0 {
			continue
		}
		found := r.katibPlaces(metric)
		if len(found) == 0 {
			missing = append(missing, metric)
			continue
		}
		others := ""
		if len(found) > 1 {
			others = fmt.Sprintf(", not for %s", quoted(placeNames(found[1:])))
		}
		if !r.trouble(fmt.Errorf("tfevent: no tag is named %s; %q is taken for it%s: name the metric exactly", metric, found[0], others)) ||
			!r.readAgain(i, found[0]) {
			return false
		}
	}
	return len(missing) == 0 || r.notFound(missing)
}

// katibPlaces returns the places that Katib would take for a metric, the best
// first.
func (r *eventRun) katibPlaces(metric string) []place {
	var found []place
	for p := range r.names.strangers {
		if katibMatches(metric, r.names.dir(p.Run), []byte(p.Tag)) {
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
func (r *eventRun) readAgain(metric int, p place) bool {
	wanted := parse.NewWanted([]string{p.Tag}, nil)
	for _, f := range r.files {
		if f.run.name == p.Run && f.off > f.passed && !r.readTag(f, metric, wanted) {
			return false
		}
	}
	return true
}

func (r *eventRun) readTag(f *eventFile, metric int, wanted *parse.Wanted) bool {
	file, err := openRegular(r.tree.place(f.path))
	if err != nil {
		return r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	defer file.Close()
	again := *f
	again.source, again.last, again.listed, again.given, again.decided = f.source+"#"+r.cfg.Metrics[metric], -1, false, nil, nil
	r.recall(&again)
	ok := true
	for at := f.passed; ok && at < f.off; {
		next, err := r.events.Read(io.NewSectionReader(file, 0, f.off), at, wanted, func(s parse.Scalar) bool {
			ok = s.Tag < 0 || r.point(&again, metric, &s, 0)
			return ok
		})
		if next == at {
			return ok && (err == nil || r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err)))
		}
		at = next
	}
	return ok
}

// notFound reports the metrics that are nowhere.
func (r *eventRun) notFound(metrics []string) bool {
	tags := make([]string, 0, len(r.names.tags)+len(r.names.metrics))
	for tag := range r.names.tags {
		tags = append(tags, tag)
	}
	for _, owners := range r.names.owners {
		tags = append(tags, placeNames(owners)...)
	}
	what := "the metric " + metrics[0] + " was not found"
	if len(metrics) > 1 {
		what = "the metrics " + strings.Join(metrics, ", ") + " were not found"
	}
	if len(tags) == 0 {
		return r.trouble(notFound(metrics, "tfevent: %s, nor any other scalar", what))
	}
	slices.Sort(tags)
	return r.trouble(notFound(metrics, "tfevent: %s; there is %s", what, quoted(tags)))
}

func placeNames(places []place) []string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return names
}

// quoted lists names, the first of them.
func quoted(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == namedTags {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}
