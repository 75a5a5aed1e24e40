package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// surface is what a directory tree of the new mount namespace belongs to.
type surface int

const (
	host   surface = iota // the machine's own files: must not change
	stand                 // a tmpfs of ours that stands in for a directory
	volume                // a volume: missing directories are made in it, as runc does
)

// mounter builds the files of a container in a fresh mount namespace.
type mounter struct {
	staging  string // an existing directory where a new root can be built
	surfaces map[string]surface
	readOnly []string // what to make read-only once everything is in place
	oldRoot  string   // where the machine's root hangs until the end
}

// mountAll makes the mounts. It changes the namespace of the calling process.
// With readOnly, nothing but the mounts, /dev and /proc can be written to.
func mountAll(mounts []Mount, staging string, readOnly bool) error {
	m := &mounter{staging: staging, surfaces: map[string]surface{"/": host}}
	// Later changes of the machine's mounts may come in; nothing goes out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	mounts = slices.Clone(mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(a.MountPath, b.MountPath) })

	// Sources are opened first: a mount may cover the path of another's source.
	sources := make([]*os.File, len(mounts))
	for i, v := range mounts {
		f, err := openSource(v)
		if err != nil {
			return err
		}
		defer f.Close()
		sources[i] = f
	}
	for _, dir := range splits(mounts) {
		err := error(nil)
		if dir == "/" {
			err = m.newRoot()
		} else {
			err = m.split(dir)
		}
		if err != nil {
			return fmt.Errorf("stand in for %s: %w", dir, err)
		}
	}
	for i, v := range mounts {
		if err := m.mount(v, sources[i]); err != nil {
			return fmt.Errorf("mount %s at %s: %w", v.HostPath, v.MountPath, err)
		}
	}
	if err := m.finish(); err != nil || !readOnly {
		return err
	}
	return m.lockRoot()
}

func openSource(v Mount) (*os.File, error) {
	if !filepath.IsAbs(v.MountPath) || v.MountPath == "/" {
		return nil, fmt.Errorf("mount %s: the mount path %q must be absolute and not the root", v.HostPath, v.MountPath)
	}
	f, err := os.OpenFile(v.HostPath, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("volume for %s: %w", v.MountPath, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("volume for %s: %w", v.MountPath, err)
	}
	if info.IsDir() == v.File {
		return nil, fmt.Errorf("volume for %s: %s is %s", v.MountPath, v.HostPath, kindOf(info))
	}
	return f, nil
}

func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "a directory"
	}
	return "not a directory"
}

// makeMountPoints makes the missing mount paths on the machine where this user may
// do so, as container runtimes do: what a program writes beside a volume then stays.
// It returns the directories that need a stand-in instead.
func makeMountPoints(mounts []Mount) []string {
	for _, v := range mounts {
		dir := dirToMake(v)
		_, missing, err := deepest(v.MountPath)
		if !filepath.IsAbs(dir) || err != nil || missing == "" || inOther(v, mounts) || os.MkdirAll(dir, 0o755) != nil {
			continue
		}
		if v.File && dir == filepath.Dir(v.MountPath) {
			_ = touch(v.MountPath) // if it may not be made, there is a stand-in
		}
	}
	return splits(mounts)
}

// clusterDirs are where programs look to find out whether they run in a cluster. On
// the machine they must not appear, or every program of it would believe so.
var clusterDirs = []string{"/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io"}

// dirToMake is the directory to make for a mount path: the path itself, that of a
// file, or the last one above a cluster's.
func dirToMake(v Mount) string {
	dir := v.MountPath
	if v.File {
		dir = filepath.Dir(dir)
	}
	for _, cluster := range clusterDirs {
		if inside(dir, cluster) {
			return filepath.Dir(cluster)
		}
	}
	return dir
}

// inOther reports whether a mount path lies inside another volume.
func inOther(v Mount, mounts []Mount) bool {
	return slices.ContainsFunc(mounts, func(o Mount) bool {
		return o.MountPath != v.MountPath && inside(v.MountPath, o.MountPath)
	})
}

