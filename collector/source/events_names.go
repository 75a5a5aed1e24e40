package source

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
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

// eventTable says which tags of a run are read and which metrics they may be.
// Runs whose tables are equal share one.
type eventTable struct {
	tags    []string
	metrics [][]candidate // by tag
	// wanted has the tags; curious, besides, reports the others.
	wanted, curious *parse.Wanted
}

// eventDirectory is a run.
type eventDirectory struct {
	name  string
	table *eventTable
}

// place is where a metric is found.
type place struct {
	Run string `json:"run"`
	Tag string `json:"tag"`
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

// eventNames finds the places of metrics.
type eventNames struct {
	root    string
	metrics []string
	runs    map[string]*eventDirectory
	tables  map[string]*eventTable
	// owners are the places of each metric, in the order in which they took
	// over. changes counts how often they changed.
	owners  [][]place
	missing int // metrics without a place
	changes int
	// replaced are the files that took the place of another, with the time in
	// which they began.
	replaced map[string]int64
	// curious is told of tags that nobody wants, while a metric is missing.
	curious   func(tag []byte)
	recorded  func(parse.Recorded) // is told of the program's own parameters, if set
	strangers map[place]bool       // that a missing metric may be, as Katib sees it
	rivals    []map[place]bool     // places of each metric that are left out
	tags      map[string]bool      // others, for an error message
}

func newEventNames(root string, metrics []string) *eventNames {
	return &eventNames{
		root: filepath.ToSlash(root), metrics: metrics, missing: len(metrics), changes: 1,
		runs: map[string]*eventDirectory{}, tables: map[string]*eventTable{},
		owners: make([][]place, len(metrics)), replaced: map[string]int64{},
		strangers: map[place]bool{}, tags: map[string]bool{}, rivals: make([]map[place]bool, len(metrics)),
	}
}

// maxRivals bounds the places that are counted because they were left out.
const maxRivals = 100

// settled reports whether every metric has a place.
func (n *eventNames) settled() bool { return n.missing == 0 }

// wanted returns what to read of a run.
func (n *eventNames) wanted(run *eventDirectory) *parse.Wanted {
	if n.settled() {
		return run.table.wanted
	}
	return run.table.curious
}

// run returns the run of a file.
func (n *eventNames) run(path string) *eventDirectory {
	name := ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		name = path[:i]
	}
	run := n.runs[name]
	if run == nil {
		run = &eventDirectory{name: strings.Clone(name)}
		run.table = n.table(run.name)
		n.runs[run.name] = run
	}
	return run
}

// table works out which tags of a run are which metrics.
func (n *eventNames) table(run string) *eventTable {
	dir := n.root + "/" + run
	if run == "" {
		dir = n.root
	}
	byTag := map[string][]candidate{}
	add := func(tag string, c candidate) {
		if !slices.ContainsFunc(byTag[tag], func(o candidate) bool { return o.metric == c.metric }) {
			byTag[tag] = append(byTag[tag], c)
		}
	}
	for i, metric := range n.metrics {
		if tag, ok := strings.CutPrefix(metric, run+"/"); ok && run != "" {
			add(tag, candidate{i, rankRun})
		}
		if run == "" {
			add(metric, candidate{i, rankRoot})
		}
		for at := range len(metric) {
			if metric[at] == '/' && at > 0 && at+1 < len(metric) && strings.HasSuffix(dir, "/"+metric[:at]) {
				add(metric[at+1:], candidate{i, rankSuffix})
			}
		}
		if run != "" {
			add(metric, candidate{i, rankAny})
		}
	}
	t := &eventTable{}
	for tag := range byTag {
		t.tags = append(t.tags, tag)
	}
	slices.Sort(t.tags)
	for _, tag := range t.tags {
		t.metrics = append(t.metrics, byTag[tag])
	}
	key := fmt.Sprintf("%q %v", t.tags, t.metrics)
	if known := n.tables[key]; known != nil {
		return known
	}
	t.wanted = parse.NewWanted(t.tags, nil)
	t.curious = parse.NewWanted(t.tags, func(tag []byte) { n.curious(tag) })
	if n.recorded != nil {
		t.wanted, t.curious = t.wanted.Recording(n.recorded), t.curious.Recording(n.recorded)
	}
	n.tables[key] = t
	return t
}

// offer is a place that a metric without one may have.
type offer struct {
	candidate
	place place
	file  *eventFile
}

