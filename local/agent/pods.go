package agent

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/vernier-ml/vernier/local/shim"
)

// node is what all workers share.
type node struct {
	client     kubernetes.Interface
	cluster    *cluster
	layout     layout
	log        logr.Logger
	recorder   record.EventRecorder
	gpuBook    *gpuBook
	archive    *archive
	pods       *podSet
	name       string
	hostIP     string
	capacity   corev1.ResourceList
	path       []string // before PATH in every container
	serviceEnv []corev1.EnvVar
	shimBinary string
	mounts     shim.MountMode
	gpuLocks   []*os.File // held, not used
}

// podSet holds the workers of the node's pods.
type podSet struct {
	wg sync.WaitGroup

	mu       sync.Mutex
	down     time.Time // when the node began to go down; zero while it stays
	workers  map[types.UID]*worker
	latest   map[types.UID]*corev1.Pod // the newest version of each object
	admitted map[types.UID]*corev1.Pod // pods that hold resources
}

func newPodSet() *podSet {
	return &podSet{workers: map[types.UID]*worker{}, latest: map[types.UID]*corev1.Pod{}, admitted: map[types.UID]*corev1.Pod{}}
}

// admit books a pod's resources, or says why they are not there, or that the pod
// is one more than its Job may have (see isExcess) and books nothing.
func (s *podSet) admit(pod *corev1.Pod, allocatable corev1.ResourceList, parallelism int32) (why *verdict, excess bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var others []*corev1.Pod
	for uid, other := range s.admitted {
		if uid == pod.UID {
			continue
		}
		if newest := s.latest[uid]; newest != nil {
			other = newest
		}
		others = append(others, other)
	}
	if isExcess(pod, others, parallelism) {
		return nil, true
	}
	if why := admit(pod, others, allocatable); why != nil {
		return why, false
	}
	s.admitted[pod.UID] = pod
	return nil, false
}

// settle gives a pod's resources back.
func (s *podSet) settle(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admitted, uid)
}

func (s *podSet) remove(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admitted, uid)
	delete(s.workers, uid)
	delete(s.latest, uid)
}

// find returns the pod of that name; of several, which can only be for a
// moment, one that is not being deleted.
func (s *podSet) find(namespace, name string) (*corev1.Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *corev1.Pod
	for _, pod := range s.latest {
		if pod.Namespace == namespace && pod.Name == name && (found == nil || found.DeletionTimestamp != nil) {
			found = pod
		}
	}
	return found, found != nil
}

// observe brings a version of an object: it starts the pod's worker, or tells it.
func (n *node) observe(ctx context.Context, pod *corev1.Pod) {
	s := n.pods
	s.mu.Lock()
	w, known := s.workers[pod.UID]
	if !known {
		w = newWorker(n, pod)
		w.v.Down = s.down
		if !isTerminal(pod.Status.Phase) {
			w.recoverDown()
		}
		s.workers[pod.UID] = w
		s.wg.Add(1)
	}
	if old := s.latest[pod.UID]; old == nil || newer(pod, old) {
		s.latest[pod.UID] = pod
	}
	if isTerminal(pod.Status.Phase) {
		delete(s.admitted, pod.UID)
	} else if !known && w.admitted {
		s.admitted[pod.UID] = pod
	}
	s.mu.Unlock()
	if known {
		w.post(ctx, func() { w.update(pod) })
		return
	}
	go func() {
		defer s.wg.Done()
		w.Run(ctx)
	}()
}

// lose tells a worker that its object is gone.
func (n *node) lose(ctx context.Context, uid types.UID) {
	n.pods.mu.Lock()
	w, known := n.pods.workers[uid]
	n.pods.mu.Unlock()
	if known {
		w.post(ctx, func() { w.v.Gone = true })
	}
}

// follow watches the pods that are bound to the node, until ctx ends. When the
// first list is in, it calls listed with the pods that exist.
func (n *node) follow(ctx context.Context, listed func(map[types.UID]bool)) error {
	lw := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", n.name))
	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { n.observe(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) {
			// A name may pass to a new pod between two looks.
			if was, pod := old.(*corev1.Pod), obj.(*corev1.Pod); was.UID != pod.UID {
				n.lose(ctx, was.UID)
			}
			n.observe(ctx, obj.(*corev1.Pod))
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				n.lose(ctx, pod.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	go func() {
		if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return
		}
		live := map[types.UID]bool{}
		for _, obj := range informer.GetStore().List() {
			live[obj.(*corev1.Pod).UID] = true
		}
		listed(live)
	}()
	informer.RunWithContext(ctx)
	n.pods.wg.Wait()
	return nil
}
