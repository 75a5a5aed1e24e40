// Package disktest cuts the power in tests.
package disktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Disk is an ext4 file system that is mounted until the test ends.
type Disk struct {
	Dir   string
	image string
	t     testing.TB
}

// New mounts a new file system. It needs root.
func New(t testing.TB) *Disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a disk needs root")
	}
	image := filepath.Join(t.TempDir(), "disk")
	run(t, "truncate", "-s", "64M", image)
	run(t, "mkfs.ext4", "-q", "-I", "256", image) // smaller inodes have times in seconds
	return mount(t, image)
}

// Cut returns what the disk holds if the power is cut now. ext4 gives blocks to a
// new file only when it is synced or some seconds old; until then the file is there
// and empty.
func (d *Disk) Cut() *Disk {
	d.t.Helper()
	image := filepath.Join(d.t.TempDir(), "disk")
	run(d.t, "cp", "--sparse=always", d.image, image)
	return mount(d.t, image)
}

func mount(t testing.TB, image string) *Disk {
	t.Helper()
	d := &Disk{Dir: t.TempDir(), image: image, t: t}
	// By default ext4 saves files that take the place of others, as a favour.
	run(t, "mount", "-o", "loop,noauto_da_alloc", image, d.Dir)
	t.Cleanup(func() { run(t, "umount", "--lazy", d.Dir) })
	return d
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}
