// Package study keeps an experiment and its trials as a suggest.Study: what
// algorithms propose from and stopping rules judge by. It is the only package that
// imports both the API's types and those of search.
//
// A Study is kept between reconciles, so that a trial is translated once and its
// curve read once. All of it can be rebuilt from the objects: a manager that was
// restarted gives the same answers.
package study

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
	"github.com/vernier-ml/vernier/trainer"
)

// ErrExhausted says that nothing is left to try, ever.
var ErrExhausted = suggest.ErrExhausted

// Study is what is known of one experiment, at one generation of its spec. It is
// used by one goroutine at a time.
type Study struct {
	codec     codec
	algorithm suggest.Algorithm
	outside   bool            // the algorithm is a service
	stopper   suggest.Stopper // nil: no early stopping
	rule      string          // the name of stopper

	// base has all but the trials.
	base    suggest.Study
	trials  history
	ranking *Ranking
	warm    map[string]*history // by experiment
	learned uint64              // a hash of what was learned from them

	learning learning
}

// New builds the search space, the algorithm and the stopping rule of exp, which
// has its defaults. With an error, which says what is wrong with its spec, the
// Study ranks trials and does no more.
func New(exp *v1beta1.Experiment) (*Study, error) {
	spec := exp.Spec.DeepCopy()
	s := &Study{trials: history{spec: spec}, ranking: newRanking(spec), warm: map[string]*history{}}
	space, codec, err := spaceOf(spec)
	if err != nil {
		return s, fmt.Errorf("spec.parameters: %w", err)
	}
	s.codec, s.trials.codec = codec, codec
	if s.outside = ProposedByService(spec); s.outside {
		s.algorithm = elsewhere{}
	} else if s.algorithm, err = algorithmOf(spec, space); err != nil {
		return s, fmt.Errorf("spec.algorithm: %w", err)
	}
	if s.stopper, err = stopperOf(spec); err != nil {
		return s, fmt.Errorf("spec.earlyStopping: %w", err)
	}
	if s.stopper != nil {
		s.rule = spec.EarlyStopping.AlgorithmName
	}
	s.base = suggest.Study{
		Space: space, Objectives: objectivesOf(spec), Constraints: constraintsOf(spec), Seed: seedOf(exp),
		Budget: int(ptr.Deref(spec.MaxTrialCount, 0)), Parallel: int(ptr.Deref(spec.ParallelTrialCount, 0)),
		Repeats: repeatsOf(spec),
	}
	s.base.Initial, s.base.Queued = s.first(len(spec.InitialTrials))
	return s, nil
}

// first are the first n of the points that are tried before any of the algorithm's own.
func (s *Study) first(n int) (initial []suggest.Point, queued []suggest.QueuedPoint) {
	for _, i := range s.trials.spec.InitialTrials[:n] {
		p, ok := pointOf(s.codec, i.ParameterAssignments)
		switch {
		case ok && i.ID != "":
			queued = append(queued, suggest.QueuedPoint{ID: i.ID, Point: p})
		case ok:
			initial = append(initial, p)
		}
	}
	return initial, queued
}

// Update takes in the experiment's trials, in order of number.
func (s *Study) Update(trials []*v1beta1.Trial) {
	if s.trials.update(trials) {
		s.ranking.update(&s.trials)
	}
}

// Ranking compares the trials of the last Update.
func (s *Study) Ranking() *Ranking { return s.ranking }

// modelBytes is what a Gaussian process takes for each pair of trials that it has
// learned from, of which there are at most modelTrials: some 40 MB with all.
const modelBytes, modelTrials = 64, 800

// Bytes estimates how much memory the study takes.
func (s *Study) Bytes() int {
	n := s.trials.bytes()
	for _, w := range s.warm {
		n += w.bytes()
	}
	if a := s.trials.spec.Algorithm; a != nil && slices.Contains([]string{"auto", "bayesianoptimization", "mobster"}, a.AlgorithmName) {
		m := min(modelTrials, len(s.trials.entries))
		n += modelBytes * m * m
	}
	return n
}

// Proposal is a point to try, in the words of the API.
type Proposal struct {
	Assignments []v1beta1.ParameterAssignment
	// Name and Labels of the trial, where a service chose them.
	Name   string
	Labels map[string]string
	// Meta comes back to the algorithm with the trial.
	Meta map[string]string
	// Resource is how much of the resource the trial gets; 0 means all of it.
	Resource float64
	// Why says in a sentence why this point; may be empty.
	Why string
	// Fallback is a word for what the algorithm did in place of its normal work;
	// empty when all went well.
	Fallback string
	// Asked is what the algorithm was asked, nil where it is a service.
	Asked *Asked
}

// Parent is the number of the trial that this one continues; ok is false if it
// starts from the beginning.
func (p Proposal) Parent() (number int, ok bool) {
	n, err := strconv.Atoi(p.Meta[suggest.MetaParent])
	return n, err == nil && n >= 0
}

// Outside says whether the algorithm is none of ours: its service is asked by the
// controller of suggestions, and Propose cannot be used.
func (s *Study) Outside() bool { return s.outside }

// elsewhere stands for an algorithm that is a service.
type elsewhere struct{}

func (elsewhere) Suggest(context.Context, suggest.Study, int) ([]suggest.Proposal, error) {
	return nil, errors.New("the algorithm is not one of Vernier's: its service is asked")
}

