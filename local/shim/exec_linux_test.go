package shim

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exec runs a command in the first run of the main container and returns its exit
// code and its output.
func (p *pod) exec(t *testing.T, argv ...string) (int, string) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	code, err := p.Exec(t.Context(), "main", 0, argv, [3]*os.File{null, w, w}, false)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(out)
}

func TestACommandEndsWithItsClientOrItsContainer(t *testing.T) {
	p := newPod(t, MountsNone)
	p.start(p.shell("exec sleep 3600"))
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	begin := func(ctx context.Context) (pid string, ended <-chan error) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		done := make(chan error, 1)
		go func() {
			code, err := p.Exec(ctx, "main", 0, []string{"sh", "-c", "echo $$; exec sleep 3600"}, [3]*os.File{null, w, null}, false)
			if err == nil && code != 137 {
				t.Errorf("exit code %d, want 137", code)
			}
			done <- err
		}()
		line := make([]byte, 32)
		n, err := r.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		return strings.TrimSpace(string(line[:n])), done
	}
	gone := func(pid string) func() bool {
		return func() bool { _, err := os.Stat("/proc/" + pid); return os.IsNotExist(err) }
	}
	ctx, cancel := context.WithCancel(t.Context())
	pid, ended := begin(ctx)
	cancel()
	if err := <-ended; err != context.Canceled { //nolint:errorlint // the bare one
		t.Errorf("after its client: %v, want %v", err, context.Canceled)
	}
	await(t, "the command ends with its client", gone(pid))

	pid, ended = begin(t.Context())
	if err := p.Signal(t.Context(), "main", 0, 9); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after its container: %v", err)
	}
	await(t, "the command ends with its container", gone(pid))
}

func TestDial(t *testing.T) {
	p := newPod(t, MountsNone)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	conn, err := p.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("there and back")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if diff := cmp.Diff("there and back", string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	_ = l.Close()
	if _, err := p.Dial(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a listener: %v", err)
	}
}
