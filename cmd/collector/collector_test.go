package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
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
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
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
}

// run starts a sidecar and waits until it is up.
func (b *bench) run(args ...string) *sidecar {
	b.t.Helper()
	s := b.start(args...)
	b.until("ready", func() bool { _, err := os.Stat(filepath.Join(b.dir, readyName)); return err == nil })
	return s
}

func (b *bench) start(args ...string) *sidecar {
	b.t.Helper()
	s := &sidecar{t: b.t, cmd: exec.CommandContext(b.t.Context(), program(b.t), append([]string{"run", "--dir=" + b.dir,
		"--termination-log=" + b.log}, args...)...)}
	s.cmd.Env = []string{report.EnvURL + "=" + b.url, report.EnvToken + "=" + b.token, report.EnvPodUID + "=" + podUID, report.EnvPushToken + "=push-token"}
	s.cmd.Env = append(s.cmd.Env, b.env...)
	s.cmd.Stderr = &s.said
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
	_ = os.Remove(filepath.Join(b.dir, readyName))
}

func (b *bench) exec(argv ...string) *exec.Cmd {
	b.t.Helper()
	return exec.CommandContext(b.t.Context(), program(b.t), append([]string{"exec", "--dir=" + b.dir, "--"}, argv...)...)
}

func (b *bench) points(metrics ...string) []collector.Series {
	b.t.Helper()
	series, err := b.store.Points(b.t.Context(), trial.UID, metrics...)
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
	deadline, tick := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			b.t.Fatalf("after 2 minutes: not %s", what)
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

func (b *bench) wantSummary(metric string, count int64) report.Summary {
	b.t.Helper()
	message, err := os.ReadFile(b.log)
	if err != nil {
		b.t.Fatal(err)
	}
	summary, err := report.ParseSummary(string(message))
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

func TestFileEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	s := b.run("--kind=File", "--path="+path, "--format=JSON", "--metric=loss")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "{\"loss\": 0.5, \"step\": 1}\n")
	b.untilPoints(1) // while the program runs
	fmt.Fprintf(f, "{\"loss\": \"nan\", \"step\": 2}\n{\"loss\": 0.25, \"step\": 3}")
	t.Logf("SIGTERM to exit: %v", s.term())
	points := b.points("loss")[0].Points
	if len(points) != 3 || points[0].Value != 0.5 || !math.IsNaN(points[1].Value) || points[2].Value != 0.25 || points[2].Step != 3 {
		t.Errorf("points %+v", points)
	}
}

// A file on a volume of the user's has what an earlier run wrote. The collector
// is killed while the program appends.
func TestWhatAnEarlierRunWroteIsNotReported(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fmt.Fprint(f, text)
	}
	write("loss=-99\nloss=-98\n")
	args := []string{"--kind=File", "--path=" + path, "--metric=loss"}
	s := b.run(args...)
	write("loss=2\n")
	b.untilPoints(1)
	s.kill(b)
	write("loss=1\n")
	s = b.run(args...)
	b.untilPoints(2)
	s.term()
	want(t, "losses", []float64{2, 1}, values(b.points("loss")[0].Points))
	if states := b.attempts(); !strings.Contains(fmt.Sprintf("%+v", states), "its 18 bytes are passed over") {
		t.Errorf("attempts %+v", states)
	}
}

func TestLogfmtEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.log")
	s := b.run("--kind=File", "--path="+path, "--format=LOGFMT", "--metric=loss")
	if err := os.WriteFile(path, []byte("level=info step=1 loss=\"0.5\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.untilPoints(1)
	t.Logf("SIGTERM to exit: %v", s.term())
	if points := b.points("loss")[0].Points; len(points) != 1 || points[0].Value != 0.5 || points[0].Step != 1 {
		t.Errorf("points %+v", points)
	}
}

// A table is written again with another column while the collector is killed
// and started again.
func TestCSVEndToEnd(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "metrics.csv")
	args := []string{"--kind=File", "--path=" + path, "--format=CSV", "--metric=loss", "--metric=val_loss"}
	s := b.run(args...)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("step,val_loss\r\n0,0.5\r\n")
	b.untilPoints(1)
	s.kill(b)
	write("loss,step,val_loss\r\n,0,0.5\r\n97.5%,1,\r\n,2,0.25\r\n")
	s = b.run(args...)
	b.untilPoints(3)
	t.Logf("SIGTERM to exit: %v", s.term())
	if points := b.points("loss")[0].Points; len(points) != 1 || points[0].Value != 97.5 || points[0].Text != "97.5%" || points[0].Step != 1 {
		t.Errorf("points of loss %+v", points)
	}
	want(t, "val_loss", []float64{0.5, 0.25}, values(b.points("val_loss")[0].Points))
	if m := b.wantSummary("loss", 1).Metrics[0]; m.Last.String() != "97.5" {
		t.Errorf("the summary says %s", m.Last)
	}
}

