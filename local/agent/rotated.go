package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/shim"
)

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
		if n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".log")); err == nil {
			run = max(run, n)
		}
	}
	if previous {
		run--
	}
	if run < 0 {
		return "", nil
	}
	return existing(l.log(pod, container, run) + ".1")
}

// Cut says whether so much was written that the beginning may be gone: there are
// as many parts as are kept.
func (l ArchivedLog) Cut() (bool, error) {
	path, err := existing(l.Path + "." + strconv.Itoa(shim.DefaultLogMaxFiles-1))
	return path != "", err
}

// existing is the path, or "" when there is nothing.
func existing(path string) (string, error) {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking for older parts of a log: %w", err)
	}
	return path, nil
}
