package experiment

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// prepareInline is how long a reconcile waits for an algorithm to learn from
	// new results. Most take less; a Gaussian process takes up to a second, and
	// the reconcile then goes on without new trials until it is ready.
	prepareInline = 10 * time.Millisecond
	// prepareMost bounds how long new trials wait in all, however often news
	// make the algorithm begin again. After that it learns within the question.
	prepareMost = 5 * time.Second
)

// preparing is the learning of an experiment's algorithm between two questions.
// Losing it costs time only.
type preparing struct {
	inline, most time.Duration // 0: prepareInline and prepareMost

	of     knowledge
	cancel context.CancelFunc // nil: nothing was begun
	done   chan struct{}
	waking bool      // somebody waits for done
	since  time.Time // of the first one since the last question
}

// knowledge tells what there is to learn from. Trials never lose a result, so
// that counting them is enough.
type knowledge struct{ trials, ended int }

func knowledgeOf(trials []*v1beta1.Trial) knowledge {
	k := knowledge{trials: len(trials)}
	for _, t := range trials {
		if ended(stateOf(t)) {
			k.ended++
		}
	}
	return k
}

// ready says whether the next question may be asked. When there is news, learn
// is called in the background, and cancelled by further news. When it does not
// end soon, the answer is no, and wake is called once it has.
func (p *preparing) ready(ctx context.Context, now time.Time, news knowledge, learn func(context.Context), wake func(context.Context)) bool {
	if p.cancel != nil && p.of != news {
		p.cancel()
		p.cancel = nil
	}
	if p.since.IsZero() {
		p.since = now
	}
	left := cmp.Or(p.most, prepareMost) - now.Sub(p.since)
	if left <= 0 {
		p.end()
		return true
	}
	if p.cancel == nil {
		p.begin(ctx, left, news, learn)
	}
	timer := time.NewTimer(cmp.Or(p.inline, prepareInline))
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	select { // who looks late finds both, and would be woken by nobody
	case <-p.done:
		p.end()
		return true
	default:
	}
	if !p.waking {
		p.waking = true
		go func(done <-chan struct{}) {
			<-done
			wake(ctx)
		}(p.done)
	}
	return false
}

func (p *preparing) begin(ctx context.Context, most time.Duration, news knowledge, learn func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, most)
	done := make(chan struct{})
	p.of, p.cancel, p.done, p.waking = news, cancel, done, false
	go func() {
		defer close(done)
		defer cancel()
		defer func() { _ = recover() }() // what goes wrong goes wrong again, and is said, in the question
		learn(ctx)
	}()
}

// end forgets what was begun, as a question is asked.
func (p *preparing) end() {
	if p.cancel != nil {
		p.cancel()
	}
	*p = preparing{inline: p.inline, most: p.most}
}

// waker gives what asks for a reconcile of the experiment, once its algorithm is
// ready. It keeps only the name: what the API server answers to a status write is
// read into exp meanwhile.
func (c *Controller) waker(exp *v1beta1.Experiment) func(context.Context) {
	named := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: exp.Namespace, Name: exp.Name}}
	return func(ctx context.Context) {
		select {
		case c.woken <- event.GenericEvent{Object: named}:
		case <-ctx.Done():
		}
	}
}
