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
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/vernier-ml/vernier/local/statefile"
)

// resourceGPU is the extended resource that whole GPUs are asked for by, and
// resourceMIG begins those of the parts that MIG divides GPUs into, named as NVIDIA's
// device plugin does in its mixed strategy: nvidia.com/mig-1g.5gb.
const (
	resourceGPU corev1.ResourceName = "nvidia.com/gpu"
	resourceMIG corev1.ResourceName = "nvidia.com/mig-"
)

// device is a GPU, or a part of one, that a program can be given.
type device struct {
	// uuid is empty where MIG divides a GPU into no parts: nothing can be given then.
	uuid     string
	resource corev1.ResourceName
	// gpu is the UUID of the GPU that a part is of.
	gpu string
}

// findGPUs lists the devices of the machine's GPUs in PCI order: from nvidia-smi, or
// from the driver's files where that is not installed; source says which. A GPU that
// MIG divides is its parts, of which there may be none. No GPU is no error.
func findGPUs(ctx context.Context) (gpus []device, source string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	smi := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "nvidia-smi", args...).Output()
		if err != nil {
			return "" // an old driver does not know what is asked for, or there is none
		}
		return string(out)
	}
	if uuids := uuidsIn(smi("--query-gpu=pci.bus_id,uuid", "--format=csv,noheader,nounits")); len(uuids) > 0 {
		return devicesOf(uuids, smi("--query-gpu=uuid,mig.mode.current", "--format=csv,noheader,nounits"), smi("-L")), "nvidia-smi"
	}
	const driver = "/proc/driver/nvidia/gpus"
	return wholeGPUs(gpusFromDriver(driver)...), driver
}

func wholeGPUs(uuids ...string) (gpus []device) {
	for _, uuid := range uuids {
		gpus = append(gpus, device{uuid: uuid, resource: resourceGPU, gpu: uuid})
	}
	return gpus
}

var (
	gpuUUID = regexp.MustCompile(`GPU-[-\w]+`)
	// Lines of nvidia-smi -L: "GPU 0: NVIDIA A100 (UUID: GPU-...)" and, below it,
	// "  MIG 1g.5gb     Device  0: (UUID: MIG-...)"; UUIDs of early drivers are
	// MIG-GPU-.../1/0.
	listedGPU = regexp.MustCompile(`^GPU\s+\d+:.*\(UUID: (GPU-[-\w]+)\)`)
	listedMIG = regexp.MustCompile(`^\s+MIG\s+(\S+)\s+Device\s+\d+:\s+\(UUID: (MIG-[-\w/]+)\)`)
)

// devicesOf are the devices of GPUs, in their order. modes has lines of a UUID and
// whether MIG is "Enabled" there; listed is what nvidia-smi -L prints.
func devicesOf(uuids []string, modes, listed string) (devices []device) {
	parts, gpu := map[string][]device{}, ""
	for line := range strings.Lines(listed) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			gpu = m[1]
		} else if m := listedMIG.FindStringSubmatch(line); m != nil && gpu != "" {
			name := resourceMIG + corev1.ResourceName(strings.ReplaceAll(m[1], "+", "."))
			parts[gpu] = append(parts[gpu], device{uuid: m[2], resource: name, gpu: gpu})
		}
	}
	divided := map[string]bool{}
	for line := range strings.Lines(modes) {
		uuid, mode, _ := strings.Cut(line, ",")
		divided[strings.TrimSpace(uuid)] = strings.TrimSpace(mode) == "Enabled"
	}
	for _, uuid := range uuids {
		switch {
		case len(parts[uuid]) > 0:
			devices = append(devices, parts[uuid]...)
		case divided[uuid]:
			devices = append(devices, device{gpu: uuid})
		default:
			devices = append(devices, wholeGPUs(uuid)...)
		}
	}
	return devices
}

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

// offeredGPUs are the devices that the node offers, with the locks that keep other
// instances from them.
func offeredGPUs(ctx context.Context, cfg Config) (ours []device, locks []*os.File) {
	var gpus []device
	if cfg.GPUs == nil {
		gpus, _ = findGPUs(ctx)
		if names, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
			gpus = visibleGPUs(gpus, names)
		}
	} else {
		gpus = namedGPUs(ctx, cfg.GPUs, cfg.Log)
	}
	gpus = slices.DeleteFunc(gpus, func(d device) bool { return d.uuid == "" })
	ours, locks = lockGPUs(os.TempDir(), gpus, cfg.Log)
	if len(ours) > 0 {
		makeCUDADevices(ctx, cfg.Log)
	}
	return ours, locks
}

// namedGPUs are the devices with these UUIDs. What a part of a GPU is asked for by is
// found on the machine, so one that is not there is left out.
func namedGPUs(ctx context.Context, uuids []string, log logr.Logger) (gpus []device) {
	var found []device
	for _, uuid := range uuids {
		if !strings.HasPrefix(uuid, "MIG-") {
			gpus = append(gpus, wholeGPUs(uuid)...)
			continue
		}
		if found == nil {
			found, _ = findGPUs(ctx)
		}
		if i := slices.IndexFunc(found, func(d device) bool { return d.uuid == uuid }); i >= 0 {
			gpus = append(gpus, found[i])
		} else {
			log.Info("nvidia-smi -L does not list a MIG device; it is not offered", "uuid", uuid)
		}
	}
	return gpus
}

// visibleGPUs are those that CUDA_VISIBLE_DEVICES names, GPUs by index or by the
// beginning of the UUID, parts of them by that of theirs; as in CUDA, a name that fits
// none ends the list.
func visibleGPUs(all []device, names string) []device {
	var gpus []string
	for _, d := range all {
		if !slices.Contains(gpus, d.gpu) {
			gpus = append(gpus, d.gpu)
		}
	}
	visible := []device{}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		fits := func(d device) bool {
			return name != "" && (strings.HasPrefix(d.uuid, name) || strings.HasPrefix(d.gpu, name))
		}
		if i, err := strconv.Atoi(name); err == nil {
			fits = func(d device) bool { return i >= 0 && i < len(gpus) && d.gpu == gpus[i] }
		}
		found := slices.DeleteFunc(slices.Clone(all), func(d device) bool { return !fits(d) })
		if len(found) == 0 {
			break
		}
		if strings.HasPrefix(name, "MIG-") || found[0].resource == resourceGPU {
			found = found[:1]
		}
		visible = append(visible, found...)
	}
	return visible
}

// lockGPUs takes devices for this process, and leaves out those that another instance
// on this machine has. The locks last until the process ends.
func lockGPUs(dir string, gpus []device, log logr.Logger) (ours []device, locks []*os.File) {
	for _, d := range gpus {
		file := filepath.Join(dir, "vernier-"+strings.ReplaceAll(d.uuid, "/", "-")+".lock")
		// One of another user may be opened, but not created again, in /tmp.
		lock, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			lock, err = os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o644)
		}
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			log.Info("another instance has a GPU", "gpu", d.uuid)
			lock.Close()
			continue
		}
		if err != nil {
			log.Error(err, "cannot tell whether another instance has a GPU", "gpu", d.uuid)
		}
		ours, locks = append(ours, d), append(locks, lock)
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
