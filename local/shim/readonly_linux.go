package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mountName undoes how /proc/self/mountinfo writes a path.
var mountName = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// lockRoot makes every mount read-only but the volumes, /dev and /proc.
func (m *mounter) lockRoot() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	m.surfaces["/dev"], m.surfaces["/proc"] = volume, volume
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return fmt.Errorf("not a line of mountinfo: %q", line)
		}
		path := mountName.Replace(fields[4])
		if m.inVolume(path) {
			continue
		}
		// One that another mount covers, or that this user may not look at, cannot be
		// written to either.
		if err := makeReadOnly(path); err != nil && !errors.Is(err, errUnreachable) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	return nil
}

func (m *mounter) inVolume(path string) bool {
	for target, kind := range m.surfaces {
		if kind == volume && inside(path, target) {
			return true
		}
	}
	return false
}

// errUnreachable says that a mount cannot be looked at.
var errUnreachable = errors.New("the mount cannot be reached")

// makeReadOnly keeps the other flags of the mount: in a user namespace they are
// locked, and a remount without them is refused.
func makeReadOnly(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		for _, unreachable := range []error{fs.ErrNotExist, unix.EACCES, unix.ENOTCONN, unix.ESTALE} {
			if errors.Is(err, unreachable) {
				return errUnreachable
			}
		}
		return err
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY)
	for _, f := range []struct {
		has int64
		set uintptr
	}{
		{unix.ST_NOSUID, unix.MS_NOSUID}, {unix.ST_NODEV, unix.MS_NODEV}, {unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME}, {unix.ST_NODIRATIME, unix.MS_NODIRATIME}, {unix.ST_RELATIME, unix.MS_RELATIME},
	} {
		if st.Flags&f.has != 0 {
			flags |= f.set
		}
	}
	return unix.Mount("", path, "", flags, "")
}
