package scrape

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Limits of what is remembered of one page.
const (
	// maxSeries bounds the series that match one metric.
	maxSeries = 1000
	// maxPageErrors bounds the lines of one page that are reported.
	maxPageErrors = 3
)

// reading is one sample of a wanted metric, or of a step.
type reading struct {
	series string // name and labels
	labels string // "" without any
	value  float64
	text   string
	time   time.Time
}

// page is what one scrape found, and what all did.
type page struct {
	selectors []parse.Selector
	owners    map[string]string // metric -> the series that is read for it
	line      parse.Exposition

	names map[string][]int     // sample name -> selectors
	steps map[string]int       // sample name -> rank of a step
	found map[string][]reading // by metric
	paces map[string][]reading // by name of a step
	hints map[string]bool      // names that were seen
	errs  []error
	size  int64 // of the page, in bytes
	// broken counts the last pages that broke off, in a row.
	broken int
}

func newPage(selectors []parse.Selector) *page {
	p := &page{
		selectors: selectors, owners: map[string]string{}, names: map[string][]int{}, steps: map[string]int{},
		hints: map[string]bool{},
	}
	for i, s := range selectors {
		p.names[s.Name()] = append(p.names[s.Name()], i)
	}
	for i, name := range stepNames(selectors) {
		if _, wanted := p.names[name]; !wanted {
			p.steps[name] = i
		}
	}
	return p
}

// stepNames are the names under which a step is looked for, the best first.
func stepNames(selectors []parse.Selector) []string {
	prefixes := []string{""}
	for _, s := range selectors {
		name := s.Name()
		for i := range name {
			if i > 0 && (name[i] == '_' || name[i] == ':') && !slices.Contains(prefixes, name[:i+1]) {
				prefixes = append(prefixes, name[:i+1])
			}
		}
	}
	slices.SortStableFunc(prefixes, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	var names []string
	for _, step := range parse.StepNames() {
		for _, prefix := range prefixes {
			names = append(names, prefix+step, prefix+step+"_total")
		}
	}
	return names
}

// begin forgets the last scrape.
func (p *page) begin(openMetrics bool) {
	p.line.OpenMetrics = openMetrics
	p.found, p.paces, p.errs = map[string][]reading{}, map[string][]reading{}, nil
}

// take reads one line.
func (p *page) take(line []byte) {
	ok, err := p.line.Parse(line)
	if err != nil && len(p.errs) < maxPageErrors {
		p.errs = append(p.errs, fmt.Errorf("%.60q: %w", line[:min(len(line), 240)], err))
	}
	if !ok || err != nil {
		return
	}
	name := p.line.Name
	if _, is := p.steps[name]; is && len(p.paces[name]) < maxSeries {
		p.paces[name] = append(p.paces[name], p.reading())
	}
	if len(p.hints) < source.MaxNames {
		p.hints[name] = true
	}
	for _, i := range p.names[name] {
		s := p.selectors[i]
		if s.Matches(&p.line) && len(p.found[s.Metric]) < maxSeries {
			p.found[s.Metric] = append(p.found[s.Metric], p.reading())
		}
	}
}

// reading copies the sample of the present line.
func (p *page) reading() reading {
	slices.SortFunc(p.line.Labels, func(a, b parse.Label) int { return strings.Compare(a.Name, b.Name) })
	series := string(p.line.AppendSeries(nil))
	return reading{series, series[len(p.line.Name):], p.line.Value, p.line.Text(), p.line.Time}
}

// choose gives each metric that was found the series that is read for it, and
// says whether any of them is new. The choice is for good, so it is not made
// from a page that broke off, whose rest may have a better series: unless the
// one before broke off too, or it is the last.
func (p *page) choose(last bool) bool {
	if p.broken == 1 && !last {
		return false
	}
	chosen := false
	for _, s := range p.selectors {
		found := p.found[s.Metric]
		if _, owned := p.owners[s.Metric]; owned || len(found) == 0 {
			continue
		}
		first := slices.MinFunc(found, func(a, b reading) int {
			return cmp.Or(cmp.Compare(len(a.labels), 0)-cmp.Compare(len(b.labels), 0), cmp.Compare(a.labels, b.labels))
		})
		p.owners[s.Metric] = first.series
		chosen = true
	}
	return chosen
}

// read returns what was found of a metric, nil when nothing was, and a series
// of the same metric that is not read, if there is one.
func (p *page) read(metric string) (mine *reading, several string) {
	for i := range p.found[metric] {
		r := &p.found[metric][i]
		switch {
		case r.series == p.owners[metric]:
			mine = r // the last counts where a series stands there twice
		case several == "":
			several = r.series
		}
	}
	return mine, several
}

// step returns the step at which a reading was made.
func (p *page) step(r *reading) int64 {
	best, rank := collector.NoStep, len(p.steps)*2
	for _, name := range slices.Sorted(maps.Keys(p.paces)) {
		found := p.paces[name]
		if p.steps[name] >= rank || len(found) == 0 {
			continue
		}
		like := found[0]
		if i := slices.IndexFunc(found, func(f reading) bool { return f.labels == r.labels }); i >= 0 {
			like = found[i]
		}
		if step, ok := parse.Step(like.value); ok {
			best, rank = step, p.steps[name]
		}
	}
	return best
}

// notFound says of metrics that the endpoint never showed what it shows.
func (p *page) notFound(missing []string) string {
	for _, s := range p.selectors {
		if p.hints[s.Name()] && slices.Contains(missing, s.Metric) && s.Name() != s.Metric {
			return strings.Join(missing, ", ") + " was not found: " + s.Name() + " is there, with other labels"
		}
	}
	return parse.NotFound(missing, p.seen())
}

// seen are the names that the endpoint showed.
func (p *page) seen() []string { return slices.Sorted(maps.Keys(p.hints)) }
