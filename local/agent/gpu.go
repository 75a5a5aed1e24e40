package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/vernier-ml/vernier/local/statefile"
)

// resourceGPU is the extended resource that whole GPUs are asked for by.
const resourceGPU corev1.ResourceName = "nvidia.com/gpu"

// findGPUs lists the UUIDs of the machine's GPUs in PCI order: from
// nvidia-smi, or from the driver's files where that is not installed; source says
// which. No GPU is no error.
func findGPUs(ctx context.Context) (gpus []string, source string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=pci.bus_id,uuid", "--format=csv,noheader,nounits").Output()
	if gpus := uuidsIn(string(out)); err == nil && len(gpus) > 0 {
		return gpus, "nvidia-smi"
	}
	const driver = "/proc/driver/nvidia/gpus"
	return gpusFromDriver(driver), driver
}

var gpuUUID = regexp.MustCompile(`GPU-[-\w]+`)

// uuidsIn finds the UUIDs in lines that begin with what they are ordered by.
func uuidsIn(text string) []string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return gpuUUID.FindAllString(strings.Join(lines, "\n"), -1)
}

// gpusFromDriver reads <dir>/<bus id>/information.
func gpusFromDriver(dir string) (gpus []string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*", "information")) // sorted
	for _, path := range paths {
		gpus = append(gpus, gpuUUID.FindAllString(trimmedFile(path), 1)...)
	}
	return gpus
}

// offeredGPUs are the GPUs that the node offers, with the locks that keep other
// instances from them.
func offeredGPUs(ctx context.Context, cfg Config) (ours []string, locks []*os.File) {
	gpus := cfg.GPUs
	if gpus == nil {
		gpus, _ = findGPUs(ctx)
		if names, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
			gpus = visibleGPUs(gpus, names)
		}
	}
	ours, locks = lockGPUs(os.TempDir(), gpus, cfg.Log)
	if len(ours) > 0 {
		makeCUDADevices(ctx, cfg.Log)
	}
	return ours, locks
}

// visibleGPUs are those that CUDA_VISIBLE_DEVICES names, by index or by the
// beginning of the UUID; as in CUDA, a name that fits none ends the list.
func visibleGPUs(all []string, names string) []string {
	visible := []string{}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		i, err := strconv.Atoi(name)
		if err != nil {
			i = slices.IndexFunc(all, func(uuid string) bool { return name != "" && strings.HasPrefix(uuid, name) })
		}
		if i < 0 || i >= len(all) {
			break
		}
		visible = append(visible, all[i])
	}
	return visible
}

// lockGPUs takes GPUs for this process, and leaves out those that another instance
// on this machine has. The locks last until the process ends.
func lockGPUs(dir string, gpus []string, log logr.Logger) (ours []string, locks []*os.File) {
	for _, uuid := range gpus {
		file := filepath.Join(dir, "vernier-"+filepath.Base(uuid)+".lock")
		// One of another user may be opened, but not created again, in /tmp.
		lock, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			lock, err = os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o644)
		}
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			log.Info("another instance has a GPU", "gpu", uuid)
			lock.Close()
			continue
		}
		if err != nil {
			log.Error(err, "cannot tell whether another instance has a GPU", "gpu", uuid)
		}
		ours, locks = append(ours, uuid), append(locks, lock)
	}
	return ours, locks
}

// makeCUDADevices has the driver make the device files that it otherwise makes at
// the first use of CUDA: containers may see the devices of their start only.
func makeCUDADevices(ctx context.Context, log logr.Logger) {
	if _, err := os.Stat("/dev/nvidia-uvm"); err == nil {
		return
	}
	if err := exec.CommandContext(ctx, "nvidia-modprobe", "-c=0", "-u").Run(); err != nil {
		log.Info("cannot make /dev/nvidia-uvm; use CUDA once and start the instance again if programs do not find the GPUs", "reason", err.Error())
	}
}

// gpuBook says which pod's containers hold which GPUs. It is on disk before a
// container starts, so that no GPU is given away twice, whichever process dies.
type gpuBook struct {
	path string
	all  []string
	// shares is how many pods may hold one GPU at a time: 1, unless asked for more.
	shares int

	mu   sync.Mutex
	held map[types.UID]map[string][]string
}

// errNoGPU says that a pod asks for more GPUs than are free.
var errNoGPU = errors.New("not enough free GPUs")

func openGPUBook(path string, all []string, shares int, log logr.Logger) (*gpuBook, error) {
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
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{})
	count := limits[resourceGPU]
	used, free := b.used(), b.shares*len(b.all)
	for _, n := range used {
		free -= n
	}
	if n := int(count.Value()); n > free {
		return nil, fmt.Errorf("%w: asked for %d, free %d of %d", errNoGPU, n, free, b.shares*len(b.all))
	}
	given := map[string][]string{}
	for _, c := range allContainers(&pod.Spec) {
		n := gpuCount(c)
		if n == 0 {
			continue
		}
		gpus := b.leastUsed(used)
		if n > len(gpus) {
			return nil, fmt.Errorf("%w: container %s asks for %d different ones, of which %d are free", errNoGPU, c.Name, n, len(gpus))
		}
		given[c.Name] = gpus[:n]
		if isRegularInit(&pod.Spec, c) {
			continue // it ends before what comes later begins
		}
		for _, uuid := range gpus[:n] {
			used[uuid]++
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

// record enters what a pod holds. When it cannot be written, nothing changes.
func (b *gpuBook) record(uid types.UID, gpus map[string][]string) error {
	held := maps.Clone(b.held)
	held[uid] = gpus
	maps.DeleteFunc(held, func(_ types.UID, gpus map[string][]string) bool { return gpus == nil })
	if err := statefile.WriteJSON(b.path, held); err != nil {
		return fmt.Errorf("recording the GPU allocation: %w", err)
	}
	b.held = held
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

// Keep forgets the allocations of all pods but these.
func (b *gpuBook) Keep(uids map[types.UID]bool) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid := range b.held {
		if !uids[uid] {
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
			if slices.Contains(b.all, uuid) {
				used[uuid]++
			}
		}
	}
	return used
}

// leastUsed are the GPUs that another pod may hold, those that the fewest hold first.
func (b *gpuBook) leastUsed(used map[string]int) []string {
	free := slices.DeleteFunc(slices.Clone(b.all), func(uuid string) bool { return used[uuid] >= b.shares })
	slices.SortStableFunc(free, func(x, y string) int { return used[x] - used[y] })
	return free
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

func gpuCount(c *corev1.Container) int {
	q := c.Resources.Limits[resourceGPU]
	return int(q.Value())
}
