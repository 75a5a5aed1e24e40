package events

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// rank says how well a place fits the name of a metric; less is better.
type rank uint8

const (
	rankRun    rank = iota // the run and the tag are the name
	rankRoot               // the tag is the name, in the directory itself
	rankSuffix             // the end of the run's path and the tag are the name
	rankAny                // the tag is the name, in some run
)

// candidate is a metric that a tag may be.
type candidate struct {
	metric int
	rank   rank
}

// run is a directory with event files.
type run struct {
	name    string
	tags    []string
	metrics [][]candidate // that they may be, by tag
	wanted  *parse.Wanted // the tags
}

// place is where a metric is found.
type place struct {
	Run  string `json:"run"`
	Tag  string `json:"tag"`
	Rank rank   `json:"rank,omitempty"`
}

// String is the name that says the place: "<run>/<tag>", or the tag.
func (p place) String() string {
	switch {
	case p.Run != "":
		return p.Run + "/" + p.Tag
	case strings.Contains(p.Tag, "/"):
		return "./" + p.Tag // not in a run
	}
	return p.Tag
}

// places finds where the metrics are.
type places struct {
	root    string
	metrics []string
	state   string // where they are remembered
	said    *source.Troubles
	runs    map[string]*run
	// changes counts how often the places of a metric changed.
	changes int
	placesState
	rivals map[string]bool // metrics that were found in a further place

	recorded func(parse.Recorded) // is told of the program's own parameters, if set
}

func newPlaces(cfg Config, said *source.Troubles) *places {
	return &places{
		root: filepath.ToSlash(cfg.Dir), metrics: cfg.Metrics, state: cfg.State, said: said, changes: 1,
		runs: map[string]*run{}, rivals: map[string]bool{}, placesState: placesState{Places: map[string][]place{}, Replaced: map[string]int64{}},
	}
}

// placesState is what is remembered of places.
type placesState struct {
	// Places of each metric, in the order in which they took over.
	Places map[string][]place `json:"places"`
	// Replaced files, with the times in which those began that took their places,
	// as Unix nanoseconds.
	Replaced map[string]int64 `json:"replaced,omitempty"`
}

// load reads what was remembered. What cannot be read counts as nothing.
func (n *places) load() (ok bool) {
	var s placesState
	if err := source.LoadState(n.state, &s); err != nil {
		return n.said.Tell(fmt.Errorf("the state of an earlier collector is lost, metrics that are in several runs may be mixed: %w", err))
	}
	maps.Copy(n.Places, s.Places)
	maps.Copy(n.Replaced, s.Replaced)
	return true
}

// save remembers the places before anything is reported from them. When that
// fails, only a restart suffers.
func (n *places) save() (ok bool) {
	err := source.SaveState(n.state, n.placesState)
	return err == nil || n.said.Tell(fmt.Errorf("remembering the places of the metrics: %w", err))
}

// replace notes that another file took the place of one.
func (n *places) replace(path string, began time.Time) (ok bool) {
	n.Replaced[path] = began.UnixNano()
	return n.save()
}

// settled reports whether every metric has a place.
func (n *places) settled() bool {
	return !slices.ContainsFunc(n.metrics, func(m string) bool { return len(n.Places[m]) == 0 })
}

// dir returns the path of a run's directory.
func (n *places) dir(run string) string {
	if run == "" {
		return n.root
	}
	return n.root + "/" + run
}

// run returns the run of a file.
func (n *places) run(path string) *run {
	name := ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		name = path[:i]
	}
	if n.runs[name] == nil {
		name = strings.Clone(name)
		n.runs[name] = n.newRun(name)
	}
	return n.runs[name]
}

