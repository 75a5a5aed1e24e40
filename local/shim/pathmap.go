package shim

import (
	"cmp"
	"path/filepath"
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

// mapText replaces each mount path that stands in text as a whole path or as the
// beginning of one. What was put in is not looked at again.
func mapText(text string, longestFirst []Mount) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		m, found := mountAt(text, i, longestFirst)
		if !found {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(m.HostPath)
		i += len(m.MountPath)
	}
	return out.String()
}

func mountAt(text string, i int, longestFirst []Mount) (Mount, bool) {
	if text[i] != '/' || i > 0 && (text[i-1] == '/' || nameByte(text[i-1])) {
		return Mount{}, false
	}
	for _, m := range longestFirst {
		rest, found := strings.CutPrefix(text[i:], m.MountPath)
		if found && m.MountPath != "/" && (rest == "" || !nameByte(rest[0])) {
			return m, true
		}
	}
	return Mount{}, false
}

// nameByte tells whether a byte belongs to a file's name in a command line, so
// that /data is not found in /database, /data.old or a/data.
func nameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' ||
		b == '_' || b == '-' || b == '.' || b == '~' || b == '+' || b >= 0x80
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
