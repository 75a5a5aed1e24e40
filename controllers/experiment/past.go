package experiment

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// keptPoints bounds the points of the curves that are kept, of 16 bytes each. One
// experiment alone may have more: its Trials take more still.
const keptPoints = 2 << 20

// pasts keeps the curves of trials that have ended, by experiment, so that each is
// read once. Losing one costs time only. S is a point of a curve.
type pasts[S any] struct {
	most int // of points; 0: keptPoints

	mu     sync.Mutex
	points int
	kept   map[types.UID]*past[S]
	uses   int
}

// past is what is kept of one experiment with early stopping.
type past[S any] struct {
	// judged is when running trials were last looked at, and cost how long that
	// took. They stay when the curves make way.
	judged time.Time
	cost   time.Duration

	name   types.NamespacedName
	metric string // whose curves they are
	curves map[types.UID][]S
	points int
	used   int  // which use was the last one
	busy   bool // it is being used
}

// use gives what is kept of an experiment. Until done is called, its curves make way
// for no others. One experiment is used by one caller at a time.
func (p *pasts[S]) use(exp *v1beta1.Experiment) (of *past[S], done func()) {
	metric := exp.Spec.Objective.ObjectiveMetricName
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[types.UID]*past[S]{}
	}
	of = p.kept[exp.UID]
	if of == nil {
		of = &past[S]{name: client.ObjectKeyFromObject(exp)}
		p.kept[exp.UID] = of
	}
	if of.metric != metric || of.curves == nil {
		p.clear(of)
		of.metric, of.curves = metric, map[types.UID][]S{}
	}
	p.uses++
	of.used, of.busy = p.uses, true
	return of, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		of.busy = false
	}
}

// keep keeps the curve of a trial. The curves of the experiments that were used
// longest ago make way.
func (p *pasts[S]) keep(of *past[S], trial types.UID, curve []S) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.curves[trial] = curve
	of.points += len(curve)
	p.points += len(curve)
	most := p.most
	if most == 0 {
		most = keptPoints
	}
	for p.points > most {
		var oldest *past[S]
		for _, other := range p.kept {
			if !other.busy && other.points > 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		if oldest == nil {
			return
		}
		p.clear(oldest)
	}
}

// clear gives the curves up, of which others may still read.
func (p *pasts[S]) clear(of *past[S]) {
	p.points -= of.points
	of.points, of.curves = 0, nil
}

// drop forgets an experiment that needs its past no more.
func (p *pasts[S]) drop(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped(uid)
}

// dropNamed forgets the experiments that had this name.
func (p *pasts[S]) dropNamed(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, of := range p.kept {
		if of.name == name {
			p.dropped(uid)
		}
	}
}

func (p *pasts[S]) dropped(uid types.UID) {
	if of := p.kept[uid]; of != nil {
		p.clear(of)
		delete(p.kept, uid)
	}
}
