package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/vernier-ml/vernier/local/statefile"
)

// gpuBook says which pod's containers hold which GPUs. It is on disk before a
// container starts, so that no GPU is given away twice, whichever process dies.
type gpuBook struct {
	path string
	all  []device
	// shares is how many pods may hold one GPU at a time: 1, unless asked for more.
	shares int

	mu   sync.Mutex
	held map[types.UID]map[string][]string
}

// errNoGPU says that a pod asks for more GPUs than are free.
var errNoGPU = errors.New("not enough free GPUs")

func openGPUBook(path string, all []device, shares int, log logr.Logger) (*gpuBook, error) {
	b := &gpuBook{path: path, all: all, shares: max(1, shares), held: map[types.UID]map[string][]string{}}
	err := statefile.ReadJSON(path, &b.held)
	if errors.Is(err, statefile.ErrCorrupt) {
		log.Error(err, "the GPU allocations of running pods are lost")
		b.held = map[types.UID]map[string][]string{}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the GPU allocations: %w", err)
	}
	return b, nil
}

// Allocate gives each container of a pod the GPUs that its limits ask for. A
// pod that already holds its GPUs keeps them. It gets as many as the scheduler
// counts: init containers share those of the mains, sidecars have their own.
func (b *gpuBook) Allocate(pod *corev1.Pod) (map[string][]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held, ok := b.held[pod.UID]; ok {
		return held, nil
	}
	used := b.used()
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{})
	for name, asked := range limits {
		if free, all := b.free(name, used); isGPU(name) && int(asked.Value()) > free {
			return nil, fmt.Errorf("%w: asked for %d of %s, free %d of %d", errNoGPU, asked.Value(), name, free, all)
		}
	}
	given := map[string][]string{}
	for _, c := range allContainers(&pod.Spec) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			asked := c.Resources.Limits[name]
			n := int(asked.Value())
			if !isGPU(name) || n == 0 {
				continue
			}
			gpus := b.leastUsed(name, used)
			if n > len(gpus) {
				return nil, fmt.Errorf("%w: container %s asks for %d different ones, of which %d are free", errNoGPU, c.Name, n, len(gpus))
			}
			given[c.Name] = append(given[c.Name], gpus[:n]...)
			if isRegularInit(&pod.Spec, c) {
				continue // it ends before what comes later begins
			}
			for _, uuid := range gpus[:n] {
				used[uuid]++
			}
		}
	}
	if len(given) == 0 {
		return nil, nil
	}
	return given, b.record(pod.UID, given)
}

// Held are the GPUs that each container of a pod holds.
func (b *gpuBook) Held(uid types.UID) map[string][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held[uid] // never changed once it is there
}

// record enters what a pod holds. GPUs are not given unless that is written; those of a
// pod that is gone are free even if it cannot be written.
func (b *gpuBook) record(uid types.UID, gpus map[string][]string) error {
	held := maps.Clone(b.held)
	held[uid] = gpus
	maps.DeleteFunc(held, func(_ types.UID, gpus map[string][]string) bool { return gpus == nil })
	err := statefile.WriteJSON(b.path, held)
	if err == nil || gpus == nil {
		b.held = held
	}
	if err != nil {
		return fmt.Errorf("recording the GPU allocation: %w", err)
	}
	return nil
}

// Release gives a pod's GPUs back. Call it when all its processes are gone.
func (b *gpuBook) Release(uid types.UID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.held[uid]; !ok {
		return nil
	}
	return b.record(uid, nil)
}

// Keep forgets the allocations of all pods that are not there any more.
func (b *gpuBook) Keep(there func(types.UID) bool) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid := range b.held {
		if !there(uid) {
			err = errors.Join(err, b.record(uid, nil))
		}
	}
	return err
}

// used is how many pods hold each GPU.
func (b *gpuBook) used() map[string]int {
	used := map[string]int{}
	for _, containers := range b.held {
		ofPod := map[string]bool{}
		for _, uuids := range containers {
			for _, uuid := range uuids {
				ofPod[uuid] = true
			}
		}
		for uuid := range ofPod {
			if slices.ContainsFunc(b.all, func(d device) bool { return d.uuid == uuid }) {
				used[uuid]++
			}
		}
	}
	return used
}

// free is how many of a resource may still be held, and how many there are.
func (b *gpuBook) free(name corev1.ResourceName, used map[string]int) (free, all int) {
	for _, d := range b.all {
		if d.resource == name {
			all += b.shares
			free += b.shares - used[d.uuid]
		}
	}
	return free, all
}

// leastUsed are the devices of a resource that another pod may hold, those that the
// fewest hold first.
func (b *gpuBook) leastUsed(name corev1.ResourceName, used map[string]int) (free []string) {
	for _, d := range b.all {
		if d.resource == name && used[d.uuid] < b.shares {
			free = append(free, d.uuid)
		}
	}
	slices.SortStableFunc(free, func(x, y string) int { return used[x] - used[y] })
	return free
}

// Capacity is what the node offers of each resource.
func (b *gpuBook) Capacity() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, d := range b.all {
		q := list[d.resource]
		q.Add(*quantity.NewQuantity(int64(b.shares), quantity.DecimalSI))
		list[d.resource] = q
	}
	return list
}

// gpuEnv makes exactly the given GPUs visible, by UUID because indices differ
// between CUDA and the driver. On a machine without GPUs nothing is set.
func (b *gpuBook) gpuEnv(uuids []string) []corev1.EnvVar {
	if len(b.all) == 0 {
		return nil
	}
	visible := strings.Join(uuids, ",")
	nvidia := visible
	if visible == "" {
		nvidia = "void"
	}
	return []corev1.EnvVar{
		{Name: "CUDA_DEVICE_ORDER", Value: "PCI_BUS_ID"},
		{Name: "CUDA_VISIBLE_DEVICES", Value: visible},
		{Name: "NVIDIA_VISIBLE_DEVICES", Value: nvidia},
	}
}

// isGPU says whether a resource is GPUs or parts of them.
func isGPU(name corev1.ResourceName) bool {
	return name == resourceGPU || strings.HasPrefix(string(name), string(resourceMIG))
}