func TestTensorFlowEventEndToEnd(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var events []byte
	for step := range 5 {
		events = append(events, scalarEvent("loss", int64(step), 1/float32(int(1)<<step))...)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.out.tfevents.1700000000.host"), events, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "losses", []float64{1, 0.5, 0.25, 0.125, 0.0625}, values(series[0].Points))
}

// A trainer that is started again in its pod goes on from a checkpoint in a new
// file: an attempt of its own, which replaces what was measured beyond it.
func TestTensorFlowEventRestartsAreAttempts(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss")
	write := func(name string, wall float64, first int64, losses ...float32) {
		var events []byte
		for i, v := range losses {
			events = append(events, scalarEventAt(wall+float64(i), "loss", first+int64(i), v)...)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), events, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("events.out.tfevents.1700000000.host.1", 1.7e9, 0, 9, 8, 7, 0.001)
	b.untilPoints(4)
	write("events.out.tfevents.1700000100.host.1", 1.7e9+100, 2, 6, 5)
	b.until("the second attempt", func() bool { return len(b.points("loss")) == 2 })
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 2 || series[0].Attempt.ID != podUID+"/0" || series[1].Attempt.ID != podUID+"/1" {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "before", []float64{9, 8, 7, 0.001}, values(series[0].Points))
	want(t, "after", []float64{6, 5}, values(series[1].Points))
	for _, a := range b.attempts() {
		if !a.Final {
			t.Errorf("the attempt %s is not final", a.Attempt.ID)
		}
	}
	if o := collector.Observe(series, "loss"); o.Min.Value != 5 || o.Latest.Value != 5 || o.Points != 4 {
		t.Errorf("observed %+v", o)
	}
}

// scalarEvent is a record of a TensorBoard event file.
func scalarEvent(tag string, step int64, value float32) []byte {
	return scalarEventAt(1.7e9, tag, step, value)
}

func scalarEventAt(wall float64, tag string, step int64, value float32) []byte {
	v := append([]byte{0x0a, byte(len(tag))}, tag...)
	v = binary.LittleEndian.AppendUint32(append(v, 0x15), math.Float32bits(value))
	summary := append([]byte{0x0a, byte(len(v))}, v...)
	event := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(wall))
	event = binary.AppendUvarint(append(event, 0x10), uint64(step))
	event = append(append(event, 0x2a, byte(len(summary))), summary...)
	record := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	record = binary.LittleEndian.AppendUint32(record, maskedCRC(record))
	record = append(record, event...)
	return binary.LittleEndian.AppendUint32(record, maskedCRC(event))
}

func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

func TestPushEndToEndAcrossAKill(t *testing.T) {
	b := newBench(t)
	args := []string{"--kind=Push", "--metric=loss"}
	s := b.run(args...)
	socket := filepath.Join(b.dir, "push.sock")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	push := func(value float64, step int) {
		t.Helper()
		body, _ := json.Marshal(map[string]any{"loss": value, "step": step})
		b.until("pushed", func() bool {
			answer, err := client.Post("http://collector/report", "application/json", bytes.NewReader(body))
			if err != nil {
				return false // not listening yet
			}
			defer answer.Body.Close()
			said, _ := io.ReadAll(answer.Body)
			if answer.StatusCode >= 300 {
				t.Fatalf("push: %s: %s", answer.Status, said)
			}
			return true
		})
	}
	push(3, 1)
	push(2, 2)
	s.kill(b) // what was accepted is on disk
	s = b.run(args...)
	push(1, 3)
	t.Logf("SIGTERM to exit: %v", s.term())
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "losses", []float64{3, 2, 1}, values(series[0].Points))
}

func TestASidecarThatIsKilledAgainAndAgainLosesAndDoublesNothing(t *testing.T) {
	b := newBench(t)
	args := []string{"--kind=StdOut", "--metric=loss"}
	s := b.run(args...)
	program := b.exec("sh", "-c", "i=0; while [ $i -lt 600 ]; do echo loss=$i; i=$((i+1)); [ $((i%20)) -eq 0 ] && sleep 0.05; done; true")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 100, 101, 350} {
		b.untilPoints(n)
		s.kill(b)
		s = b.run(args...)
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	s.term()
	var expected []float64
	for i := range 600 {
		expected = append(expected, float64(i))
	}
	series := b.points("loss")
	if len(series) != 1 {
		t.Fatalf("%d series", len(series))
	}
	want(t, "losses", expected, values(series[0].Points))
	b.wantSummary("loss", 600)
}

func TestWithoutAServiceTheSummaryHasTheResult(t *testing.T) {
	b := newBench(t)
	b.stop()
	if err := <-b.ended; err != nil {
		t.Fatal(err)
	}
	b.ended <- nil
	s := b.run("--kind=StdOut", "--metric=loss", "--grace=1s")
	if err := b.exec("sh", "-c", "for v in 3 0.50 nan 2; do echo loss=$v; done").Run(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	if err := s.cmd.Wait(); err == nil || s.cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the sidecar ended with %v", err)
	}
	summary := b.wantSummary("loss", 4)
	m := summary.Metrics[0]
	if summary.Final || m.Min.String() != "0.50" || m.Max.String() != "3" || m.Last.String() != "2" {
		t.Errorf("summary %+v", summary)
	}
	if !strings.Contains(s.said.String(), "not all points were delivered") {
		t.Errorf("the sidecar said %q", s.said.String())
	}
}

func TestASidecarOutlivesTheServiceAndGoesOn(t *testing.T) {
	b := newBench(t)
	s := b.run("--kind=StdOut", "--metric=loss")
	gate := filepath.Join(b.dir, "gate")
	program := b.exec("sh", "-c", "echo loss=1; while [ ! -e "+gate+" ]; do sleep 0.01; done; echo loss=2")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	b.untilPoints(1)
	b.stop()
	<-b.ended
	b.ended <- nil
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	b.serve(strings.TrimPrefix(b.url, "http://"), [][]byte{bytes.Repeat([]byte("k"), report.MinKeySize)})
	s.term()
	want(t, "losses", []float64{1, 2}, values(b.points("loss")[0].Points))
}
