package trial

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// The scheduler of the embedded mode places pods one by one: two jobs of several pods
// could each hold half of the machine and wait for the rest for ever. So a job whose pods
// work together is made when all of them have room. On a cluster that is the business of
// Kueue or of a scheduler.

// noRoom begins why a job is not made yet.
const noRoom = "its pods start together, and there is no room for all of them yet: "

const (
	// roomRetry is how often the first of the trials that wait looks for room.
	roomRetry = time.Second
	// waitsOn is how long a trial keeps its place in the line without looking again.
	waitsOn = 10 * roomRetry
)

// gang are the requests of each pod of a job whose pods work together.
type gang []corev1.ResourceList

// rooms gives out the machine to jobs of several pods, first come first served. It may
// be lost: trials that run are found again.
type rooms struct {
	reader client.Reader // the API server
	trials client.Reader // the cache

	mu    sync.Mutex
	known bool
	// held are the gangs of the trials whose jobs were made.
	held map[types.UID]holder
	// line are the trials that wait.
	line map[types.UID]waiter
}

type holder struct {
	key  client.ObjectKey
	gang gang
}

type waiter struct {
	made   time.Time
	name   string
	looked time.Time
}

func newRooms(reader, trials client.Reader) *rooms {
	return &rooms{reader: reader, trials: trials, held: map[types.UID]holder{}, line: map[types.UID]waiter{}}
}

// take reserves room for the pods of a trial's job, or says why there is none yet.
func (r *rooms) take(ctx context.Context, t *v1beta1.Trial, job *unstructured.Unstructured, now time.Time) (why string, err error) {
	if r == nil {
		return "", nil
	}
	g := gangOf(job)
	if g == nil {
		return "", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.held[t.UID]; has {
		return "", nil
	}
	if err := r.recall(ctx); err != nil {
		return "", err
	}
	maps.DeleteFunc(r.line, func(_ types.UID, w waiter) bool { return now.Sub(w.looked) > waitsOn })
	own := waiter{made: t.CreationTimestamp.Time, name: t.Namespace + "/" + t.Name, looked: now}
	r.line[t.UID] = own
	for _, w := range r.line {
		if cmp.Or(w.made.Compare(own.made), strings.Compare(w.name, own.name)) < 0 {
			return noRoom + "trial " + w.name + " comes first", nil
		}
	}
	empty, free, err := r.free(ctx)
	if err != nil {
		return "", err
	}
	// What never fits is made: its pods then say what they lack.
	if short := free.place(g); short != "" && empty.place(g) == "" {
		return noRoom + short, nil
	}
	delete(r.line, t.UID)
	r.held[t.UID] = holder{client.ObjectKeyFromObject(t), g}
	return "", nil
}

// release gives back the room of a trial whose job was not made.
func (r *rooms) release(trial types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, trial)
}

// recall forgets the trials that have ended, and the first time finds those that run.
func (r *rooms) recall(ctx context.Context) error {
	for uid, h := range r.held {
		t := &v1beta1.Trial{}
		err := r.trials.Get(ctx, h.key, t)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read the trial %s: %w", h.key, err)
		}
		if err != nil || t.UID != uid || t.IsCompleted() {
			delete(r.held, uid)
		}
	}
	if r.known {
		return nil
	}
	var all v1beta1.TrialList
	if err := r.trials.List(ctx, &all); err != nil {
		return fmt.Errorf("list the trials that run: %w", err)
	}
	for i := range all.Items {
		t := &all.Items[i]
		if t.IsCompleted() || !t.IsRunning() {
			continue
		}
		if job, err := jobOf(t); err == nil {
			if g := gangOf(job); g != nil {
				r.held[t.UID] = holder{client.ObjectKeyFromObject(t), g}
			}
		}
	}
	r.known = true
	return nil
}

// free is what the nodes have, and what is left of it beside the pods that are there and
// those that are to come.
func (r *rooms) free(ctx context.Context) (empty, free nodes, err error) {
	var machines corev1.NodeList
	var pods corev1.PodList
	if err := r.reader.List(ctx, &machines); err != nil {
		return nil, nil, fmt.Errorf("list the nodes: %w", err)
	}
	if err := r.reader.List(ctx, &pods); err != nil {
		return nil, nil, fmt.Errorf("list the pods: %w", err)
	}
	holds := map[client.ObjectKey]bool{}
	for _, h := range r.held {
		holds[h.key] = true
	}
	empty, free = nodes{}, nodes{}
	for _, n := range machines.Items {
		if !n.Spec.Unschedulable {
			empty[n.Name], free[n.Name] = n.Status.Allocatable.DeepCopy(), n.Status.Allocatable.DeepCopy()
		}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if has := free[p.Spec.NodeName]; has != nil && !ended && !holds[client.ObjectKey{Namespace: p.Namespace, Name: p.Labels[v1beta1.LabelTrial]}] {
			subtract(has, resource.PodRequests(p, resource.PodResourcesOptions{}))
		}
	}
	for _, h := range r.held {
		free.place(h.gang)
	}
	return empty, free, nil
}

// nodes are what each node has of each resource.
type nodes map[string]corev1.ResourceList

// place takes room for each pod of a gang on the first node that has it, and says what
// is short if one finds none.
func (n nodes) place(g gang) (short string) {
	names := slices.Sorted(maps.Keys(n))
	for _, pod := range g {
		var lacks []string
		fits := slices.IndexFunc(names, func(name string) bool {
			lacks = lacking(n[name], pod)
			return len(lacks) == 0
		})
		switch {
		case fits >= 0:
			subtract(n[names[fits]], pod)
		case short == "":
			short = fmt.Sprintf("one of %d finds too little %s", len(g), cmp.Or(strings.Join(lacks, ", "), "of anything: there is no node"))
		}
	}
	return short
}

// lacking are the resources of which has is too little for wants.
func lacking(has, wants corev1.ResourceList) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		have, known := has[name]
		if want := wants[name]; (known || strings.Contains(string(name), "/")) && want.Cmp(have) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

func subtract(from, what corev1.ResourceList) {
	for name, q := range what {
		if left, known := from[name]; known {
			left.Sub(q)
			from[name] = left
		}
	}
}

// gangOf are the requests of the pods of a job that work together; nil where none do.
func gangOf(job *unstructured.Unstructured) (g gang) {
	for _, template := range trainer.Together(job, kind.For(job.GroupVersionKind())) {
		g = append(g, trainer.Requests(template.Spec))
	}
	return g
}
