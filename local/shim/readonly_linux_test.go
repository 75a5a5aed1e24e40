package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestAReadOnlyRootLeavesTheVolumes(t *testing.T) {
	mode := mountMode(t)
	outside, volume, sealed := t.TempDir(), t.TempDir(), t.TempDir()
	p := newPod(t, mode)
	spec := p.shell(`for d in ` + outside + ` /vernier-test/data /vernier-test/sealed; do if (: > $d/new) 2>/dev/null; then rm $d/new; echo written; else echo refused; fi; done; echo x > /dev/null; echo message > /dev/termination-log`)
	spec.ReadOnly, spec.TerminationPath = true, filepath.Join(p.Dir(), "message")
	spec.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/data"}, {HostPath: sealed, MountPath: "/vernier-test/sealed", ReadOnly: true}}
	if got := p.run(spec); got.Reason != ReasonCompleted || got.TerminationMessage != "message\n" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff("refused\nwritten\nrefused\n", p.output("main", 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	spec.Run, spec.ReadOnly = 1, false
	p.run(spec)
	if got := p.output("main", 0); !strings.HasSuffix(got, "written\nwritten\nrefused\n") {
		t.Errorf("another run without it: %q", got)
	}
}

// A FUSE file system whose process has died does not answer.
func TestADeadMountDoesNotKeepAReadOnlyRootAway(t *testing.T) {
	mode := mountMode(t)
	dead := t.TempDir()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	err = unix.Mount("fuse", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
	fuse.Close()
	if err != nil {
		t.Skip(err) // not as an ordinary user
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dead, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Statfs(dead, new(unix.Statfs_t)); !errors.Is(err, unix.ENOTCONN) {
		t.Fatalf("the mount is not dead: %v", err)
	}
	p := newPod(t, mode)
	spec := p.shell("if (: > " + t.TempDir() + "/new) 2>/dev/null; then echo written; else echo refused; fi")
	spec.ReadOnly = true
	if got := p.run(spec); got.Reason != ReasonCompleted || p.output("main", 0) != "refused\n" {
		t.Errorf("got %+v, output %q", got, p.output("main", 0))
	}
}