// newRun works out which tags of a run are which metrics.
func (n *places) newRun(name string) *run {
	byTag := map[string][]candidate{}
	add := func(tag string, c candidate) {
		if !slices.ContainsFunc(byTag[tag], func(o candidate) bool { return o.metric == c.metric }) {
			byTag[tag] = append(byTag[tag], c)
		}
	}
	for i, metric := range n.metrics {
		if tag, ok := strings.CutPrefix(metric, name+"/"); ok && name != "" {
			add(tag, candidate{i, rankRun})
		}
		if name == "" {
			add(metric, candidate{i, rankRoot})
		}
		for at := range len(metric) {
			if metric[at] == '/' && at > 0 && at+1 < len(metric) && strings.HasSuffix(n.dir(name), "/"+metric[:at]) {
				add(metric[at+1:], candidate{i, rankSuffix})
			}
		}
		if name != "" {
			add(metric, candidate{i, rankAny})
		}
	}
	tags := slices.Sorted(maps.Keys(byTag))
	r := &run{name: name, tags: tags, wanted: parse.NewWanted(tags, nil)}
	for _, tag := range r.tags {
		r.metrics = append(r.metrics, byTag[tag])
	}
	if n.recorded != nil {
		r.wanted = r.wanted.Recording(n.recorded)
	}
	return r
}

// offer is a place that a metric without one may have.
type offer struct {
	candidate
	place place
	file  *eventFile
}

// offer adds what a tag of a file may be.
func (n *places) offer(offers []offer, f *eventFile, tag int) []offer {
	for _, c := range f.run.metrics[tag] {
		o := offer{c, place{f.run.name, f.run.tags[tag], c.rank}, f}
		if len(n.Places[n.metrics[c.metric]]) == 0 && !slices.Contains(offers, o) {
			offers = append(offers, o)
		}
	}
	return offers
}

// accept gives each metric without a place the best that is offered.
func (n *places) accept(offers []offer) (ok bool) {
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.file.began.Compare(b.file.began),
			cmp.Compare(a.file.path, b.file.path), cmp.Compare(a.place.Tag, b.place.Tag))
	})
	for _, o := range offers {
		if metric := n.metrics[o.metric]; len(n.Places[metric]) == 0 {
			n.own(metric, o.place)
		}
	}
	return len(offers) == 0 || n.save()
}

// own gives a metric a further place.
func (n *places) own(metric string, p place) {
	n.Places[metric] = append(n.Places[metric], p)
	n.changes++
}

// claim decides which metrics a tag of a file is, when its first value is read.
// newest is the time of a metric's newest value.
func (n *places) claim(f *eventFile, tag int, newest func(metric int) (at time.Time, seen bool)) bool {
	mine := []int{}
	changes := n.changes
	for _, c := range f.run.metrics[tag] {
		here := place{f.run.name, f.run.tags[tag], c.rank}
		metric := n.metrics[c.metric]
		owners := n.Places[metric]
		at, seen := newest(c.metric)
		switch {
		case slices.Contains(owners, here):
		case len(owners) == 0:
			n.own(metric, here)
		case seen && f.began.After(at) && follows(owners[len(owners)-1], here):
			n.own(metric, here)
			if !n.said.Tell(fmt.Errorf("the metric %s goes on as %q, which began after the last value of %q", metric, here, owners[len(owners)-1])) {
				return false
			}
		case c.rank == rankAny && owners[0].Rank < rankAny:
			continue // a name that fits is no ambiguity
		default:
			if !n.rivals[metric] && !n.said.Tell(fmt.Errorf("the metric %s is found as %q and as %q; the first is used: name the metric by its run and tag", metric, owners[len(owners)-1], here)) {
				return false
			}
			n.rivals[metric] = true
			continue
		}
		mine = append(mine, c.metric)
	}
	if n.changes != changes {
		// The other files must ask again.
		f.mine, f.changes = make([][]int, len(f.run.tags)), n.changes
		if !n.save() {
			return false
		}
	}
	f.mine[tag] = mine
	return true
}

// follows reports whether a place may take over from another.
func follows(last, here place) bool {
	return last.Tag == here.Tag && last.Run != here.Run && last.Run != "" && here.Run != "" &&
		number.ReplaceAllString(last.Run, "") == number.ReplaceAllString(here.Run, "")
}

// number is one in the name of a run, which the first may lack: Ultralytics goes on from
// train to train2.
var number = regexp.MustCompile(`[-_]?[0-9]+`)
