package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors of an entering process.
const (
	entryFD  = 3 // the entry, as JSON
	reportFD = 4 // why it failed; closed by a successful execve
	rootFD   = 4 // the container's root, where one is joined
)

// entry tells `shim enter` what to become.
type entry struct {
	Argv     []string  `json:"argv"`
	Env      []string  `json:"env"`
	Dir      string    `json:"dir"`
	Mounts   []Mount   `json:"mounts"`
	Staging  string    `json:"staging"`
	Identity *identity `json:"identity,omitempty"`
	User     bool      `json:"user,omitempty"` // inside a user namespace of ours
	// ReadOnly says that nothing but the mounts may be written to.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Dropped are the capabilities that root does without.
	Dropped []int `json:"dropped,omitempty"`
	// Join is set to run beside a container, in the root on rootFD, with no mounts
	// of its own.
	Join bool `json:"join,omitempty"`
	// Parent is the process that this one must not outlive. 0: none, and failures
	// go to standard error.
	Parent int `json:"parent,omitempty"`
}

// entryOf is the entry of a prepared spec.
func entryOf(spec ContainerSpec, mode MountMode) (entry, error) {
	who, err := identityOf(spec)
	e := entry{Argv: spec.Argv, Env: spec.Env, Dir: spec.Dir, Identity: who, User: mode == MountsUser, Dropped: spec.DropCapabilities}
	if mode != MountsNone {
		e.Mounts, e.ReadOnly = spec.allMounts(), spec.ReadOnly
	}
	return e, err
}

// Enter makes the calling process, which must be in a fresh mount namespace where it
// is to mount something, into the program of the entry on descriptor 3. It returns only on failure, with an
// exit code.
func Enter() int {
	// Privileges and the death signal belong to a thread: stay on this one.
	runtime.LockOSThread()
	e, err := readEntry()
	if err == nil {
		err = e.run()
	}
	if e.Parent != 0 {
		f := os.NewFile(reportFD, "report")
		fmt.Fprint(f, err)
		f.Close()
		return ExitCodeStartError
	}
	fmt.Fprintln(os.Stderr, "shim:", err)
	if errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

func readEntry() (e entry, err error) {
	f := os.NewFile(entryFD, "entry")
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return e, fmt.Errorf("read what to run: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("read what to run: %w", err)
	}
	return e, nil
}

func (e entry) run() error {
	if err := sealDescriptors(); err != nil {
		return err
	}
	if e.Join {
		// A root in another mount namespace: no setns, which a program of several
		// threads may not use for user namespaces.
		if err := errors.Join(unix.Fchdir(rootFD), unix.Chroot(".")); err != nil {
			return fmt.Errorf("enter the container's file system: %w", err)
		}
	} else if len(e.Mounts) > 0 || e.ReadOnly {
		if err := mountAll(e.Mounts, e.Staging, e.ReadOnly); err != nil {
			return err
		}
	}
	if err := e.drop(); err != nil {
		return err
	}
	if err := os.Chdir(e.Dir); err != nil {
		if err := checkDir(e.Dir); err != nil {
			return err
		}
		return fmt.Errorf("the working directory: %w", err)
	}
	path, err := findProgram(e.Argv[0], e.Env)
	if err != nil {
		return err
	}
	if e.Parent != 0 {
		// Changing the user cleared what the shim had set.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("tie the container to the shim: %w", err)
		}
		if os.Getppid() != e.Parent {
			return errors.New("the shim ended meanwhile")
		}
	}
	return explainExec(path, syscall.Exec(path, e.Argv, e.Env))
}

