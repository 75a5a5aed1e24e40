package torture

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// reserve returns an address without a listener, and keeps it for the test:
// while a socket is bound there, the kernel gives the port only to a program that
// names it, and the service may be killed and come back.
func reserve(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	loopback := [4]byte{127, 0, 0, 1}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		t.Fatalf("the address of the socket is a %T", bound)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(loopback), uint16(at.Port)).String()
}
