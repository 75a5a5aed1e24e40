package podnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/local/shim"
)

// nobody is an ordinary user.
const nobody = 65534

// TestAsAnOrdinaryUser runs the tests of real networks again as a user without any
// rights.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	dir, err := os.MkdirTemp("", "podnet-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, binary := filepath.Join(dir, "podnet.test"), filepath.Join(dir, "shim")
	for to, from := range map[string]string{program: self, binary: shimBinary} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.v", "-test.run", "^TestPods")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "SHIM_TEST_BINARY=" + binary}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestPods") || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}

// testNet is a holder and its pods.
type testNet struct {
	t       *testing.T
	options Options
}

func newNet(t *testing.T) *testNet {
	t.Helper()
	mode, err := shim.ProbeMounts(t.Context(), shimBinary, t.TempDir())
	if err != nil {
		t.Skipf("no mounts on this machine: %v", err)
	}
	n := &testNet{t: t, options: Options{Binary: shimBinary, Dir: filepath.Join(t.TempDir(), "network"), Mounts: mode}}
	if err := Probe(t.Context(), n.options); err != nil {
		t.Skipf("no networks of pods on this machine: %v", err)
	}
	t.Cleanup(func() {
		if err := Shutdown(context.Background(), n.options.Dir); err != nil {
			t.Error(err)
		}
	})
	return n
}

// testPod is a pod with a program that answers at port 23456.
type testPod struct {
	*shim.Client
	n    *testNet
	at   Address
	spec Pod
}

func (n *testNet) start(uid string, loopback ...uint16) *testPod {
	n.t.Helper()
	p := &testPod{n: n, spec: Pod{Hostname: uid + "-host", Loopback: loopback,
		Shim: shim.Options{Binary: shimBinary, Dir: filepath.Join(n.t.TempDir(), "shim"), PodUID: uid, Mounts: n.options.Mounts}}}
	var err error
	if p.at, _, err = Start(n.t.Context(), n.options, p.spec); err != nil {
		n.t.Fatal(err)
	}
	if p.Client, _, err = shim.Attach(n.t.Context(), p.spec.Shim.Dir); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			n.t.Error(err)
		}
	})
	resolver := filepath.Join(n.t.TempDir(), "resolv.conf")
	text := fmt.Sprintf("search default.svc.cluster.local\nnameserver %s\noptions ndots:5\n", p.at.Gateway)
	if err := os.WriteFile(resolver, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	run, err := p.Client.Start(n.t.Context(), shim.ContainerSpec{
		Name: "main", Argv: []string{program, "I am " + uid}, Env: []string{helperEnv + "=serve", "PATH=" + os.Getenv("PATH")},
		Mounts: []shim.Mount{{HostPath: resolver, MountPath: "/etc/resolv.conf", File: true}},
	})
	if err != nil || !run.Running() {
		n.t.Fatalf("%+v, %v", run, err)
	}
	return p
}

// sh runs a script in the pod and returns what it prints.
func (p *testPod) sh(script string) string {
	p.n.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.n.t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		p.n.t.Fatal(err)
	}
	defer null.Close()
	code, err := p.Exec(p.n.t.Context(), "main", 0, []string{"sh", "-c", script}, [3]*os.File{null, w, w}, false)
	w.Close()
	if err != nil {
		p.n.t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		p.n.t.Fatal(err)
	}
	if code != 0 {
		return fmt.Sprintf("exit code %d: %s", code, out)
	}
	return string(out)
}

// ask is what an address answers to a program of the pod.
func (p *testPod) ask(address string) string {
	p.n.t.Helper()
	program, err := os.Executable()
	if err != nil {
		p.n.t.Fatal(err)
	}
	return p.sh(helperEnv + "=ask exec " + program + " " + address)
}