// splits are the directories of the machine in which a mount path is missing,
// parents before children, because a stand-in binds what it finds.
func splits(mounts []Mount) []string {
	var dirs []string
	for _, v := range mounts {
		if existing, missing, err := deepest(v.MountPath); err == nil && missing != "" && !inOther(v, mounts) {
			dirs = append(dirs, existing)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// deepest splits a path into the part that exists, free of symbolic links, and
// the rest.
func deepest(path string) (existing, missing string, err error) {
	for existing = path; ; existing = filepath.Dir(existing) {
		real, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return real, missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || existing == "/" {
			return "", "", err
		}
		if target, e := os.Readlink(existing); e == nil {
			return "", "", fmt.Errorf("%s is a symbolic link to %s, which does not exist", existing, target)
		}
		missing = filepath.Join(filepath.Base(existing), missing)
	}
}

func fdPath(f *os.File, elements ...string) string {
	return filepath.Join(append([]string{fmt.Sprintf("/proc/self/fd/%d", f.Fd())}, elements...)...)
}

// mount binds one volume.
func (m *mounter) mount(v Mount, source *os.File) error {
	existing, missing, err := deepest(v.MountPath)
	if err != nil {
		return err
	}
	target := existing
	if missing != "" {
		if target, err = m.make(existing, missing, v.File); err != nil {
			return err
		}
	} else if info, err := os.Stat(existing); err != nil {
		return err
	} else if info.IsDir() == v.File {
		return fmt.Errorf("on this machine %s is %s", existing, kindOf(info))
	}
	flags := uintptr(unix.MS_BIND)
	if !v.File {
		flags |= unix.MS_REC
	}
	if err := unix.Mount(fdPath(source), target, "", flags, ""); err != nil {
		return err
	}
	m.surfaces[target] = volume
	if v.ReadOnly {
		m.readOnly = append(m.readOnly, target)
	}
	return nil
}

// make makes a missing path below a directory, without touching the machine.
func (m *mounter) make(dir, missing string, file bool) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("on this machine %s is not a directory", dir)
	}
	if m.surface(dir) == host {
		if err := m.split(dir); err != nil { // a symbolic link inside a volume led here
			return "", fmt.Errorf("stand in for %s: %w", dir, err)
		}
	}
	target := filepath.Join(dir, missing)
	if !file {
		return target, os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	return target, touch(target)
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// surface finds what the directory belongs to: its nearest mount that we made.
func (m *mounter) surface(dir string) surface {
	for ; ; dir = filepath.Dir(dir) {
		if s, ok := m.surfaces[dir]; ok {
			return s
		}
	}
}

// split puts a tmpfs with the same entries in the place of a directory.
func (m *mounter) split(dir string) error {
	old, err := os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	return m.standIn(old, dir, dir)
}

// standIn mounts a tmpfs at the path at and fills it with the entries of old. The
// container will know it as name.
func (m *mounter) standIn(old *os.File, at, name string) error {
	info, err := old.Stat()
	if err != nil {
		return err
	}
	entries, err := old.ReadDir(-1)
	if err != nil {
		return err
	}
	writable := unix.Faccessat(unix.AT_FDCWD, fdPath(old), unix.W_OK, 0) == nil
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	if at != name {
		// at lies below old: binding its parent must not bind it too.
		if err := unix.Mount("", at, "", unix.MS_UNBINDABLE, ""); err != nil {
			return err
		}
	}
	m.surfaces[name] = stand
	for _, e := range entries {
		if err := m.keep(old, e, at, name); err != nil {
			return fmt.Errorf("keep %s: %w", filepath.Join(name, e.Name()), err)
		}
	}
	if st, ok := info.Sys().(*unix.Stat_t); ok && os.Geteuid() == 0 {
		_ = os.Chown(at, int(st.Uid), int(st.Gid)) // ids that are not mapped here stay ours
	}
	if err := os.Chmod(at, info.Mode()); err != nil {
		return err
	}
	if !writable {
		m.readOnly = append(m.readOnly, name)
	}
	return nil
}

// keep makes one entry of a directory appear on the tmpfs that stands in for it.
func (m *mounter) keep(old *os.File, e fs.DirEntry, at, name string) error {
	source, target := fdPath(old, e.Name()), filepath.Join(at, e.Name())
	flags := uintptr(unix.MS_BIND)
	var err error
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(source)
		if err == nil {
			err = os.Symlink(link, target)
		}
		return ignoreGone(err)
	case e.IsDir():
		flags |= unix.MS_REC
		err = os.Mkdir(target, 0o755)
		m.surfaces[filepath.Join(name, e.Name())] = host
	default:
		if e.Type()&fs.ModeDevice != 0 && useless(source) {
			return nil
		}
		err = touch(target)
	}
	if err != nil {
		return err
	}
	return ignoreGone(unix.Mount(source, target, "", flags, ""))
}

// ignoreGone accepts that an entry vanished between listing and binding it.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// useless tells devices that no container needs, of which a machine has a hundred:
// consoles, loop and memory disks, and what this user may not open. Each device
// kept costs a mount.
func useless(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	major := unix.Major(st.Rdev)
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && (major == 4 || major == 7) ||
		st.Mode&unix.S_IFMT == unix.S_IFBLK && (major == 1 || major == 7 || major == 43) {
		return true
	}
	return unix.Access(path, unix.R_OK) != nil && unix.Access(path, unix.W_OK) != nil
}

// newRoot replaces "/" by a tmpfs with the same entries. The old root is kept
// reachable until finish, because sources may lie on it.
func (m *mounter) newRoot() error {
	old, err := os.OpenFile("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	if err := m.standIn(old, m.staging, "/"); err != nil {
		return err
	}
	m.oldRoot = "/.host"
	put := filepath.Join(m.staging, m.oldRoot)
	if err := os.Mkdir(put, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(m.staging, put); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_PRIVATE, "")
}

// finish drops the old root and makes read-only what has to be.
func (m *mounter) finish() error {
	if m.oldRoot != "" {
		if err := unix.Unmount(m.oldRoot, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("drop the old root: %w", err)
		}
		if err := os.Remove(m.oldRoot); err != nil {
			return err
		}
	}
	for _, path := range m.readOnly {
		if err := makeReadOnly(path); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	return nil
}

// inside tells whether path is dir or lies below it.
func inside(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}
