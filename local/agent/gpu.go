package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
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

// lockDir is where all instances of the machine lock GPUs. It is not TMPDIR, which batch
// systems set for each job, and users for each shell.
const lockDir = "/tmp"

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
	ours, locks = lockGPUs(lockDir, gpus, cfg.Log)
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
