package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector/contract"
)

// pushArgs are those of a sidecar in a pod that shares its network.
func pushArgs() []string {
	return []string{
		"--kind=Push", "--metric=loss", "--trial=random-0001", "--push-address=127.0.0.1:0", "--katib-address=shared:6789",
	}
}

// pushEnv is what "collector env" would set.
func (b *bench) pushEnv() map[string]string {
	b.t.Helper()
	var env map[string]string
	if err := readJSON(filepath.Join(b.dir, contract.FileEnv), &env); err != nil {
		b.t.Fatal(err)
	}
	return env
}

// persist posts until it is answered, as a client with retries does.
func persist(ctx context.Context, client *http.Client, url, body, key string) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Idempotency-Key", key)
		answer, err := client.Do(r)
		if err == nil {
			said, readErr := io.ReadAll(answer.Body)
			answer.Body.Close()
			if readErr == nil && answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", answer.Status, said)
			}
			if readErr == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Whenever the collector is killed, senders that try again find it where it was,
// and every point counts once: with a key of their own, and by MLflow's rule.
func TestPushedPointsSurviveKillsAtRandom(t *testing.T) {
	const senders, each, kills = 4, 60, 25
	b := newBench(t)
	s := b.run(pushArgs()...)
	env := b.pushEnv()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	run := newRun(t, client, env[contract.EnvMLflow])

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var sending sync.WaitGroup
	for n := range senders {
		sending.Go(func() {
			for i := range each {
				v := n*each + i
				url, body := env[contract.EnvPushURL], fmt.Sprintf(`[{"loss": %d, "step": %d}, {"loss": %d.5, "step": %d}]`, v, v, v, v)
				if n%2 == 1 {
					url = env[contract.EnvMLflow] + "/api/2.0/mlflow/runs/log-batch"
					body = fmt.Sprintf(`{"run_id": %q, "metrics": [{"key": "loss", "value": %d, "timestamp": %d, "step": 1}, {"key": "loss", "value": %d.5, "timestamp": 1, "step": 1}]}`, run, v, v+1, v)
				}
				if err := persist(ctx, client, url, body, fmt.Sprint(v)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	killed := 0
	for random := rand.New(rand.NewPCG(1, 2)); killed < kills; killed++ {
		select {
		case <-done:
		case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
		}
		s.kill(b)
		s = b.run(pushArgs()...)
	}
	<-done
	s.term()
	var got, want []float64
	for _, series := range b.points("loss") {
		got = append(got, values(series.Points)...)
	}
	slices.Sort(got)
	for v := range senders * each {
		want = append(want, float64(v), float64(v)+0.5)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("losses (-want +got):\n%s\nsidecar: %s", diff, s.said.String())
	}
	if attempts := b.attempts(); len(attempts) != 1 || !attempts[0].Final || attempts[0].Note != "" {
		t.Errorf("attempts %+v", attempts)
	}
}

func newRun(t *testing.T, client *http.Client, tracking string) string {
	t.Helper()
	answer, err := client.Post(tracking+"/api/2.0/mlflow/runs/create", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var said struct {
		Run struct {
			Info struct {
				ID string `json:"run_id"`
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || said.Run.Info.ID == "" {
		t.Fatalf("%s: %+v, %v", answer.Status, said, err)
	}
	return said.Run.Info.ID
}

func TestCollectorEnvHandsOverTheAddresses(t *testing.T) {
	b := newBench(t)
	s := b.run(pushArgs()...)
	cmd := exec.CommandContext(t.Context(), program(t), "env", "--dir="+b.dir, "--", "sh", "-c", `
		echo "$VERNIER_PUSH_URL $MLFLOW_TRACKING_URI $KUBEFLOW_TRAINER_SERVER_URL $(cat $KUBEFLOW_TRAINER_SERVER_TOKEN)"; echo "$0 $*"; exit 3`, "a b", "c")
	cmd.Env = append(os.Environ(), "MLFLOW_TRACKING_URI=http://mine")
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the program ended with %v", err)
	}
	url := b.pushEnv()[contract.EnvPushURL]
	base := strings.TrimSuffix(url, "/report")
	want := url + " http://mine " + base + "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/random-0001/status push-token\na b c\n"
	if diff := cmp.Diff(want, string(out)); diff != "" || !strings.HasSuffix(base, "/push-token") {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.term()
}

func TestMergeEnvSetsWhatIsNotSet(t *testing.T) {
	add := contract.PushEnv("127.0.0.1:1", "token", "trial", "/dir")
	for name, tc := range map[string]struct{ have, want []string }{
		"nothing is set":               {nil, []string{contract.EnvTrainerToken, contract.EnvTrainerURL, contract.EnvMLflow, contract.EnvPushURL}},
		"an address of another server": {[]string{contract.EnvTrainerURL + "=http://x"}, []string{contract.EnvMLflow, contract.EnvPushURL}},
		"an empty variable is set":     {[]string{contract.EnvMLflow + "="}, []string{contract.EnvTrainerToken, contract.EnvTrainerURL, contract.EnvPushURL}},
	} {
		var added []string
		for _, e := range mergeEnv(tc.have, add)[len(tc.have):] {
			key, _, _ := strings.Cut(e, "=")
			added = append(added, key)
		}
		slices.Sort(added)
		if diff := cmp.Diff(tc.want, added); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCollectorEnvFaults(t *testing.T) {
	b := newBench(t)
	s := b.run(pushArgs()...)
	defer s.term()
	tests := map[string]struct {
		args []string
		code int
		said string
	}{
		"no command":           {[]string{"--dir=" + b.dir}, exitUsage, "no command"},
		"an unknown flag":      {[]string{"--x"}, exitUsage, "flag"},
		"no sidecar":           {[]string{"--dir=" + t.TempDir(), "--", "true"}, exitNotKept, "has not said where it listens"},
		"a command not found":  {[]string{"--dir=" + b.dir, "--", "no-such-program"}, exitNotFound, "command not found"},
		"a file, not a binary": {[]string{"--dir=" + b.dir, "--", b.dir}, exitNotExecutable, "not executable"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program(t), append([]string{"env"}, tc.args...)...)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tc.code || !strings.Contains(string(out), tc.said) {
				t.Errorf("code %d, want %d; it says %q", code, tc.code, out)
			}
		})
	}
}

// Two pods on one network have report_metrics under the same names and port.
func TestReportMetricsOnASharedNetwork(t *testing.T) {
	first, second := newBench(t), newBench(t)
	sidecars := []*sidecar{first.run(pushArgs()...), second.run(pushArgs()...)}
	for i, b := range []*bench{first, second} {
		hosts, err := os.ReadFile(filepath.Join(b.dir, contract.FileHosts))
		if err != nil {
			t.Fatal(err)
		}
		machine, _ := os.ReadFile("/etc/hosts")
		if !strings.HasPrefix(string(hosts), string(machine)) {
			t.Errorf("the machine's hosts are not in %s", hosts)
		}
		lines := strings.Split(strings.TrimSpace(string(hosts)), "\n")
		fields := strings.Fields(lines[len(lines)-1])
		if !slices.Equal(fields[1:], contract.KatibHosts()) || !strings.HasPrefix(fields[0], "127.") {
			t.Errorf("hosts: %v", fields)
		}
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		client := katibv1beta1.NewDBManagerClient(&http.Client{Transport: transport}, "http://"+net.JoinHostPort(fields[0], "6789"), connect.WithGRPC())
		_, err = client.ReportObservationLog(t.Context(), &katibv1beta1.ReportObservationLogRequest{
			TrialName: trial.Name, ObservationLog: &katibv1beta1.ObservationLog{MetricLogs: []*katibv1beta1.MetricLog{
				{TimeStamp: "2026-01-01T00:00:00Z", Metric: &katibv1beta1.Metric{Name: "loss", Value: fmt.Sprint(i)}},
			}},
		})
		if err != nil {
			t.Error(err)
		}
		sidecars[i].term()
		if series := b.points("loss"); len(series) != 1 || !slices.Equal(values(series[0].Points), []float64{float64(i)}) {
			t.Errorf("pod %d: %+v, sidecar: %s", i, series, sidecars[i].said.String())
		}
	}
}

// A port that another program has costs the trial that way to report, not the
// socket; its note says so.
func TestPushGoesOnWithoutAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, l)
	b := newBench(t)
	s := b.run("--kind=Push", "--metric=loss", "--trial=x", "--push-address="+l.Addr().String(), "--katib-address="+l.Addr().String())
	b.push(0.5)
	s.term()
	if series := b.points("loss"); len(series) != 1 || len(series[0].Points) != 1 {
		t.Errorf("series %+v, sidecar: %s", series, s.said.String())
	}
	note := b.attempts()[0].Note
	if !strings.Contains(note, "over the socket only") || !strings.Contains(note, "report_metrics is not served") {
		t.Errorf("note %q", note)
	}
	if env := b.pushEnv(); len(env) > 0 {
		t.Errorf("the program is told %v", env)
	}
}

func TestPushFlagsThatDoNotFit(t *testing.T) {
	for said, args := range map[string][]string{
		contract.EnvPushToken + " is not set": {"--kind=Push", "--metric=loss", "--push-address=127.0.0.1:0"},
		"needs the trial's name":              {"--kind=Push", "--metric=loss", "--katib-address=shared:6789"},
	} {
		_, err := parseRun(args, func(string) string { return "" }, io.Discard)
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v: %v, want %q", args, err, said)
		}
	}
}

func shut(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestASocketReplacesOnlyASocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "push.sock")
	for range 2 { // the second finds the socket of the first, which was not removed
		l, err := listenUnix(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, place := range map[string]func(path string) error{
		"a file":                    func(path string) error { return os.WriteFile(path, []byte("loss=1"), 0o600) },
		"an empty directory":        func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to the socket":      func(path string) error { return os.Symlink("push.sock", path) },
		"a link that leads nowhere": func(path string) error { return os.Symlink("none", path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := place(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if l, err := listenUnix(t.Context(), path); err == nil {
				_ = l.Close()
				t.Error("no error")
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was replaced: %v", err)
			}
		})
	}
}
