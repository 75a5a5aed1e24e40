package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
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
	// Join is set to run beside a container, in the root on rootFD, with no mounts
	// of its own.
	Join bool `json:"join,omitempty"`
	// Parent is the process that this one must not outlive. 0: none, and failures
	// go to standard error.
	Parent int `json:"parent,omitempty"`
}

// Enter makes the calling process, which must be in a fresh mount namespace, into
// the program of the entry on descriptor 3. It returns only on failure, with an
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
	} else if err := mountAll(e.Mounts, e.Staging); err != nil {
		return err
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
	path, err := findProgram(e.Argv[0], e.Env, e.Dir)
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
