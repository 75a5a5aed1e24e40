package source_test

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// obeyPermissions makes the rest of a test subject to the permissions of files
// also where root runs it: its thread gives up the right to pass them over, and
// ends with the test.
func obeyPermissions(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread() // and never unlocked
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
}