// offer adds what a tag of a file may be.
func (n *eventNames) offer(offers []offer, f *eventFile, tag int) []offer {
	for _, c := range f.run.table.metrics[tag] {
		o := offer{c, place{f.run.name, f.run.table.tags[tag]}, f}
		if len(n.owners[c.metric]) == 0 && !slices.Contains(offers, o) {
			offers = append(offers, o)
		}
	}
	return offers
}

// accept gives each metric without a place the best that is offered, and reports
// whether there was any.
func (n *eventNames) accept(offers []offer) bool {
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.file.began.Compare(b.file.began),
			cmp.Compare(a.file.path, b.file.path), cmp.Compare(a.place.Tag, b.place.Tag))
	})
	for _, o := range offers {
		if len(n.owners[o.metric]) == 0 {
			n.own(o.metric, o.place)
		}
	}
	return len(offers) > 0
}

// own gives a metric a further place.
func (n *eventNames) own(metric int, p place) {
	if len(n.owners[metric]) == 0 {
		n.missing--
	}
	n.owners[metric] = append(n.owners[metric], p)
	n.changes++
}

// rank returns how well a metric's place fits.
func (n *eventNames) rank(metric int, p place) rank {
	run := n.runs[p.Run]
	if run == nil { // it is remembered, and its files are not there yet
		return rankAny
	}
	if tag := slices.Index(run.table.tags, p.Tag); tag >= 0 {
		for _, c := range run.table.metrics[tag] {
			if c.metric == metric {
				return c.rank
			}
		}
	}
	return rankAny
}

// claim decides which metrics a tag of a file is, when its first value is read.
func (r *eventRun) claim(f *eventFile, s *parse.Scalar) bool {
	here := place{f.run.name, f.run.table.tags[s.Tag]}
	mine := []int{}
	changed := false
	for _, c := range f.run.table.metrics[s.Tag] {
		owners := r.names.owners[c.metric]
		switch {
		case slices.Contains(owners, here):
		case len(owners) == 0:
			r.names.own(c.metric, here)
			changed = true
		case r.follows(f, c.metric, here):
			r.names.own(c.metric, here)
			changed = true
			if !r.trouble(fmt.Errorf("tfevent: the metric %s goes on as %q, which began after the last value of %q", r.cfg.Metrics[c.metric], here, owners[len(owners)-1])) {
				return false
			}
		case c.rank == rankAny && r.names.rank(c.metric, owners[0]) < rankAny:
			continue // a name that fits is no ambiguity
		default:
			if !r.ambiguous(c.metric, owners[len(owners)-1], here) {
				return false
			}
			continue
		}
		mine = append(mine, c.metric)
	}
	if changed {
		// The other files must ask again.
		f.mine, f.changes = make([][]int, len(f.run.table.tags)), r.names.changes
		if !r.saveState() {
			return false
		}
	}
	f.mine[s.Tag] = mine
	return true
}

// follows reports whether the run of a file took over from the last place of a
// metric.
func (r *eventRun) follows(f *eventFile, metric int, here place) bool {
	owners := r.names.owners[metric]
	last := owners[len(owners)-1]
	t := &r.sessions.tracks[metric]
	return last.Tag == here.Tag && last.Run != here.Run && t.seen && f.began.After(t.time) &&
		withoutDigits(last.Run) == withoutDigits(here.Run)
}

// withoutDigits puts one 0 for each number in a name.
func withoutDigits(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		digit := '0' <= name[i] && name[i] <= '9'
		switch {
		case !digit:
			b = append(b, name[i])
		case len(b) == 0 || b[len(b)-1] != '0':
			b = append(b, '0')
		}
	}
	return string(b)
}

// ambiguous reports that a metric is in two places. Further ones are counted.
func (r *eventRun) ambiguous(metric int, used, other place) bool {
	n := r.names
	if n.rivals[metric] == nil {
		n.rivals[metric] = map[place]bool{}
	}
	if n.rivals[metric][other] || len(n.rivals[metric]) == maxRivals {
		return true
	}
	n.rivals[metric][other] = true
	if len(n.rivals[metric]) > 1 {
		return true
	}
	return r.trouble(fmt.Errorf("tfevent: the metric %s is found as %q and as %q; the first is used: name the metric by its run and tag", r.cfg.Metrics[metric], used, other))
}
