package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/local/agent"
	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile"
)

// Level is how bad a finding is.
type Level string

// The levels of findings.
const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warn" // something that trials may need does not work
	LevelFail Level = "fail" // no instance can run, or the one there is does not
)

// Finding is what Diagnose says about one matter.
type Finding struct {
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

func ok(name, format string, args ...any) Finding {
	return Finding{Name: name, Level: LevelOK, Found: fmt.Sprintf(format, args...)}
}

// needs is a finding of a level above ok, with what to do.
func needs(level Level, name, remedy, format string, args ...any) Finding {
	return Finding{Name: name, Level: level, Remedy: remedy, Found: fmt.Sprintf(format, args...)}
}

const (
	gib = 1 << 30
	// An instance takes about 730 MB, and a new one some 100 MB on disk.
	littleMemory       = gib
	littleDisk, noDisk = 5 * gib, gib
	manyRestarts       = 3
	// fewFiles is how many files at once are too few for etcd and the API server.
	fewFiles = 4096
)

// Diagnose checks this machine and the instance of a home. It changes nothing, and
// starts nothing that outlives it. dir names the folder of the binaries as for
// FindBinaries.
func Diagnose(ctx context.Context, h Home, dir string) []Finding {
	findings := []Finding{ok("system", "%s/%s %s", runtime.GOOS, runtime.GOARCH, kernel())}
	if runtime.GOOS != "linux" {
		findings[0] = needs(LevelFail, "system", "use a cluster, as a plugin of kubectl, or a Linux machine", "%s cannot run the embedded mode", runtime.GOOS)
		return findings
	}
	binaries, err := FindBinaries(dir)
	if err != nil {
		findings = append(findings, needs(LevelFail, "programs", "run make build, or set VERNIER_BIN_DIR", "%v", err))
	} else {
		findings = append(findings, ok("programs", "in %s", string(binaries)))
	}
	place := existingParent(string(h))
	findings = append(findings, homeFinding(h, place), diskFinding(place))
	findings = append(findings, limitFindings()...)
	findings = append(findings, clockFinding(time.Now()))
	if err == nil {
		findings = append(findings, machineFindings(ctx, binaries)...)
	}
	return append(findings, instanceFindings(h)...)
}

func kernel() string {
	data, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return string(bytes.TrimSpace(data))
}

// existingParent is path, or the nearest directory above it that exists.
func existingParent(path string) string {
	for !fileExists(path) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}

func homeFinding(h Home, place string) Finding {
	info, err := os.Stat(place)
	if err == nil && place == string(h) {
		err = h.refuseOthers()
	}
	switch {
	case err != nil:
		return needs(LevelFail, "home", "name another with --home", "%v", err)
	case !writable(place):
		return needs(LevelFail, "home", "name a directory of yours with --home or VERNIER_HOME", "%s cannot be written", place)
	case place == string(h) && info.Mode().Perm()&0o077 != 0:
		return needs(LevelFail, "home", "chmod 700 "+place, "%s can be read by others (mode %o)", h, info.Mode().Perm())
	case h.DBManager() == "":
		return needs(LevelWarn, "home", "name a shorter path with --home", "the path %s is too long for the socket of Katib's SDK", h)
	case place != string(h):
		return ok("home", "%s, which the first start makes", h)
	}
	return ok("home", "%s", h)
}

func diskFinding(place string) Finding {
	free, err := freeBytes(place)
	switch {
	case err != nil:
		return needs(LevelWarn, "disk", "", "the free space of %s is not known: %v", place, err)
	case free < noDisk:
		return needs(LevelFail, "disk", "free some, or name a home on another disk", "%.1f GiB are free for %s", float64(free)/gib, place)
	case free < littleDisk:
		return needs(LevelWarn, "disk", "free some: logs and checkpoints of trials come here", "%.1f GiB are free for %s", float64(free)/gib, place)
	}
	return ok("disk", "%.1f GiB are free for %s", float64(free)/gib, place)
}

// machineFindings are what the node agent finds before it starts.
func machineFindings(ctx context.Context, binaries Binaries) []Finding {
	dir, err := os.MkdirTemp("", "vernier-doctor-")
	if err != nil {
		return []Finding{needs(LevelFail, "temporary files", "make "+os.TempDir()+" writable, or set TMPDIR", "%v", err)}
	}
	defer os.RemoveAll(dir)
	survey := agent.Look(ctx, binaries.path("shim"), dir)
	findings := []Finding{memoryFinding(survey)}
	if survey.Mounts == shim.MountsNone {
		findings = append(findings, needs(LevelWarn, "mount namespaces", "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or run as root",
			"containers have no volumes at fixed paths, which are rewritten in commands instead: %v", survey.MountsErr))
	} else {
		findings = append(findings, ok("mount namespaces", "as %s", survey.Mounts))
	}
	if survey.NetworkErr != nil {
		findings = append(findings, needs(LevelWarn, "pod networks", "allow user and network namespaces and nftables, or run as root", "jobs of several pods share this machine's ports: %v", survey.NetworkErr))
	} else {
		findings = append(findings, ok("pod networks", "pods that need one can have a network of their own"))
	}
	return append(findings, gpuFinding(survey))
}

func memoryFinding(s agent.Survey) Finding {
	const remedy = "an instance takes about 0.8 GiB beside its trials: end other programs"
	free := availableMemory()
	switch {
	case s.MemoryErr != nil:
		return needs(LevelWarn, "cpu and memory", "name the memory with vernier up --memory", "%v", s.MemoryErr)
	case free > 0 && min(free, s.Memory) < littleMemory:
		return needs(LevelWarn, "cpu and memory", remedy, "%d cores; %.1f of %.1f GiB are free", s.CPUs, float64(free)/gib, float64(s.Memory)/gib)
	}
	return ok("cpu and memory", "%d cores, %.1f GiB within the limits of control groups; %.1f GiB are free", s.CPUs, float64(s.Memory)/gib, float64(free)/gib)
}

// availableMemory is what programs can still have, in bytes; 0 if it is not known.
func availableMemory() (bytes int64) {
	data, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(data)) {
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &bytes); n == 1 {
			return bytes << 10
		}
	}
	return 0
}

