package agent

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How much output of pods that are gone is kept.
const (
	archivePods  = 2000
	archiveBytes = 1 << 30
)

// Labels that tie a pod to its trial: the trial's own, and the job's, which
// has the trial's name.
const (
	labelTrial   = "katib.kubeflow.org/trial"
	labelJobName = "batch.kubernetes.io/job-name"
)

// archiveEntry is the index of one pod's directory:
// logs/<namespace>/<pod>/<container>-<run>.log beside index.json.
type archiveEntry struct {
	Namespace string            `json:"namespace"`
	Pod       string            `json:"pod"`
	UID       types.UID         `json:"uid"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Archived is when the pod's object was gone.
	Archived time.Time `json:"archived"`
	Bytes    int64     `json:"bytes"`
	Logs     []logFile `json:"logs"`
}

type logFile struct {
	Container string `json:"container"`
	Run       int    `json:"run"`
	File      string `json:"file"`
}

const archiveIndex = "index.json"

// archive keeps the logs of the newest pods that are gone.
type archive struct {
	root     string
	maxPods  int
	maxBytes int64

	mu      sync.Mutex
	entries []archiveEntry // oldest first
	bytes   int64
}

func openArchive(root string) (*archive, error) {
	a := &archive{root: root, maxPods: archivePods, maxBytes: archiveBytes}
	entries, err := readArchive(root, "*")
	if err != nil {
		return nil, fmt.Errorf("reading the archive of logs: %w", err)
	}
	slices.SortFunc(entries, func(x, y archiveEntry) int { return x.Archived.Compare(y.Archived) })
	a.entries = entries
	for _, e := range entries {
		a.bytes += e.Bytes
	}
	return a, nil
}

func (a *archive) dir(namespace, pod string) string { return filepath.Join(a.root, namespace, pod) }

// Take moves the logs of a pod into the archive, and removes the oldest pods
// above the limits. A pod without logs leaves nothing.
func (a *archive) Take(logs string, pod *corev1.Pod, now time.Time) error {
	if pod.Name == "" || pod.Namespace == "" {
		return nil
	}
	entry := archiveEntry{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Labels: pod.Labels, Archived: now}
	files, err := filepath.Glob(filepath.Join(logs, "*", "*.log*"))
	if err != nil || len(files) == 0 {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	dir := a.dir(pod.Namespace, pod.Name)
	// A pod of this name may be there already: the newest counts.
	if err := a.drop(func(e archiveEntry) bool { return e.Namespace == pod.Namespace && e.Pod == pod.Name }); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, path := range files {
		container, base := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		name := container + "-" + base
		if info, err := os.Stat(path); err == nil {
			entry.Bytes += info.Size()
		}
		if err := os.Rename(path, filepath.Join(dir, name)); err != nil {
			return err
		}
		if number, err := strconv.Atoi(strings.TrimSuffix(base, ".log")); err == nil {
			entry.Logs = append(entry.Logs, logFile{Container: container, Run: number, File: name})
		}
	}
	if err := writeJSON(filepath.Join(dir, archiveIndex), entry, false); err != nil {
		return err
	}
	a.entries = append(a.entries, entry)
	a.bytes += entry.Bytes
	return a.trim()
}

// trim removes the oldest pods until the limits hold.
func (a *archive) trim() error {
	n, bytes := 0, a.bytes
	for len(a.entries)-n > a.maxPods || (bytes > a.maxBytes && len(a.entries)-n > 1) {
		bytes -= a.entries[n].Bytes
		n++
	}
	if n == 0 {
		return nil
	}
	limit := a.entries[n-1].Archived
	seen := 0
	return a.drop(func(e archiveEntry) bool {
		seen++
		return seen <= n && !e.Archived.After(limit)
	})
}

func (a *archive) drop(which func(archiveEntry) bool) error {
	var failed error
	kept := a.entries[:0]
	for _, e := range a.entries {
		if which(e) {
			failed = errors.Join(failed, os.RemoveAll(a.dir(e.Namespace, e.Pod)))
			a.bytes -= e.Bytes
			continue
		}
		kept = append(kept, e)
	}
	a.entries = kept
	return failed
}

func readArchive(root, namespace string) ([]archiveEntry, error) {
	paths, err := filepath.Glob(filepath.Join(root, namespace, "*", archiveIndex))
	if err != nil {
		return nil, err
	}
	var entries []archiveEntry
	for _, path := range paths {
		var e archiveEntry
		if err := readJSON(path, &e); err != nil {
			return nil, err
		}
		if e.Pod != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// ArchivedLog is the output of one run of one container of a pod that is gone.
type ArchivedLog struct {
	Namespace string
	Pod       string
	Container string
	// Run counts the container's starts from 0.
	Run int
	// Archived is when the pod was gone.
	Archived time.Time
	// Path of the log, in CRI format. Older parts of a long log lie beside it as
	// Path.1, Path.2 and so on.
	Path string
}

// ReadArchivedLogs finds the logs of a trial's pods that are gone, under the
// root of an agent: of one container, or of all when container is empty.
// Oldest pods come first. No logs are no error.
func ReadArchivedLogs(root, namespace, trial, container string) ([]ArchivedLog, error) {
	logs := filepath.Join(root, "logs")
	entries, err := readArchive(logs, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the archive of logs: %w", err)
	}
	var found []ArchivedLog
	for _, e := range entries {
		if e.Namespace != namespace || (e.Labels[labelTrial] != trial && e.Labels[labelJobName] != trial) {
			continue
		}
		for _, l := range e.Logs {
			if container == "" || container == l.Container {
				found = append(found, ArchivedLog{Namespace: e.Namespace, Pod: e.Pod, Container: l.Container, Run: l.Run,
					Archived: e.Archived, Path: filepath.Join(logs, e.Namespace, e.Pod, l.File)})
			}
		}
	}
	slices.SortFunc(found, func(x, y ArchivedLog) int {
		return cmp.Or(x.Archived.Compare(y.Archived), strings.Compare(x.Pod, y.Pod), strings.Compare(x.Container, y.Container), x.Run-y.Run)
	})
	return found, nil
}

// WriteTo writes the output as text, without times and stream names.
func (l ArchivedLog) WriteTo(w io.Writer) (int64, error) {
	var parts []string
	for i := 1; ; i++ {
		path := l.Path + "." + strconv.Itoa(i)
		if _, err := os.Stat(path); err != nil {
			break
		}
		parts = append(parts, path)
	}
	slices.Reverse(parts)
	var total int64
	for _, path := range append(parts, l.Path) {
		n, err := copyText(w, path)
		total += n
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return total, fmt.Errorf("log of container %s of pod %s/%s: %w", l.Container, l.Namespace, l.Pod, err)
		}
	}
	return total, nil
}

func copyText(w io.Writer, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var total int64
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadString('\n')
		if text, ok := criText(line); ok {
			n, err := io.WriteString(w, text)
			total += int64(n)
			if err != nil {
				return total, err
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
