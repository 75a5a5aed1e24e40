// Package demo is experiments that are made up and live in memory, behind the API that
// a manager serves: to try the dashboard with, and to measure it at any size. Points of
// curves are computed when they are read, so that ten million cost no memory.
package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/server/api"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// Namespace is where the experiments of a demo are.
const Namespace = "demo"

// Options of a demo.
type Options struct {
	// Trials of the large experiment, and points of each of their curves.
	Trials, Points int
	// Running is how many of its trials run, 0 for none.
	Running int
	Seed    uint64
}

// Demo is experiments in memory.
type Demo struct {
	changes *api.Changes
	now     func() time.Time

	mu          sync.RWMutex
	version     uint64
	experiments []*made
}

// made is an experiment with its trials, in order of number. Objects are never
// changed: a change is another object.
type made struct {
	object  *v1beta1.Experiment
	trials  []*v1beta1.Trial
	sources []source
	running int
	points  int
	random  *rand.Rand
	best    int
	// front are the trials that none beats in loss and latency.
	front []int
}

// New makes a large experiment, which goes on, and two small ones that have ended.
func New(o Options, now func() time.Time) *Demo {
	d := &Demo{changes: &api.Changes{}, now: now}
	d.add("resnet-cifar100", o, 1)
	d.add("resnet-baseline", Options{Trials: 60, Points: 120, Seed: o.Seed + 1}, 26)
	d.add("resnet-smoke", Options{Trials: 12, Points: 20, Seed: o.Seed + 2}, 70)
	return d
}

// Config is that of the API over the demo. Nothing can be changed in it.
func (d *Demo) Config(access api.Access, version string) api.Config {
	c := memory{demo: d}
	return api.Config{
		Client: c, Reader: c, Experiments: experiment.New(experiment.Options{Client: c, Now: d.now}), Store: curves{demo: d}, Changes: d.changes,
		OnPoints: func(collector.TrialID) {}, OnEnd: func(context.Context, *v1beta1.Trial, *v1beta1.TrialStatus) {},
		Access: access, Version: version, Now: d.now,
	}
}

// Run lets the running trials go on, a step of each at a time, until ctx ends. Those
// that end are followed by others.
func (d *Demo) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, changed := range d.advance() {
				d.changes.Changed(changed)
				if t, ok := changed.(*v1beta1.Trial); ok {
					d.changes.Points(collector.TrialID{Namespace: t.Namespace, Name: t.Name, Experiment: t.Labels[v1beta1.LabelExperiment], UID: string(t.UID)})
				}
			}
		}
	}
}

func (d *Demo) add(name string, o Options, hoursAgo int) {
	random := rand.New(rand.NewPCG(o.Seed, 17))
	began := d.now().Add(-time.Duration(hoursAgo) * time.Hour)
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: name, UID: types.UID("demo-" + strconv.Itoa(len(d.experiments))), Generation: 1, CreationTimestamp: metav1.NewTime(began),
	}, Spec: spec(o)}
	v1beta1.SetDefaults(exp)
	exp.MarkCreated("Experiment is created", metav1.NewTime(began))
	exp.MarkRunning("Experiment is running", metav1.NewTime(began))
	exp.Status.StartTime = ptr.To(metav1.NewTime(began))
	m := &made{object: exp, running: o.Running, points: o.Points, random: random, best: -1}
	d.experiments = append(d.experiments, m)
	pace := time.Duration(hoursAgo) * time.Hour / time.Duration(max(1, o.Trials))
	for n := range o.Trials {
		t := d.start(m, began.Add(pace*time.Duration(n)))
		if o.Trials-n > o.Running {
			d.end(m, n, t, began.Add(pace*time.Duration(n+8)))
		} else {
			m.sources[n].steps = (n*37)%(o.Points/2) + 1
			d.measure(m, n, t)
		}
	}
	if o.Running == 0 {
		exp.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "Experiment has succeeded because max trial count has reached", metav1.NewTime(began.Add(2*time.Hour)))
		exp.Status.CompletionTime = ptr.To(metav1.NewTime(began.Add(2 * time.Hour)))
	}
	d.count(m)
}

// start makes the next trial of m.
func (d *Demo) start(m *made, at time.Time) *v1beta1.Trial {
	n := len(m.trials)
	s := propose(m.random, n, m.points)
	m.sources = append(m.sources, s)
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: fmt.Sprintf("%s-%04d", m.object.Name, n), UID: types.UID(fmt.Sprintf("%s/%d", m.object.UID, n)),
		Labels:            map[string]string{v1beta1.LabelExperiment: m.object.Name, v1beta1.LabelTrialNumber: strconv.Itoa(n)},
		CreationTimestamp: metav1.NewTime(at),
	}, Spec: v1beta1.TrialSpec{Objective: m.object.Spec.Objective, Objectives: m.object.Spec.Objectives, ParameterAssignments: s.assignments()}}
	t.MarkCreated("Trial is created", metav1.NewTime(at))
	t.MarkRunning("Trial is running", metav1.NewTime(at))
	t.Status.StartTime = ptr.To(metav1.NewTime(at))
	m.trials = append(m.trials, t)
	d.stamp(t)
	return t
}