func gpuFinding(s agent.Survey) Finding {
	visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
	switch {
	case len(s.GPUs) > 0 && set:
		return ok("gpus", "%d by %s, of which CUDA_VISIBLE_DEVICES=%q is offered", len(s.GPUs), s.GPUSource, visible)
	case len(s.GPUs) > 0:
		return ok("gpus", "%d by %s", len(s.GPUs), s.GPUSource)
	case len(devices) > 0:
		return needs(LevelWarn, "gpus", "run nvidia-smi: it says what is wrong; or name their UUIDs with vernier up --gpus", "%s exist, but neither nvidia-smi nor the driver's files name a GPU", strings.Join(devices, " "))
	}
	return ok("gpus", "none: neither nvidia-smi nor %s names one", s.GPUSource)
}

// instanceFindings are about the instance of a home, running or not.
func instanceFindings(h Home) []Finding {
	status, err := ReadStatus(h)
	if err != nil {
		return []Finding{needs(LevelFail, "instance", "vernier down, then vernier up", "%v", err)}
	}
	why, _, _ := strings.Cut(status.Message, "\n")
	var findings []Finding
	switch status.State {
	case StateReady:
		findings = append(findings, ok("instance", "ready since %s", status.Ready.Format(time.RFC3339)))
	case StateStopped:
		findings = append(findings, ok("instance", "none runs in this home"), portsFinding(h))
	case StateFailed:
		findings = append(findings, needs(LevelFail, "instance", "read "+h.path("logs")+", then vernier up", "it failed: %s", why))
	default:
		findings = append(findings, needs(LevelWarn, "instance", "wait, then ask again", "%s: %s", status.State, cmp.Or(why, "no more is known")))
	}
	for _, c := range status.Components {
		log := "read " + h.log(c.Name)
		switch {
		case !c.Ready || c.PID == 0:
			findings = append(findings, needs(LevelFail, c.Name, log, "not ready: %s", cmp.Or(c.LastError, "no more is known")))
		case c.Restarts > manyRestarts:
			findings = append(findings, needs(LevelWarn, c.Name, log, "restarted %d times, last because %s", c.Restarts, c.LastError))
		default:
			findings = append(findings, ok(c.Name, "ready, %d MB, %d restarts", c.ResidentBytes>>20, c.Restarts))
		}
	}
	return append(findings, storeFinding(h))
}

func portsFinding(h Home) Finding {
	var before ports
	err := statefile.ReadJSON(h.path(portsFile), &before)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrCorrupt) {
		_, err = choosePorts(before, notAgain)
	}
	if err != nil {
		return needs(LevelFail, "ports", "end what listens there: ss -ltnp", "%v", err)
	}
	return ok("ports", "%d on 127.0.0.1 are free", len(before.all()))
}

// storeFinding reads the head of the file of the points.
func storeFinding(h Home) Finding {
	const magic = "SQLite format 3\x00"
	file, err := os.Open(h.StorePath())
	if errors.Is(err, fs.ErrNotExist) {
		return ok("store", "no points yet")
	}
	if err != nil {
		return needs(LevelFail, "store", "make it readable for you", "%v", err)
	}
	defer file.Close()
	info, err := file.Stat()
	head := make([]byte, len(magic))
	if n, readErr := io.ReadFull(file, head); err != nil || readErr != nil && n > 0 || n > 0 && string(head) != magic {
		return needs(LevelFail, "store", "restore it from a backup (docs/stores.md), or move it away to start anew", "%s is not a database of SQLite: %v", h.StorePath(), errors.Join(err, readErr))
	}
	return ok("store", "%s, %.1f MB", h.StorePath(), float64(info.Size())/1e6)
}
