package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile"
)

// How many logs of deleted pods are kept.
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

// identity says which pod a directory belongs to, for readers that find it when
// the object is gone.
type identity struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       types.UID         `json:"uid"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Archived is when the pod's object was gone; zero while it exists.
	Archived time.Time `json:"archived,omitzero"`
	Bytes    int64     `json:"bytes,omitempty"` // of the archived logs
}

func identityOf(pod *corev1.Pod) identity {
	return identity{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels}
}

const identityFile = "pod.json"

// archive keeps the logs of the pods that were deleted last, as
// <root>/<pod uid>/<container>/<run>.log beside pod.json.
type archive struct {
	root     string
	maxPods  int
	maxBytes int64

	mu   sync.Mutex
	pods []identity // oldest first
}

func openArchive(root string) (*archive, error) {
	pods, err := readArchive(root)
	if err != nil {
		return nil, fmt.Errorf("reading the archive of logs: %w", err)
	}
	return &archive{root: root, maxPods: archivePods, maxBytes: archiveBytes, pods: pods}, os.MkdirAll(root, 0o700)
}

// Take moves the logs of a pod into the archive, and removes the oldest pods
// above the limits. A pod without logs leaves nothing.
func (a *archive) Take(logs string, id identity, now time.Time) error {
	id.Archived = now
	files, err := within(logs, "*/*.log*")
	if err != nil || len(files) == 0 || id.Name == "" {
		return err
	}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			id.Bytes += info.Size()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := statefile.WriteJSON(filepath.Join(logs, identityFile), id); err != nil {
		return err
	}
	if err := os.Rename(logs, filepath.Join(a.root, string(id.UID))); err != nil {
		return err
	}
	a.pods = append(a.pods, id)
	return a.trim()
}

// trim removes the oldest pods until the limits hold.
func (a *archive) trim() error {
	var total int64
	for _, id := range a.pods {
		total += id.Bytes
	}
	var failed error
	for len(a.pods) > a.maxPods || total > a.maxBytes && len(a.pods) > 1 {
		failed = errors.Join(failed, os.RemoveAll(filepath.Join(a.root, string(a.pods[0].UID))))
		total -= a.pods[0].Bytes
		a.pods = a.pods[1:]
	}
	return failed
}

// readArchive lists the pods of an archive, oldest first. One whose identity
// cannot be read is left out.
func readArchive(root string) ([]identity, error) {
	paths, err := within(root, "*/"+identityFile)
	if err != nil {
		return nil, err
	}
	var pods []identity
	for _, path := range paths {
		var id identity
		switch err := statefile.ReadJSON(path, &id); {
		case err == nil:
			pods = append(pods, id)
		case !errors.Is(err, statefile.ErrCorrupt) && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	slices.SortStableFunc(pods, func(x, y identity) int { return x.Archived.Compare(y.Archived) })
	return pods, nil
}

// within finds the files of a folder by a pattern, sorted. The folder's own path, which
// is the user's, is no pattern.
func within(folder, pattern string) ([]string, error) {
	found, err := fs.Glob(os.DirFS(folder), pattern)
	for i, path := range found {
		found[i] = filepath.Join(folder, path)
	}
	return found, err
}

// ArchivedLog is the output of one run of one container of a pod that is gone.
type ArchivedLog struct {
	Namespace string
	Pod       string
	// Labels of the pod.
	Labels    map[string]string
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
	l := layout{root}
	pods, err := readArchive(l.archive())
	if err != nil {
		return nil, fmt.Errorf("reading the archive of logs: %w", err)
	}
	var found []ArchivedLog
	for _, id := range pods {
		if id.Namespace != namespace || (id.Labels[labelTrial] != trial && id.Labels[labelJobName] != trial) {
			continue
		}
		paths, err := within(l.archive(), path.Join(string(id.UID), cmp.Or(container, "*"), "*.log"))
		if err != nil {
			return nil, fmt.Errorf("reading the archive of logs: %w", err)
		}
		for _, file := range paths {
			if run, ok := logRunOf(file); ok {
				found = append(found, ArchivedLog{Namespace: id.Namespace, Pod: id.Name, Labels: id.Labels, Container: filepath.Base(filepath.Dir(file)),
					Run: run, Archived: id.Archived, Path: file})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y ArchivedLog) int {
		return cmp.Or(x.Archived.Compare(y.Archived), strings.Compare(x.Pod, y.Pod), strings.Compare(x.Container, y.Container), x.Run-y.Run)
	})
	return found, nil
}

// logRunOf is the number of the run whose log a file is; older parts of a log
// are not counted.
func logRunOf(path string) (int, bool) {
	run, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".log"))
	return run, err == nil
}

// trimLogs removes the logs of a container that lives, except those of a run and
// of the one before it.
func (l layout) trimLogs(pod types.UID, container string, run int) error {
	files, err := within(l.logs(pod), container+"/*.log*")
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if n, e := strconv.Atoi(name); e == nil && n < run-1 {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// Copy writes the output as text, without times and stream names.
func (l ArchivedLog) Copy(w io.Writer) error {
	for i := shim.LogMaxFiles - 1; i >= 0; i-- {
		path := l.Path
		if i > 0 {
			path += "." + strconv.Itoa(i)
		}
		if there, err := fileExists(path); err != nil || !there {
			continue
		}
		// Nothing is followed, so there is nothing to cancel.
		if err := crilogs.ReadLogs(context.Background(), path, "", &crilogs.LogOptions{}, nil, w, w); err != nil {
			return fmt.Errorf("log of container %s of pod %s/%s: %w", l.Container, l.Namespace, l.Pod, err)
		}
	}
	return nil
}

// Cut reports whether so much was written that the beginning may be gone: there
// are as many parts as are kept.
func (l ArchivedLog) Cut() (bool, error) {
	return fileExists(l.Path + "." + strconv.Itoa(shim.LogMaxFiles-1))
}

// OlderLog returns the path of the part of a container's log that came before
// what the API server shows of it, under the root of an agent: of its newest run,
// or of the one before that. It is "" when all is shown. The pod must still be
// there.
func OlderLog(root string, pod types.UID, container string, previous bool) (string, error) {
	// The names come from the API: they must not lead elsewhere.
	if !filepath.IsLocal(string(pod)) || !filepath.IsLocal(container) {
		return "", fmt.Errorf("%q of pod %q is no container", container, pod)
	}
	l := layout{root: root}
	files, err := os.ReadDir(filepath.Dir(l.log(pod, container, 0)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for older parts of a log: %w", err)
	}
	run := -1
	for _, f := range files {
		if n, ok := logRunOf(f.Name()); ok {
			run = max(run, n)
		}
	}
	if previous {
		run--
	}
	older := l.log(pod, container, run) + ".1"
	if there, err := fileExists(older); err != nil || !there || run < 0 {
		return "", err
	}
	return older, nil
}

func fileExists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
