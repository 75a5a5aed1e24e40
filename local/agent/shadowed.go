package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/trainer"
)

// keepPrograms adds mounts for directories of programs that come with the image
// and that another mount would cover: the collector's may lie below /tmp, and a
// volume at /tmp.
func keepPrograms(mounts []mountPoint, dirs []string) []mountPoint {
	all := slices.Clone(mounts)
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // it is not there: nothing is covered
		}
		for _, at := range slices.Compact([]string{dir, real}) {
			covered := func(m mountPoint) bool { return !m.File && below(at, m.MountPath) }
			taken := func(m mountPoint) bool { return m.MountPath == at }
			if slices.ContainsFunc(mounts, covered) && !slices.ContainsFunc(all, taken) {
				all = append(all, mountPoint{HostPath: real, MountPath: at, ReadOnly: true})
			}
		}
	}
	return all
}

// below tells whether a path lies below a directory.
func below(path, dir string) bool {
	return path != dir && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// namedEntries is how many entries of a directory a message names.
const namedEntries = 3

// checkShadowed finds a pod whose program would not see files of this machine,
// because the collector's empty directory lies over them. On a cluster only the
// image's files could be covered; here they are the user's own.
func checkShadowed(pod *corev1.Pod) *verdict {
	for _, c := range allContainers(&pod.Spec) {
		for _, m := range c.VolumeMounts {
			if m.Name != trainer.SourceVolume {
				continue
			}
			names := entriesOf(m.MountPath)
			if len(names) == 0 {
				continue
			}
			return &verdict{Reason: trainer.ReasonDirectoryHidden, Message: fmt.Sprintf(
				"the collector mounts an empty directory over %s, which has files on this machine (%s): write the metrics to a directory of their own, for instance below %s, or mount a volume there",
				m.MountPath, strings.Join(names, ", "), filepath.Join(m.MountPath, "metrics"))}
		}
	}
	return nil
}

// entriesOf names some of what is in a directory; nothing if it is not there, or
// has no files at any depth: mount points of other pods leave such directories.
func entriesOf(dir string) []string {
	if !hasFiles(dir) {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(namedEntries) // what cannot be listed cannot be missed
	slices.Sort(names)
	return names
}

// emptyDirs is how many directories without a file are looked into.
const emptyDirs = 1000

// hasFiles tells whether there is anything but directories below dir.
func hasFiles(dir string) (found bool) {
	seen := 0
	_ = filepath.WalkDir(filepath.Clean(dir)+"/", func(_ string, e fs.DirEntry, err error) error {
		seen++
		if err == nil && !e.IsDir() || seen > emptyDirs {
			found = true
			return fs.SkipAll
		}
		return nil // what cannot be listed cannot be missed
	})
	return found
}