// awaitAnswer waits for a program to listen.
func (p *testPod) awaitAnswer(address, want string) {
	p.n.t.Helper()
	await(p.n.t, address+" answers "+want, func() bool { return p.ask(address) == want })
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(60*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

func TestPodsFindEachOtherByName(t *testing.T) {
	n := newNet(t)
	a, b := n.start("a"), n.start("b")
	if a.at.Pod == b.at.Pod || a.at.Gateway != b.at.Gateway {
		t.Fatalf("a is at %+v, b at %+v", a.at, b.at)
	}
	publish := func(at netip.Addr) {
		t.Helper()
		tables := Tables{
			Names:    map[string][]netip.Addr{"a.job.default.svc.cluster.local": {at}},
			Services: map[netip.AddrPort][]netip.AddrPort{netip.MustParseAddrPort("10.96.7.7:80"): {netip.AddrPortFrom(at, 23456)}},
		}
		if err := Publish(t.Context(), n.options.Dir, tables); err != nil {
			t.Fatal(err)
		}
	}
	publish(a.at.Pod)
	b.awaitAnswer("a.job:23456", "I am a")
	b.awaitAnswer("10.96.7.7:80", "I am a")
	b.awaitAnswer("127.0.0.1:23456", "I am b")
	if got := b.sh("hostname"); got != "b-host\n" {
		t.Errorf("b's host is named %q", got)
	}
	if known := b.sh("cat /proc/net/arp"); !strings.Contains(known, gatewayMAC.String()) {
		t.Errorf("the gateway's address is not the one that stays:\n%s", known)
	}
	conn, err := a.Dial(t.Context(), "127.0.0.1:23456")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got, err := io.ReadAll(conn); string(got) != "I am a" {
		t.Errorf("dialled from the machine: %q, %v", got, err)
	}

	// It comes back at another address, under the same name.
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Stop(t.Context(), n.options.Dir, "a"); err != nil {
		t.Fatal(err)
	}
	again := n.start("a")
	if again.at.Pod == a.at.Pod {
		t.Errorf("both times at %s", a.at.Pod)
	}
	publish(again.at.Pod)
	b.awaitAnswer("a.job:23456", "I am a")
}

func TestPodsReachTheMachine(t *testing.T) {
	n := newNet(t)
	serve := func(address string) uint16 {
		l, err := net.Listen("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(conn, "the machine")
				_ = conn.Close()
			}
		}()
		return uint16(l.Addr().(*net.TCPAddr).Port)
	}
	port, closed := serve("127.0.0.1:0"), serve("127.0.0.1:0")
	p := n.start("a", port)
	if got := p.ask(fmt.Sprintf("127.0.0.1:%d", port)); got != "the machine" {
		t.Errorf("a mirrored port: %q", got)
	}
	if got := p.ask(fmt.Sprintf("127.0.0.1:%d", closed)); !strings.Contains(got, "refused") {
		t.Errorf("another port of the machine's loopback: %q", got)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() {
			address := net.JoinHostPort(ip.String(), fmt.Sprint(serve(ip.String()+":0")))
			if got := p.ask(address); got != "the machine" {
				t.Errorf("%s, outside of the network: %q", address, got)
			}
			outside, service := netip.MustParseAddrPort(address), netip.MustParseAddrPort("10.96.7.7:80")
			tables := Tables{Services: map[netip.AddrPort][]netip.AddrPort{service: {outside}}, ClusterIPs: []netip.Addr{service.Addr(), outside.Addr()}}
			if err := Publish(t.Context(), n.options.Dir, tables); err != nil {
				t.Fatal(err)
			}
			if got := p.ask(service.String()); got != "the machine" {
				t.Errorf("a Service with an endpoint outside: %q", got)
			}
			if got := p.ask(address); strings.Contains(got, "the machine") {
				t.Errorf("a Service's address without a ready pod was looked for on the machine: %q", got)
			}
			return
		}
	}
	t.Log("the machine has no address but loopback: what is outside was not tried")
}

func TestPodsEndWithTheirHolder(t *testing.T) {
	n := newNet(t)
	p := n.start("a")
	state, err := p.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, started, err := Start(t.Context(), n.options, p.spec)
	if err != nil || started || again != p.at {
		t.Errorf("a second start: %+v, %v, %v; want %+v of the same holder", again, started, err, p.at)
	}
	if err := Shutdown(t.Context(), n.options.Dir); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{state.PID, state.Runs[0].PID} {
		await(t, "the processes end", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if _, started, err = Start(t.Context(), n.options, p.spec); err != nil || !started {
		t.Fatalf("a start without a holder: %v, %v", started, err)
	}
	if state, err = p.State(t.Context()); err != nil || state.Runs[0].Reason != shim.ReasonLost {
		t.Errorf("the next shim knows %+v, %v", state.Runs, err)
	}
}