// drop gives up what was needed for the mounts.
func (e entry) drop() error {
	if e.User && os.Geteuid() != 0 {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
		return nil
	}
	for _, c := range e.Dropped {
		// Root gets at execve what is in this set, and nothing else.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // not known here
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if e.Identity == nil {
		return nil
	}
	if err := syscall.Setgroups(e.Identity.Groups); err != nil {
		return fmt.Errorf("set the groups %v: %w", e.Identity.Groups, err)
	}
	if err := syscall.Setgid(e.Identity.GID); err != nil {
		return fmt.Errorf("set the group %d: %w", e.Identity.GID, err)
	}
	if err := syscall.Setuid(e.Identity.UID); err != nil {
		return fmt.Errorf("set the user %d: %w", e.Identity.UID, err)
	}
	return nil
}

// file puts the entry into memory that a child can read on a descriptor. A pipe
// would not do: an environment may be larger than its buffer.
func (e entry) file() (*os.File, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("entry", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "entry")
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// namespaces adds to attr what a mode needs.
func namespaces(attr *syscall.SysProcAttr, mode MountMode) {
	if mode == MountsNone {
		return
	}
	attr.Cloneflags = unix.CLONE_NEWNS
	if mode != MountsUser {
		return
	}
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// execve of `shim enter` would take the new namespace's capabilities away.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE}
}

// identity is who a container runs as. nil means: as the shim.
type identity struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"`
}

// identityOf says who a spec wants to run as, or why that cannot be.
func identityOf(spec ContainerSpec) (*identity, error) {
	if spec.UID == nil && spec.GID == nil && len(spec.SupplementalGroups) == 0 {
		return nil, nil
	}
	own := identity{UID: os.Geteuid(), GID: os.Getegid()}
	want := own
	if spec.UID != nil {
		want.UID, want.GID = int(*spec.UID), 0
		if want.UID == own.UID {
			want.GID = own.GID
		}
	}
	if spec.GID != nil {
		want.GID = int(*spec.GID)
	}
	for _, g := range spec.SupplementalGroups {
		want.Groups = append(want.Groups, int(g))
	}
	if want.UID == own.UID && want.GID == own.GID && len(want.Groups) == 0 {
		return nil, nil
	}
	if own.UID == 0 {
		return &want, nil
	}

	groups, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	groups = append(groups, own.GID)
	foreign := func(g int) bool { return !slices.Contains(groups, g) }
	if want.UID == own.UID && want.GID == own.GID && !slices.ContainsFunc(want.Groups, foreign) {
		return nil, nil
	}
	return nil, fmt.Errorf("run as user %d with group %d and the groups %v: only root may change these, and this node runs as user %d with group %d and the groups %v: %w",
		want.UID, want.GID, want.Groups, own.UID, own.GID, groups, os.ErrPermission)
}

// defaultPath is searched when the environment has no PATH, as container runtimes do.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// checkDir says why a directory cannot be a working directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist: %w", dir, err)
	case err != nil:
		return fmt.Errorf("the working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the working directory %s is not a directory: %w", dir, syscall.ENOTDIR)
	}
	return nil
}

// findProgram resolves a command with the PATH of env. One with a slash is relative
// to the working directory, as is a relative directory of PATH.
func findProgram(command string, env []string) (string, error) {
	search := defaultPath
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			search = value // the last one counts, as for execve's reader
		}
	}
	dirs := filepath.SplitList(search)
	problem := fmt.Errorf("not found in PATH %s: %w", search, os.ErrNotExist)
	if strings.Contains(command, "/") {
		dirs = []string{""}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, command)
		err := checkProgram(path)
		if err == nil {
			return path, nil
		}
		// A directory of PATH that may not be searched hides nothing of ours.
		if unseen := (*fs.PathError)(nil); dir == "" || !errors.As(err, &unseen) {
			problem = err
		}
	}
	return "", fmt.Errorf("command %q: %w", command, problem)
}

func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: %w", path, syscall.EACCES)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable (mode %#o); try chmod +x: %w", path, info.Mode().Perm(), syscall.EACCES)
	}
	return nil
}

// explainExec says what execve's error means for a program that findProgram found.
func explainExec(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s exists, but the interpreter in its first line, or its loader, does not: %w", path, err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is no program for this machine; a script needs a first line like #!/bin/sh: %w", path, err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s: the arguments and the environment are too long together: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// sealDescriptors keeps what this process inherited, beyond its three streams,
// from the programs that it starts.
func sealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	// Linux before 5.11.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
