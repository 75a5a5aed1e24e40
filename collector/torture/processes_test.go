package torture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

// The test binary is the report service too, when these are set.
const (
	envService = "TORTURE_SERVICE" // address
	envStore   = "TORTURE_STORE_URL"
	envDeath   = "TORTURE_DEATH" // "nth moment microseconds"
)

var (
	key   = bytes.Repeat([]byte("k"), report.MinKeySize)
	trial = collector.TrialID{Namespace: "ns", Name: "torture-0001", UID: "trial-uid"}
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envService); address != "" {
		if err := serve(address); err != nil {
			fmt.Fprintln(os.Stderr, "service:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// serve is the real report service over a real store, which dies as planned.
func serve(address string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	points, err := store.Open(ctx, os.Getenv(envStore))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, points.Close()) }()
	mortal := &mortal{Store: points}
	if plan := os.Getenv(envDeath); plan != "" {
		if _, err := fmt.Sscan(plan, &mortal.nth, &mortal.moment, &mortal.micros); err != nil {
			return err
		}
	}
	path, handler, err := server.NewReportHandler(server.ReportConfig{Store: mortal, Keys: func() [][]byte { return [][]byte{key} }})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return server.Serve(ctx, l, mux, nil)
}

// mortal is a store whose process is killed in its nth write: before it, some
// microseconds into it, or after it and before the answer.
type mortal struct {
	collector.Store
	mu     sync.Mutex
	nth    int
	moment string
	micros int
}

func (m *mortal) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	m.mu.Lock()
	m.nth--
	now := m.nth == 0
	m.mu.Unlock()
	switch {
	case now && m.moment == "before":
		die()
	case now && m.moment == "during":
		time.AfterFunc(time.Duration(m.micros)*time.Microsecond, die)
	}
	err := m.Store.Append(ctx, trial, attempt, points)
	if now && m.moment == "after" {
		die()
	}
	return err
}

func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {} // it comes
}

var buildDir string // empty until the collector is built

var built = sync.OnceValues(func() (path string, err error) {
	if buildDir, err = os.MkdirTemp("", "torture-*"); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "collector")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/collector").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// victims are who is killed.
type victim int

const (
	killCollector victim = iota
	killService
	killStore
	victims
)

func (v victim) String() string { return [victims]string{"collector", "service", "store"}[v] }

// scene is a pod's directory, a sidecar, and a report service, which are started
// again whenever they die.
type scene struct {
	t       *testing.T
	program string
	dir     string
	address string
	token   string
	args    []string // of the sidecar
	random  *rand.Rand

	mu       sync.Mutex
	quota    [victims]int // kills still to come
	kills    [victims]int
	sidecar  *exec.Cmd
	service  *exec.Cmd
	said     words // by all sidecars
	stopping bool
	murdered bool // the service that dies next was killed by the test
	watched  sync.WaitGroup
}

func newScene(t *testing.T, random *rand.Rand, quota [victims]int) *scene {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "torture-pod-*") // the path of a unix socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	token, err := report.Sign(key, report.Claims{Trial: trial, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, program: program, dir: dir, address: reserve(t), token: token, random: random, quota: quota}
}

func (s *scene) storeURL() string { return "sqlite:" + filepath.Join(s.dir, "points.db") }

// words are what processes write while the test may read it.
type words struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// begin starts everything, and the killer.
func (s *scene) begin(args ...string) {
	s.t.Helper()
	s.args = args
	s.mu.Lock()
	err := errors.Join(s.startService(), s.startSidecar())
	s.mu.Unlock()
	if err != nil {
		s.t.Fatal(err)
	}
	s.watched.Go(s.killer)
	s.awaitReady()
}

// ready is the file that a sidecar makes once SIGTERM does not kill it any more.
func (s *scene) ready() string { return filepath.Join(s.dir, "ready") }

func (s *scene) awaitReady() {
	s.t.Helper()
	s.await("the sidecar to be ready", func() bool { _, err := os.Stat(s.ready()); return err == nil })
}

// startService starts the service; s.mu is held. It is started again when it
// dies.
func (s *scene) startService() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envService+"="+s.address, envStore+"="+s.storeURL())
	if s.quota[killStore] > 0 {
		moment := [...]string{"before", "during", "after"}[s.random.IntN(3)]
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d %s %d", envDeath, 1+s.random.IntN(4), moment, s.random.IntN(3000)))
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.service, s.murdered = cmd, false
	s.watched.Go(func() {
		_, _ = bufio.NewReader(stdout).ReadString('\n') // ready, or dead already
		_, _ = io.Copy(io.Discard, stdout)
		err := cmd.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.stopping:
			return
		case !killed(cmd):
			s.t.Errorf("the service ended by itself: %v", err)
		case s.murdered:
			s.count(killService)
		default:
			s.count(killStore)
		}
		if err := s.startService(); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

func killed(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool })
	return ok && status.Signaled()
}

func (s *scene) count(v victim) {
	s.quota[v]--
	s.kills[v]++
}

// startSidecar starts the sidecar; s.mu is held.
func (s *scene) startSidecar() error {
	cmd := exec.Command(s.program, append([]string{"run", "--dir=" + s.dir, "--rate=0", "--grace=5m", "--metric=loss",
		"--termination-log=" + filepath.Join(s.dir, "termination-log")}, s.args...)...)
	cmd.Env = []string{contract.EnvURL + "=http://" + s.address, contract.EnvToken + "=" + s.token, contract.EnvPodUID + "=pod"}
	cmd.Stderr = &s.said
	s.sidecar = cmd
	return cmd.Start()
}

// killer kills the collector and the service at random moments.
func (s *scene) killer() {
	for !s.done() {
		<-time.After(time.Duration(5+s.dice(195)) * time.Millisecond)
		s.mu.Lock()
		if s.stopping {
			s.mu.Unlock()
			return
		}
		if v := victim(s.random.IntN(2)); s.quota[v] > 0 {
			s.kill(v)
		}
		s.mu.Unlock()
	}
}

// kill kills; s.mu is held.
func (s *scene) kill(v victim) {
	if v == killService {
		s.murdered = true
		_ = s.service.Process.Kill() // it may just have died
		return
	}
	_ = s.sidecar.Process.Kill()
	_ = s.sidecar.Wait()
	_ = os.Remove(s.ready()) // it may not have come so far
	s.count(v)
	if err := s.startSidecar(); err != nil {
		s.t.Error(err)
	}
}

func (s *scene) dice(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// done reports whether enough was killed.
func (s *scene) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 0
	for _, n := range s.quota {
		left += max(n, 0)
	}
	return left == 0 || s.stopping
}

// end drains the sidecar, as the kubelet does, then stops the service.
func (s *scene) end() {
	s.t.Helper()
	s.mu.Lock()
	s.quota = [victims]int{} // peace
	sidecar := s.sidecar
	s.mu.Unlock()
	s.awaitReady()
	if err := errors.Join(sidecar.Process.Signal(unix.SIGTERM), sidecar.Wait()); err != nil {
		s.t.Errorf("the sidecar ended with %v\n%s", err, s.said.String())
	}
	s.stop()
}

func (s *scene) stop() {
	s.mu.Lock()
	s.stopping = true
	service := s.service
	s.mu.Unlock()
	_ = service.Process.Signal(unix.SIGTERM)
	s.watched.Wait()
}

const patience = 60 * time.Second

func (s *scene) await(what string, ok func() bool) {
	s.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(15*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			said := s.said.String()
			s.stop()
			s.t.Fatalf("waited %v for %s; the sidecars said:\n%s", patience, what, tail(said))
		case <-tick.C:
		}
	}
}

func tail(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
