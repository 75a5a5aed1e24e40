package scrape

import (
	"bytes"
	"errors"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// onLinux skips a test elsewhere, where nothing is known of who listens.
func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who listens")
	}
}

// TestOwnListener asks for the environment of the process that listens: this
// one, and another that the test makes up.
func TestOwnListener(t *testing.T) {
	onLinux(t)
	l := listen(t, "127.0.0.1:0")
	port := l.Addr().(*net.TCPAddr).Port
	own, err := os.ReadFile("/proc/self/environ")
	if err != nil || len(own) == 0 {
		t.Fatalf("no environment in /proc: %v", err)
	}
	variable, _, _ := bytes.Cut(own, []byte{0})
	if err := OwnListener("/proc", port, string(variable))(); err != nil {
		t.Errorf("the process that listens has %q, but: %v", variable, err)
	}
	err = OwnListener("/proc", port, "VERNIER_POD_UID=another")()
	if err == nil || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), "port: auto") {
		t.Errorf("error %v, want one that names this process and what to do", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := OwnListener("/proc", port, string(variable))(); !errors.Is(err, ErrNoListener) {
		t.Errorf("error %v, want that there is no listener", err)
	}
	if err := OwnListener(t.TempDir(), port, "A=b")(); err != nil {
		t.Errorf("without /proc: %v", err)
	}
}

func TestScrapeDoesNotReadAnotherTrialsProgram(t *testing.T) {
	onLinux(t)
	e := serve(t, httptest.NewServer, text("loss 1\n"))
	u, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	drain := sourcetest.Closed()
	points, errs := scraped(t, Config{
		URL: e.URL, Metrics: []string{"loss"}, Drain: drain, Clock: sourcetest.Quick(), Mine: OwnListener("/proc", port, "VERNIER_POD_UID=another"),
	})
	if len(points) != 0 || len(errs) == 0 || !strings.Contains(errs[0], "is not this trial's") {
		t.Errorf("points %q, errors %q", points, errs)
	}
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
