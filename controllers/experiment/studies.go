package experiment

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// defaultMemory bounds what is kept of all experiments.
const defaultMemory = 128 << 20

// studies keeps what is known of experiments between reconciles. Losing a study
// costs time only: it is built anew from the objects.
type studies struct {
	memory int // in bytes; 0: defaultMemory

	mu   sync.Mutex
	kept []*kept // the one used last comes last
}

// kept is what is kept of one experiment, and used between get and done by one
// goroutine at a time.
type kept struct {
	*study.Study
	// busy is full while it is in use, and queue while a hand-out waits for that: so
	// a reconcile waits for one of them, however many there are.
	busy, queue chan struct{}
	invalid     error // what is wrong with the spec
	uid         types.UID
	generation  int64
	name        types.NamespacedName
	bytes       int
	learning    bool

	// wrote is when the status was last written.
	wrote time.Time
	// trouble is what was in the way of new trials, which are tried again at
	// retryAt.
	trouble findings
	retryAt time.Time
	backoff wait.Backoff
	// asked is when new trials were first wanted that the algorithm learns for; zero
	// when none are.
	asked time.Time
	// judged is when running trials were last looked at by the stopping rule, and
	// judging how long that took.
	judged  time.Time
	judging time.Duration
}

// get is the study of an experiment, built when there is none or when it is of
// another generation of the spec. One that is invalid ranks trials and does no more.
// The error is that of ctx, which ended before others had used it.
func (s *studies) get(ctx context.Context, exp *v1beta1.Experiment) (*kept, error) {
	k := s.find(exp)
	return k, enter(ctx, k.busy)
}

// queue waits until no other hand-out of an experiment is before this one; leave lets
// the next one in.
func (s *studies) queue(ctx context.Context, exp *v1beta1.Experiment) (leave func(), err error) {
	k := s.find(exp)
	return func() { <-k.queue }, enter(ctx, k.queue)
}

func enter(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *studies) find(exp *v1beta1.Experiment) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.kept, func(k *kept) bool { return k.uid == exp.UID }); i >= 0 {
		k := s.kept[i]
		s.kept = slices.Delete(s.kept, i, i+1)
		if k.generation == exp.Generation {
			s.kept = append(s.kept, k)
			return k
		}
	}
	built, err := study.New(exp)
	k := &kept{
		Study: built, invalid: err, uid: exp.UID, generation: exp.Generation, name: client.ObjectKeyFromObject(exp),
		busy: make(chan struct{}, 1), queue: make(chan struct{}, 1),
	}
	s.kept = append(s.kept, k)
	return k
}

// done ends a use of k. When there is too much in memory, the studies that were
// used longest ago are given up, except those whose algorithms learn: they would
// begin again at every reconcile. One study alone may be larger: its trials take
// more memory still.
func (s *studies) done(k *kept) {
	defer func() { <-k.busy }()
	s.mu.Lock()
	defer s.mu.Unlock()
	k.bytes, k.learning = k.Bytes(), k.Learning()
	total := 0
	for _, k := range s.kept {
		total += k.bytes
	}
	limit := s.memory
	if limit == 0 {
		limit = defaultMemory
	}
	s.kept = slices.DeleteFunc(s.kept, func(other *kept) bool {
		drop := total > limit && other != k && !other.learning
		if drop {
			total -= other.bytes
		}
		return drop
	})
}

// drop gives up the study of an experiment that needs it no more.
func (s *studies) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k *kept) bool { return k.uid == uid })
}

// dropNamed gives up the studies of experiments that had this name: all that is
// known of one that was deleted.
func (s *studies) dropNamed(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k *kept) bool { return k.name == name })
}
