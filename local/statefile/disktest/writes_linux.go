package disktest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EachWrite calls at when any process begins to write a file of the disk, and again
// when it begins to sync the directory of such a file, with the path of the file or
// directory. The process is held up until at returns, and so is everything that
// opens a file of the disk. After end, nothing is held up.
func (d *Disk) EachWrite(at func(path string)) (end func()) {
	d.t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_REPORT_TID|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		d.t.Fatal(fmt.Errorf("fanotify: %w", err))
	}
	events := os.NewFile(uintptr(fd), "fanotify")
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, unix.FAN_OPEN_PERM|unix.FAN_ONDIR, unix.AT_FDCWD, d.Dir); err != nil {
		d.t.Fatal(fmt.Errorf("fanotify: %w", err))
	}
	w := &writes{events: events, at: at, dirty: map[string]bool{}}
	done := make(chan error, 1)
	go func() {
		defer events.Close() // what waits goes on
		done <- w.follow()
	}()
	return func() {
		d.t.Helper()
		_ = events.Close() // a second time when it failed
		if err := <-done; !errors.Is(err, os.ErrClosed) {
			d.t.Error(err)
		}
	}
}

// writes is what is known of the writes to a disk.
type writes struct {
	events *os.File
	at     func(path string)
	dirty  map[string]bool // directories of files that were written
}

func (w *writes) follow() error {
	buf := make([]byte, 4096)
	for {
		n, err := w.events.Read(buf)
		if err != nil {
			return err
		}
		for b := bytes.NewReader(buf[:n]); b.Len() > 0; {
			var event unix.FanotifyEventMetadata
			if err := binary.Read(b, binary.NativeEndian, &event); err != nil {
				return err
			}
			if err := w.allow(event); err != nil {
				return err
			}
		}
	}
}

// allow lets an open go on once at has seen it.
func (w *writes) allow(event unix.FanotifyEventMetadata) error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", event.Fd))
	var stat unix.Stat_t
	if err = errors.Join(err, unix.Fstat(int(event.Fd), &stat)); err != nil {
		return err
	}
	flags, err := openFlags(int(event.Pid))
	if err != nil {
		return err
	}
	isDir := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case isDir && w.dirty[path]:
		delete(w.dirty, path)
		w.at(path)
	case !isDir && flags&unix.O_ACCMODE != unix.O_RDONLY:
		w.dirty[filepath.Dir(path)] = true
		w.at(path)
	}
	answer := binary.NativeEndian.AppendUint32(nil, uint32(event.Fd))
	_, err = w.events.Write(binary.NativeEndian.AppendUint32(answer, unix.FAN_ALLOW))
	return errors.Join(err, unix.Close(int(event.Fd)))
}

// openFlags are the flags of the open that a thread waits in.
func openFlags(thread int) (int64, error) {
	for {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", thread))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return unix.O_RDONLY, nil // it was killed as it waited
		}
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(data))
		if len(fields) < 5 {
			continue // it is about to wait
		}
		if fields[0] != strconv.Itoa(unix.SYS_OPENAT) {
			return unix.O_RDONLY, nil // such as an execve
		}
		return strconv.ParseInt(fields[3], 0, 64)
	}
}
