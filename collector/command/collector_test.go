package command

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

var buildDir string // empty until the collector is built

var built = sync.OnceValues(func() (path string, err error) {
	if buildDir, err = os.MkdirTemp("", "collector-test-*"); err != nil {
		return "", err
	}
	path = filepath.Join(buildDir, "collector")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../../cmd/collector").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// program is the collector, built once.
func program(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

const podUID = "2f1c7c1e-pod"

var trial = collector.TrialID{Namespace: "ns", Name: "random-0001", UID: "trial-uid"}

// bench is a report service on loopback over a store on disk, and a pod's
// shared directory.
type bench struct {
	env   []string // of the sidecar, beside what all have
	t     *testing.T
	store collector.Store
	url   string
	token string
	dir   string
	log   string // termination message
	woken chan collector.TrialID
	stop  context.CancelFunc // stops the service
	ended chan error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	// The path of a unix socket is short.
	dir, err := os.MkdirTemp("", "pod-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bench{t: t, dir: dir, log: filepath.Join(dir, "termination-log"), woken: make(chan collector.TrialID, 1000)}
	if b.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "points.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	key := bytes.Repeat([]byte("k"), report.MinKeySize)
	if b.token, err = report.Sign(key, report.Claims{Trial: trial, Expires: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	b.serve("127.0.0.1:0", [][]byte{key})
	return b
}

func (b *bench) serve(addr string, keys [][]byte) {
	b.t.Helper()
	path, handler, err := server.NewReportHandler(server.ReportConfig{
		Store: b.store, Keys: func() [][]byte { return keys }, OnPoints: func(id collector.TrialID) { b.woken <- id }})
	if err != nil {
		b.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	b.url, b.stop, b.ended = "http://"+l.Addr().String(), cancel, make(chan error, 1)
	go func() { b.ended <- server.Serve(ctx, l, mux, nil) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-b.ended; err != nil {
			b.t.Errorf("serve: %v", err)
		}
		b.ended <- nil
	})
}

// sidecar is a running "collector run".
type sidecar struct {
	t    *testing.T
	cmd  *exec.Cmd
	said bytes.Buffer
	log  bytes.Buffer // standard output; read it after the end
}

// away stops the service.
func (b *bench) away() {
	b.t.Helper()
	b.stop()
	if err := <-b.ended; err != nil {
		b.t.Fatal(err)
	}
	b.ended <- nil
}

// run starts a sidecar and waits until it is up.
func (b *bench) run(args ...string) *sidecar {
	b.t.Helper()
	s := b.start(args...)
	b.until("ready", func() bool { return isReady(b.dir) })
	return s
}

func (b *bench) start(args ...string) *sidecar {
	b.t.Helper()
	s := &sidecar{t: b.t, cmd: exec.CommandContext(b.t.Context(), program(b.t), append([]string{"run", "--dir=" + b.dir,
		"--termination-log=" + b.log}, args...)...)}
	s.cmd.Env = []string{contract.EnvURL + "=" + b.url, contract.EnvToken + "=" + b.token, contract.EnvPodUID + "=" + podUID, contract.EnvPushToken + "=push-token"}
	s.cmd.Env = append(s.cmd.Env, b.env...)
	s.cmd.Stderr, s.cmd.Stdout = &s.said, &s.log
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	return s
}

// term ends the sidecar as the kubelet does, and returns how long it took.
func (s *sidecar) term() time.Duration {
	s.t.Helper()
	begin := time.Now()
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the sidecar ended with %v\n%s", err, s.said.String())
	}
	return time.Since(begin)
}

func (s *sidecar) kill(b *bench) {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (b *bench) exec(argv ...string) *exec.Cmd {
	b.t.Helper()
	return exec.CommandContext(b.t.Context(), program(b.t), append([]string{"exec", "--dir=" + b.dir, "--"}, argv...)...)
}

func (b *bench) points(metrics ...string) []collector.Series {
	b.t.Helper()
	series, err := collector.ReadSeries(b.t.Context(), b.store, trial.UID, metrics...)
	if err != nil {
		b.t.Fatal(err)
	}
	return series
}

func (b *bench) attempts() []collector.AttemptState {
	b.t.Helper()
	states, err := b.store.Attempts(b.t.Context(), trial.UID)
	if err != nil {
		b.t.Fatal(err)
	}
	return states
}

// until polls until ok.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	until(b.t, what, ok)
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("after 2 minutes: not %s", what)
		case <-tick.C:
		}
	}
}

func (b *bench) untilPoints(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf("%d points stored", n), func() bool {
		stored := 0
		for _, s := range b.points() {
			stored += len(s.Points)
		}
		return stored >= n
	})
}

func values(points []collector.Point) (v []float64) {
	for _, p := range points {
		v = append(v, p.Value)
	}
	return v
}

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestStdOutEndToEnd(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=StdOut", "--metric=loss", "--metric=accuracy")
	out, err := b.exec("sh", "-c", `for i in 1 2 3; do echo "epoch $i: loss=0.$((9-i))0 accuracy=0.$i"; done; echo bye >&2`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "epoch 3: loss=0.60 accuracy=0.3\n") {
		t.Errorf("the program's own output: %q", out)
	}
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("series %v", series)
	}
	want(t, "losses", []float64{0.8, 0.7, 0.6}, values(series[0].Points))
	want(t, "accuracies", []float64{0.1, 0.2, 0.3}, values(b.points("accuracy")[0].Points))
	states := b.attempts()
	if len(states) != 1 || states[0].Attempt.ID != podUID+"/0" || !states[0].Final || states[0].Note != "" {
		t.Errorf("attempts %+v", states)
	}
	b.wantSummary("loss", 3)
}

func (b *bench) wantSummary(metric string, count int64) contract.Summary {
	b.t.Helper()
	message, err := os.ReadFile(b.log)
	if err != nil {
		b.t.Fatal(err)
	}
	summary, err := contract.ParseSummary(string(message))
	if err != nil {
		b.t.Fatalf("%v: %s", err, message)
	}
	if len(summary.Metrics) == 0 || summary.Metrics[0].Name != metric || summary.Metrics[0].Count != count {
		b.t.Errorf("summary %s", message)
	}
	return summary
}

func TestAnAttemptIsFinalBeforeTheSidecarIsStopped(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=StdOut", "--metric=loss")
	if err := b.exec("echo", "loss=1").Run(); err != nil {
		t.Fatal(err)
	}
	b.until("final", func() bool { a := b.attempts(); return len(a) == 1 && a[0].Final })
	// The container is started again: a new attempt.
	if err := b.exec("echo", "loss=2").Run(); err != nil {
		t.Fatal(err)
	}
	b.until("final again", func() bool { a := b.attempts(); return len(a) == 2 && a[1].Final })
	t.Logf("SIGTERM to exit when all is said: %v", s.term())
	series := b.points("loss")
	if len(series) != 2 {
		t.Fatalf("series %+v", series)
	}
	want(t, "first attempt", []float64{1}, values(series[0].Points))
	want(t, "second attempt", []float64{2}, values(series[1].Points))
	if id := b.wantSummary("loss", 1).Attempt.ID; id != podUID+"/1" {
		t.Errorf("the summary is of %s", id)
	}
}

// A kubelet that was restarted stops the sidecar again, while the report service does not
// answer: the summary has the points.
func TestASecondSIGTERMLosesNothing(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=StdOut", "--metric=loss", "--grace=3s")
	b.away()
	if err := b.exec("echo", "loss=1").Run(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.cmd.Wait() // it could not report
	b.wantSummary("loss", 1)
}
