package population

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// pbt is population-based training (Jaderberg et al., "Population based
// training of neural networks", 2017). A trial trains one member of the
// population for one generation, and goes on from the checkpoint of the trial
// that Meta "parent" names. A member whose result is among the worst of its
// generation goes on from the checkpoint of one of the best, with parameters
// that are changed a little; all others go on from their own, unchanged.
//
// Members do not wait for each other: one goes on as soon as half of the
// population has ended its generation, and is compared with the latest result
// of those that have not. A trial that failed is repeated from the same parent,
// and its member is replaced when it fails again and again. When there are
// several objectives, the first one counts; what violates a constraint ranks
// below what does not.
type pbt struct {
	space   suggest.Space
	seeding propose.Seeding
	reader  *history.Reader
	name    string
	populationSettings

	// explore gives parameters to the trial with the given number, which goes on
	// from the donor's checkpoint.
	explore func(x exploration) (suggest.Point, string, error)
}

// populationSettings are what pbt and pb2 have in common.
type populationSettings struct {
	size        int     // members; default 20
	quantile    float64 // fraction of worst, and of best members; default 0.25
	interval    float64 // Resource of a trial; default 0
	generations int     // after which a member has ended; default 0, no limit
	failures    int     // of a generation after which a member is replaced; default 2
}

// exploration is a question for parameters.
type exploration struct {
	ctx        context.Context
	rows       []*history.Row // of the study
	population *population
	seed       uint64
	number     int
	donor      *interval
}

const (
	trialDir        = "suggestion_trial_dir"
	nPopulation     = "n_population"
	truncation      = "truncation_threshold"
	resampling      = "resample_probability"
	intervalSetting = "interval"
	nGenerations    = "n_generations"
	maxFailures     = "max_failures"
)

var _ suggest.Algorithm = (*pbt)(nil)

// PBT is the registration of the algorithm.
func PBT() propose.Registration {
	return propose.Registration{
		Name: "pbt",
		Summary: "Population-based training: trains many models at once, replaces the worst by copies of the best and changes their parameters on the way. " +
			"For schedules, such as of a learning rate; the training must write and read checkpoints.",
		New: suggest.Reading(newPBT),
		Settings: populationSettingsDoc(propose.Setting{
			Name: resampling, Default: "0.25",
			Help: "Probability, from 0 to 1, with which a member that explores draws a parameter anew instead of changing it a little.",
		}),
		Adaptive:       true,
		FirstObjective: true,
		Repeats:        true,
	}
}

// populationSettingsDoc are the settings of populationSettings and another one,
// sorted.
func populationSettingsDoc(own ...propose.Setting) []propose.Setting {
	doc := []propose.Setting{
		{Name: intervalSetting, Default: "0: what the trial itself takes for a whole", Help: "How much each trial trains (epochs or steps) before members are compared, at least 0. The trial is told as its resource."},
		{Name: maxFailures, Default: "2", Help: "A member is replaced when so many trials of one generation failed in a row, a whole number of at least 1. Until then the same trial is repeated."},
		{Name: nGenerations, Default: "0: no limit", Help: "After how many trials a member has ended, a whole number of at least 0."},
		{Name: nPopulation, Default: "20", Help: "Members of the population, a whole number from 2 to 10000."},
		propose.RandomStateSetting(),
	}
	doc = append(doc, own...)
	return append(doc,
		propose.Setting{Name: trialDir, Default: "none", Help: "Where trials find their checkpoints, an absolute path. In an Experiment it gives each trial a directory there."},
		propose.Setting{Name: truncation, Default: "0.25", Help: "Fraction of the population that is replaced in each generation, from 0 to 1; as many are copied. Never more than half."},
	)
}

func readPopulation(r *suggest.SettingsReader) populationSettings {
	p := populationSettings{
		size:        int(r.Int(nPopulation, 20, suggest.Range{Min: 2, Max: 10000})),
		quantile:    r.Float(truncation, 0.25, suggest.Range{Min: 0, Max: 1}),
		interval:    r.Float(intervalSetting, 0, suggest.Range{Min: 0, Max: 1e15}),
		generations: int(r.Int(nGenerations, 0, suggest.Range{Min: 0, Max: 1e9})),
		failures:    int(r.Int(maxFailures, 2, suggest.Range{Min: 1, Max: 1e9})),
	}
	if dir := r.Text(trialDir, "/"); !strings.HasPrefix(dir, "/") {
		r.Fail(trialDir, "is %q; it must be an absolute path", dir)
	}
	return p
}

func newPBT(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	a := &pbt{space: space, reader: history.NewReader(space), name: "pbt", seeding: propose.ReadSeeding(r), populationSettings: readPopulation(r)}
	resample := r.Float(resampling, 0.25, suggest.Range{Min: 0, Max: 1})
	a.explore = func(x exploration) (suggest.Point, string, error) {
		stream := rng.New(x.seed, "pbt", x.number, "explore")
		return exploreAllowed(space, x.donor.point, resample, stream), "", nil
	}
	return a
}

// exploreAllowed explores until the constraints on the parameters hold; the
// point itself when they never do.
func exploreAllowed(space suggest.Space, p suggest.Point, resample float64, stream *rng.Stream) suggest.Point {
	for range propose.Attempts {
		if q := perturbSome(space, p, resample, stream); space.Contains(q) {
			return q
		}
	}
	return append(suggest.Point(nil), p...)
}

