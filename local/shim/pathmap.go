package shim

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mapPaths replaces mount paths by host paths in the arguments, the values of the
// environment and the working directory, for machines that refuse mounts.
func mapPaths(spec ContainerSpec) ContainerSpec {
	mounts := spec.allMounts()
	if len(mounts) == 0 {
		return spec
	}
	// The longest path wins: /data/cache is looked for before /data.
	slices.SortStableFunc(mounts, func(a, b Mount) int {
		return cmp.Or(cmp.Compare(len(b.MountPath), len(a.MountPath)), cmp.Compare(a.MountPath, b.MountPath))
	})
	pairs := make([]string, len(mounts))
	for i, m := range mounts {
		pairs[i] = m.MountPath + "=" + m.HostPath
	}

	spec.Argv = slices.Clone(spec.Argv)
	for i, arg := range spec.Argv {
		spec.Argv[i] = mapText(arg, mounts)
	}
	env := make([]string, 0, len(spec.Env)+1)
	for _, e := range spec.Env {
		name, value, _ := strings.Cut(e, "=")
		env = append(env, name+"="+mapText(value, mounts))
	}
	spec.Env = slices.Concat(env, []string{EnvPathMap + "=" + strings.Join(pairs, ":")})
	spec.Dir = mapText(spec.Dir, mounts)
	return spec
}

// pathText is a text as long as all of it can be one path in a command line, so that
// /data is not found in /database, /data.old or a/data.
var pathText = regexp.MustCompile(`[\w/.~+\-[:^ascii:]]+`)

// mapText replaces each mount path that stands in text as a whole path or as the
// beginning of one. What was put in is not looked at again.
func mapText(text string, longestFirst []Mount) string {
	return pathText.ReplaceAllStringFunc(text, func(path string) string {
		for _, m := range longestFirst {
			rest, found := strings.CutPrefix(path, m.MountPath)
			if found && m.MountPath != "/" && (rest == "" || rest[0] == '/') {
				return m.HostPath + rest
			}
		}
		return path
	})
}

// allMounts are the mounts with that of the termination message, paths cleaned.
func (s ContainerSpec) allMounts() []Mount {
	mounts := slices.Clone(s.Mounts)
	if s.TerminationPath != "" {
		mounts = append(mounts, Mount{
			HostPath:  s.TerminationPath,
			MountPath: cmp.Or(s.TerminationMountPath, DefaultTerminationPath),
			File:      true,
		})
	}
	for i := range mounts {
		mounts[i].MountPath = filepath.Clean(mounts[i].MountPath)
		mounts[i].HostPath = filepath.Clean(mounts[i].HostPath)
	}
	return mounts
}