// end says how trial n ended, which its source knows.
func (d *Demo) end(m *made, n int, t *v1beta1.Trial, at time.Time) {
	s, when := &m.sources[n], metav1.NewTime(at)
	t.Status.CompletionTime = &when
	switch {
	case s.fails:
		s.steps = min(s.steps, s.until)
		t.MarkFailed("Trial has failed: CUDA out of memory (exit code 1)", when)
	case s.until < m.points:
		s.steps = s.until
		t.MarkEarlyStopped(fmt.Sprintf("loss at step %d is above the median of the trials before", s.until), when)
	default:
		s.steps = m.points
		t.MarkSucceeded("Trial has succeeded", when)
	}
	d.measure(m, n, t)
	if s.fails {
		t.Status.Observation = nil
		return
	}
	m.advanceFront(n)
	if m.best < 0 || s.at(lossMetric, s.steps) < m.sources[m.best].at(lossMetric, m.sources[m.best].steps) {
		m.best = n
	}
}

// advanceFront takes trial n into the front if it belongs there.
func (m *made) advanceFront(n int) {
	losses := func(i int) []float64 {
		s := &m.sources[i]
		return []float64{s.at(lossMetric, s.steps), s.at(latencyMetric, s.steps)}
	}
	own := losses(n)
	if slices.ContainsFunc(m.front, func(i int) bool { return pareto.Dominates(losses(i), own) }) {
		return
	}
	m.front = append(slices.DeleteFunc(m.front, func(i int) bool { return pareto.Dominates(own, losses(i)) }), n)
}

// measure writes what trial n has reported so far.
func (d *Demo) measure(m *made, n int, t *v1beta1.Trial) {
	s := &m.sources[n]
	o := &v1beta1.Observation{}
	for _, name := range metricNames {
		v := strconv.FormatFloat(s.at(name, s.steps), 'g', 6, 64)
		o.Metrics = append(o.Metrics, v1beta1.Metric{Name: name, Min: v, Max: v, Latest: v, Value: v})
	}
	t.Status.Observation = o
	d.stamp(t)
}

func (d *Demo) stamp(o metav1.Object) {
	d.version++
	o.SetResourceVersion(strconv.FormatUint(d.version, 10))
}

// count writes the status of m's experiment.
func (d *Demo) count(m *made) {
	e := m.object.DeepCopy()
	s := &e.Status
	s.Trials = int32(len(m.trials))
	s.TrialsRunning, s.TrialsSucceeded, s.TrialsFailed, s.TrialsEarlyStopped = 0, 0, 0, 0
	for _, t := range m.trials {
		switch {
		case t.IsFailed():
			s.TrialsFailed++
		case t.IsEarlyStopped():
			s.TrialsEarlyStopped++
		case t.IsSucceeded():
			s.TrialsSucceeded++
		default:
			s.TrialsRunning++
		}
	}
	if m.best >= 0 {
		best := m.trials[m.best]
		s.CurrentOptimalTrial = v1beta1.OptimalTrial{BestTrialName: best.Name, ParameterAssignments: best.Spec.ParameterAssignments, Observation: *best.Status.Observation}
	}
	s.ParetoTrialList = nil
	for _, n := range m.front {
		s.ParetoTrialList = append(s.ParetoTrialList, m.trials[n].Name)
	}
	m.object = e
	d.stamp(e)
}

// advance is one step of each running trial.
func (d *Demo) advance() (changed []any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.experiments {
		if m.running == 0 {
			continue
		}
		live := 0
		for n := len(m.trials) - 1; n >= 0 && n >= len(m.trials)-4*m.running; n-- {
			if m.trials[n].IsCompleted() {
				continue
			}
			t := m.trials[n].DeepCopy()
			s := &m.sources[n]
			if s.steps += max(1, m.points/50); s.steps >= s.until {
				d.end(m, n, t, d.now())
			} else {
				d.measure(m, n, t)
				live++
			}
			m.trials[n] = t
			changed = append(changed, t)
		}
		for ; live < m.running && len(m.trials) < int(ptr.Deref(m.object.Spec.MaxTrialCount, 0)); live++ {
			t := d.start(m, d.now())
			d.measure(m, len(m.trials)-1, t)
			changed = append(changed, t)
		}
		d.count(m)
		changed = append(changed, m.object)
	}
	return changed
}

// namespaces are those of the demo.
func namespaces() []metav1.PartialObjectMetadata {
	n := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return []metav1.PartialObjectMetadata{n}
}