// Suggest implements suggest.Algorithm.
func (a *pbt) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	h := a.reader.Read(s)
	p := newPopulation(a.size, h.Rows)
	out, err := propose.Fill(ctx, h.Next, n, func(number int) (suggest.Proposal, error) {
		v, why, fallback, err := a.next(exploration{ctx: ctx, rows: h.Rows, population: p, seed: a.seeding.Seed(s), number: number})
		if err != nil {
			return suggest.Proposal{}, err
		}
		p.insert(v)
		return suggest.Proposal{
			Point: append(suggest.Point(nil), v.point...), Meta: v.meta(), Resource: a.interval, Why: why, Fallback: fallback,
		}, nil
	})
	if errors.Is(err, errWait) {
		return nil, nil
	}
	return out, err
}

// errWait says that all members wait for results.
var errWait = errors.New("all members wait for results")

// next is the interval to train next: of the member that is furthest behind
// among those that may go on. The error is errWait when all must wait for
// results, and suggest.ErrExhausted when all have ended.
func (a *pbt) next(x exploration) (v *interval, why, fallback string, err error) {
	best, bestMember, ended := memberFront{}, -1, 0
	for member := range x.population.members {
		f := x.population.front(member)
		if f.ended != nil {
			if f.generation++; a.generations > 0 && f.generation >= a.generations {
				ended++
				continue
			}
			if 2*x.population.reached(f.generation-1) < a.size {
				continue
			}
		} else if f.busy {
			continue
		}
		if bestMember < 0 || f.generation < best.generation {
			best, bestMember = f, member
		}
	}
	switch {
	case ended == a.size:
		return nil, "", "", suggest.ErrExhausted
	case bestMember < 0:
		return nil, "", "", errWait
	}
	v = &interval{number: x.number, member: bestMember, generation: best.generation, parent: noParent}
	switch {
	case best.generation == 0:
		why, err = a.begin(v, x)
	case best.ended == nil:
		why, fallback, err = a.repeat(v, best.failures, x)
	default:
		why, fallback, err = a.goOn(v, best.ended, x)
	}
	return v, why, fallback, err
}

// begin starts a member at a point of its own: the first ones along a scrambled
// Sobol sequence, and random ones in place of those that failed.
func (a *pbt) begin(v *interval, x exploration) (why string, err error) {
	stream := rng.New(x.seed, a.name, x.number, "begin")
	u := make([]float64, a.space.Len())
	draw := func() suggest.Point {
		stream.Fill(u)
		return a.space.Decode(u)
	}
	known := propose.NewTriedAlways(a.space, x.rows)
	for _, intervals := range x.population.members {
		for _, w := range intervals {
			known.Add(w.point)
		}
	}
	if d := a.space.Len(); d > 0 && d <= qmc.MaxDimensions && len(x.population.members[v.member]) == 0 {
		sequence, err := qmc.NewScrambledSobol(d, rng.NewKey(x.seed, a.name, "scramble"))
		if err != nil {
			return "", fmt.Errorf("%s: %w", a.name, err)
		}
		sequence.At(uint32(v.member), u)
		if p := a.space.Decode(u); known.Add(p) {
			v.point = p
		}
	}
	if v.point == nil {
		v.point, err = known.Untried(x.ctx, draw, stream)
		if errors.Is(err, suggest.ErrExhausted) {
			v.point, err = propose.NewTriedAlways(a.space, nil).Untried(x.ctx, draw, stream) // more members than points
		}
	}
	return fmt.Sprintf("starts member %d", v.member), err
}

// repeat is for a member all of whose trials of the generation failed.
func (a *pbt) repeat(v *interval, failures []*interval, x exploration) (why, fallback string, err error) {
	last, inARow := failures[0], 0
	for _, f := range failures {
		if f.parent != last.parent || !f.point.Equal(last.point) {
			break
		}
		if f.outcome != killed {
			inARow++
		}
	}
	donors := x.population.donors(v.generation-1, v.member, a.quantile)
	if last.outcome != diverged && inARow < a.failures || len(donors) == 0 {
		v.point, v.parent = last.point, last.parent
		how := "failed"
		if last.outcome == killed {
			how = "was killed"
		}
		return fmt.Sprintf("repeats trial %d, which %s", last.number, how), "", nil
	}
	what := fmt.Sprintf("member %d failed %d times in generation %d", v.member, inARow, v.generation)
	if last.outcome == diverged {
		what = fmt.Sprintf("member %d diverged in generation %d", v.member, v.generation)
	}
	return a.replace(v, donors, what, x)
}

// goOn is for a member whose last interval has ended.
func (a *pbt) goOn(v, own *interval, x exploration) (why, fallback string, err error) {
	st := x.population.rank(own, a.quantile)
	if own.outcome == stopped { // which may be more than the share of the worst
		st.bottom, st.donors = true, x.population.donors(own.generation, v.member, a.quantile)
	}
	if st.bottom && len(st.donors) > 0 {
		what := fmt.Sprintf("member %d stood at place %d of %d in generation %d", v.member, st.better+1, st.ranked, own.generation)
		return a.replace(v, st.donors, what, x)
	}
	v.point, v.parent = own.point, own.number
	return fmt.Sprintf("member %d goes on from trial %d, at place %d of %d", v.member, own.number, st.better+1, st.ranked), "", nil
}

// replace lets the member go on from one of the donors, with other parameters.
func (a *pbt) replace(v *interval, donors []*interval, what string, x exploration) (why, fallback string, err error) {
	stream := rng.New(x.seed, a.name, x.number, "donor")
	x.donor = donors[stream.Uint64N(uint64(len(donors)))]
	v.parent = x.donor.number
	v.point, fallback, err = a.explore(x)
	return fmt.Sprintf("%s, and goes on from trial %d with other parameters", what, v.parent), fallback, err
}