// Propose asks the algorithm for at most n points, when Ready has said so.
func (s *Study) Propose(ctx context.Context, n int) ([]Proposal, error) {
	points, err := s.algorithm.Suggest(ctx, s.question(), n)
	if err != nil {
		return nil, err
	}
	out, asked := make([]Proposal, len(points)), s.asks(n)
	for i, p := range points {
		out[i] = Proposal{Meta: p.Meta, Resource: p.Resource, Why: p.Why, Fallback: p.Fallback, Asked: asked}
		for _, a := range s.codec.Assignments(p.Point) {
			out[i].Assignments = append(out[i].Assignments, v1beta1.ParameterAssignment(a))
		}
	}
	return out, nil
}

// Finite says whether there may be nothing left to try: the points are finitely many, or
// the algorithm's plan has an end.
func (s *Study) Finite() bool {
	_, finite := s.base.Space.Size()
	known, _ := registered(s.trials.spec.Algorithm)
	return finite || known.MultiFidelity || known.Repeats
}

// question is the study as it is now. It shares nothing that changes later.
func (s *Study) question() suggest.Study {
	q := s.base
	q.Trials = s.trials.current
	return q
}

func stopperOf(spec *v1beta1.ExperimentSpec) (suggest.Stopper, error) {
	e := spec.EarlyStopping
	if e == nil {
		return nil, nil
	}
	known, ok := stop.Get(e.AlgorithmName)
	if !ok {
		return nil, fmt.Errorf("there is no rule %q; use one of %s", e.AlgorithmName, strings.Join(stop.Names(), ", "))
	}
	return known.New(settingsOf(e.AlgorithmSettings))
}

func algorithmOf(spec *v1beta1.ExperimentSpec, space suggest.Space) (suggest.Algorithm, error) {
	if spec.Algorithm == nil || spec.Algorithm.AlgorithmName == "" {
		return nil, errors.New("no algorithm is named")
	}
	known, ok := registered(spec.Algorithm)
	if !ok {
		return nil, fmt.Errorf("there is no algorithm %q; use one of %s", spec.Algorithm.AlgorithmName, strings.Join(Algorithms(), ", "))
	}
	settings := settingsOf(spec.Algorithm.AlgorithmSettings)
	named := slices.ContainsFunc(settings, func(s suggest.Setting) bool { return s.Name == "resource_name" })
	built, err := known.New(space, settings)
	if err != nil { // which names a setting that may be a misspelling of what is missed below
		return nil, err
	}
	switch {
	case (known.Name == "pbt" || known.Name == "pb2") && spec.Checkpoints() == nil:
		return nil, fmt.Errorf("%s copies checkpoints between trials: say in trialTemplate.checkpoints.path, or in the setting %s, where the program keeps them", known.Name, v1beta1.SettingTrialDir)
	case known.MultiFidelity && !named:
		return nil, fmt.Errorf("%s needs the setting resource_name: the parameter, such as the number of epochs, that says how long a trial trains", known.Name)
	}
	return built, nil
}

func settingsOf[S v1beta1.AlgorithmSetting | v1beta1.EarlyStoppingSetting](list []S) (settings suggest.Settings) {
	for _, s := range list {
		settings = append(settings, suggest.Setting(s))
	}
	return settings
}

// seedOf is the experiment's seed, else a hash of its first UID.
func seedOf(exp *v1beta1.Experiment) uint64 {
	if exp.Spec.Seed != nil {
		return uint64(*exp.Spec.Seed)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(v1beta1.Origin(&exp.ObjectMeta))) // cannot fail
	return h.Sum64()
}

// TrialSeed is what a trial of the experiment trains with: ${trialSeed} of its template.
func TrialSeed(exp *v1beta1.Experiment, number int) string {
	return strconv.FormatUint(uint64(suggest.TrialSeed(seedOf(exp), number)), 10)
}

// repeatsOf says whether trials may be repeated: as spec.repeats says, else if the
// template passes on a seed.
func repeatsOf(spec *v1beta1.ExperimentSpec) bool {
	t := spec.TrialTemplate
	seeded := t != nil && t.TrialSpec != nil && trainer.Seeded(t.TrialSpec.Raw)
	return spec.Repeats == v1beta1.RepeatAuto || spec.Repeats == "" && seeded
}

// Recommend makes the ranking say what the algorithm recommends of the trials of the
// last Update, where trials are repeated and enough have results.
func (s *Study) Recommend(ctx context.Context) {
	of, ok := s.algorithm.(suggest.Recommender)
	if !ok || !s.base.Repeats || !s.ranking.stale {
		return
	}
	r, ok := of.Recommend(ctx, s.question())
	if ctx.Err() != nil {
		return // what there was stays, until there is time
	}
	s.ranking.stale, s.ranking.recommended = false, nil
	if !ok {
		return
	}
	trial := s.trials.object(r.Trial)
	s.ranking.recommended = &v1beta1.RecommendedTrial{
		TrialName: trial.Name, ParameterAssignments: trial.Spec.ParameterAssignments, Trials: int32(r.Count),
		Value: shortNumber(r.Value), Deviation: shortNumber(r.Deviation), Noise: shortNumber(r.Noise),
	}
}

// shortNumber has the digits that mean something of a model's number.
func shortNumber(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }
