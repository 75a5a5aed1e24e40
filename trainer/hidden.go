package trainer

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Directories that must not be hidden by an empty one. For the first list, neither
// must anything below them; the second contain programs or users' files, and
// directories below them are allowed.
var (
	systemTrees       = []string{"/bin", "/boot", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/sbin"}
	systemDirectories = []string{"/dev", "/dev/pts", "/dev/shm", "/etc", "/home", "/opt", "/root", "/run", "/usr", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/share", "/var", "/var/lib", "/var/run"}
)

// scripts are the extensions of files that interpreters run.
var scripts = []string{".bash", ".ipynb", ".jar", ".jl", ".js", ".lua", ".pl", ".py", ".pyz", ".R", ".r", ".rb", ".sh"}

// checkHidden refuses to mount an empty directory over something that the container
// needs: the system, the program, or the script that it runs. Other files below dir
// may be what the program writes.
func (p pod) checkHidden(main map[string]any, where []string, dir string) error {
	const advice = "write the metrics to a directory of their own, for instance %s, or mount a volume there"
	own := path.Join(dir, "metrics", path.Base(p.c.Path))
	if p.c.Kind == TensorFlowEvent || p.c.Directory {
		own = path.Join(dir, "metrics")
	}
	system := slices.Contains(systemDirectories, dir) ||
		slices.ContainsFunc(systemTrees, func(tree string) bool { return beneath(dir, tree) })
	if system {
		if slices.ContainsFunc(systemTrees, func(tree string) bool { return beneath(dir, tree) }) {
			own = path.Join("/metrics", path.Base(p.c.Path))
		}
		return fmt.Errorf("the path %q of the %s collector: it would mount an empty directory over %s, which the container needs: "+advice, p.c.Path, p.c.Kind, dir, own)
	}
	for _, key := range []string{"command", "args"} {
		list, _ := main[key].([]any)
		for i, v := range list {
			text, _ := v.(string)
			if file := p.hides(main, dir, text, key == "command" && i == 0); file != "" {
				return fault(under(where, key, strconv.Itoa(i)), "names %s: the collector would mount an empty directory over %s and hide it: "+advice, file, dir, own)
			}
		}
	}
	return nil
}

// hides returns a file that the command names and that dir would hide.
func (p pod) hides(main map[string]any, dir, text string, program bool) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n=;&|()<>\"'`", r) })
	if program {
		words = []string{text}
	}
	workingDir, _ := main["workingDir"].(string)
	for _, word := range words {
		if !slices.Contains(scripts, path.Ext(word)) && (!program || !strings.Contains(word, "/")) {
			continue
		}
		file := word
		if !path.IsAbs(file) && path.IsAbs(workingDir) {
			file = path.Join(workingDir, file)
		}
		if path.IsAbs(file) && beneath(file, dir) && path.Clean(file) != path.Clean(p.c.Path) && !mounted(main, dir, file) {
			return file
		}
	}
	return ""
}

// mounted says whether a file below dir is on one of the user's volumes.
func mounted(main map[string]any, dir, file string) bool {
	mounts, _ := main["volumeMounts"].([]any)
	return slices.ContainsFunc(mounts, func(m any) bool {
		at, _ := at(m, "mountPath").(string)
		return at != "" && path.Clean(at) != dir && beneath(at, dir) && beneath(file, at)
	})
}
