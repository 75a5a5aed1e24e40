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
	port       int32 // of the kubelet API
	capacity   corev1.ResourceList
	path       []string // before PATH in every container
	serviceEnv []corev1.EnvVar
	shimBinary string
	mounts     shim.MountMode
	network    *network
	gpuLocks   []*os.File // held, not used
}

// podSet holds the node's pods.
type podSet struct {
	wg sync.WaitGroup

	mu   sync.Mutex
	down time.Time // when the node began to go down; zero while it stays
	pods map[types.UID]*podEntry
}

type podEntry struct {
	worker   *worker
	newest   *corev1.Pod // the newest version of the object
	admitted bool        // it holds resources
}

// admit books a pod's resources, or says why they are not there, or that the pod
// is one more than its Job may have (see isExcess) and books nothing.
func (s *podSet) admit(pod *corev1.Pod, allocatable corev1.ResourceList, parallelism int32) (why *verdict, excess bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var others []*corev1.Pod
	for uid, other := range s.pods {
		if other.admitted && uid != pod.UID {
			others = append(others, other.newest)
		}
	}
	if isExcess(pod, others, parallelism) {
		return nil, true
	}
	why = admit(pod, others, allocatable)
	if entry := s.pods[pod.UID]; entry != nil && why == nil {
		entry.admitted = true
	}
	return why, false
}

// settle gives a pod's resources back.
func (s *podSet) settle(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.pods[uid]; entry != nil {
		entry.admitted = false
	}
}

func (s *podSet) remove(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// worker returns the pod's worker, nil where there is none.
func (s *podSet) worker(uid types.UID) *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.pods[uid]; entry != nil {
		return entry.worker
	}
	return nil
}

// find returns the pod of that name; of several, which can only be for a
// moment, one that is not being deleted.
func (s *podSet) find(namespace, name string) (found *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.pods {
		if pod := entry.newest; pod.Namespace == namespace && pod.Name == name && (found == nil || found.DeletionTimestamp != nil) {
			found = pod
		}
	}
	return found
}

// list returns the pods as they are known last.
func (s *podSet) list() (pods []*corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.pods {
		pods = append(pods, entry.newest)
	}
	return pods
}

// observe brings a version of an object: it starts the pod's worker, or tells it.
func (n *node) observe(ctx context.Context, pod *corev1.Pod) {
	s := n.pods
	s.mu.Lock()
	entry, known := s.pods[pod.UID]
	if !known {
		w := newWorker(n, pod)
		w.v.Down = s.down
		if !isTerminal(pod.Status.Phase) {
			w.recoverDown()
		}
		entry = &podEntry{worker: w, newest: pod, admitted: w.admitted}
		s.pods[pod.UID] = entry
		s.wg.Go(func() { w.Run(ctx) })
	}
	if newer(pod, entry.newest) {
		entry.newest = pod
	}
	entry.admitted = entry.admitted && !isTerminal(pod.Status.Phase)
	s.mu.Unlock()
	n.network.signal()
	if known {
		entry.worker.post(ctx, func() { entry.worker.update(pod) })
	}
}

// lose tells a worker that its object is gone.
func (n *node) lose(ctx context.Context, uid types.UID) {
	if w := n.pods.worker(uid); w != nil {
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
