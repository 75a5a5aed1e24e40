package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector/contract"
)

func TestInstall(t *testing.T) {
	for name, mode := range map[string]os.FileMode{
		"a program for all": 0o755, "a program for its owner": 0o700, "a program without its mode": 0o644,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "bin", "collector")
			if err := os.WriteFile(src, []byte("program"), mode); err != nil {
				t.Fatal(err)
			}
			for range 2 { // again over what is there
				if err := install(src, dst); err != nil {
					t.Fatal(err)
				}
			}
			to, err := os.Stat(dst)
			if err != nil || to.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v", to, err)
			}
			if b, err := os.ReadFile(dst); err != nil || string(b) != "program" {
				t.Errorf("content %q, %v", b, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "bin", ".install-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestTheInstalledProgramRuns(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "bin", "collector")
	if out, err := exec.CommandContext(t.Context(), program(t), "install", dst).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), dst, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "collector ") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestHelpIsPrinted(t *testing.T) {
	for _, arg := range []string{"help", "-h", "-help", "--help"} {
		var out, errors bytes.Buffer
		if code := dispatch(t.Context(), []string{arg}, &out, &errors); code != 0 || out.String() != usage || errors.Len() > 0 {
			t.Errorf("%s: exit code %d, output %q, errors %q", arg, code, out.String(), errors.String())
		}
	}
}

func TestCommandLineIsRefused(t *testing.T) {
	tests := map[string]struct {
		args     []string
		env      []string // instead of a good one
		wantSaid string
	}{
		"no command":          {args: nil, wantSaid: "usage:"},
		"an unknown command":  {args: []string{"collect"}, wantSaid: `unknown command "collect"`},
		"install nowhere":     {args: []string{"install"}, wantSaid: "collector install DST"},
		"exec nothing":        {args: []string{"exec", "--"}, wantSaid: "no command"},
		"run without kind":    {args: []string{"run", "--metric=m"}, wantSaid: "--kind"},
		"run an unknown kind": {args: []string{"run", "--kind=Stdout", "--metric=m"}, wantSaid: "File, PrometheusMetric, Push, StdOut, TensorFlowEvent"},
		"run without metric":  {args: []string{"run", "--kind=StdOut"}, wantSaid: "--metric=NAME"},
		"run an empty metric": {args: []string{"run", "--kind=StdOut", "--metric="}, wantSaid: "empty"},
		"run with arguments":  {args: []string{"run", "--kind=StdOut", "--metric=m", "x"}, wantSaid: `"x"`},
		"a bad format":        {args: []string{"run", "--kind=StdOut", "--metric=m", "--format=XML"}, wantSaid: "TEXT, JSON, LOGFMT"},
		"a table on stdout":   {args: []string{"run", "--kind=StdOut", "--metric=m", "--format=CSV"}, wantSaid: "CSV with --kind=File"},
		"a name for logfmt":   {args: []string{"run", "--kind=StdOut", "--metric=a b", "--format=LOGFMT"}, wantSaid: "cannot be a key of logfmt"},
		"a bad filter":        {args: []string{"run", "--kind=StdOut", "--metric=m", "--filter=(["}, wantSaid: "(["},
		"a file without path": {args: []string{"run", "--kind=File", "--metric=m"}, wantSaid: "--path"},
		"a program of File":   {args: []string{"run", "--kind=File", "--path=/x/y", "--metric=m", "--", "true"}, wantSaid: "give no command"},
		"run no program":      {args: []string{"run", "--kind=StdOut", "--metric=m", "--"}, wantSaid: "no command"},
		"await something":     {args: []string{"await", "x"}, wantSaid: `"x"`},
		"no grace":            {args: []string{"run", "--kind=StdOut", "--metric=m", "--grace=0s"}, wantSaid: "positive"},
		"no pod":              {args: []string{"run", "--kind=StdOut", "--metric=m"}, env: []string{}, wantSaid: contract.EnvPodUID},
		"no service": {args: []string{"run", "--kind=StdOut", "--metric=m"},
			env: []string{contract.EnvPodUID + "=p"}, wantSaid: contract.EnvURL},
		"no token": {args: []string{"run", "--kind=StdOut", "--metric=m"},
			env: []string{contract.EnvPodUID + "=p", contract.EnvURL + "=http://h:1"}, wantSaid: contract.EnvToken},
		"a bad authority": {args: []string{"run", "--kind=StdOut", "--metric=m"},
			env: []string{contract.EnvPodUID + "=p", contract.EnvURL + "=https://h:1", contract.EnvToken + "=t", contract.EnvCA + "=?"}, wantSaid: contract.EnvCA},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if len(args) > 0 && args[0] == "run" {
				args = append(args[:1:1], append([]string{"--dir=" + t.TempDir()}, args[1:]...)...)
			}
			cmd := exec.CommandContext(t.Context(), program(t), args...)
			cmd.Env = tc.env
			if tc.env == nil {
				cmd.Env = []string{contract.EnvPodUID + "=p", contract.EnvURL + "=http://127.0.0.1:1", contract.EnvToken + "=t"}
			}
			var said bytes.Buffer
			cmd.Stderr = &said
			cmd.Run() //nolint:errcheck // the code is looked at
			if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(said.String(), tc.wantSaid) {
				t.Errorf("code %d, said %q, want %q in it", code, said.String(), tc.wantSaid)
			}
		})
	}
}

func TestAProgramThatEndsAtOnceIsMeasuredEachTime(t *testing.T) {
	for i := range 20 {
		b := newBench(t)
		// Both at once, as a quick container runtime starts them.
		program := b.exec("echo", fmt.Sprintf("loss=%d", i))
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		s := b.start("--kind=StdOut", "--metric=loss")
		if err := program.Wait(); err != nil {
			t.Fatal(err)
		}
		s.term()
		series := b.points("loss")
		if len(series) != 1 || len(series[0].Points) != 1 || series[0].Points[0].Value != float64(i) {
			t.Fatalf("round %d: %+v, sidecar: %s", i, series, s.said.String())
		}
	}
}

// The kubelet starts the program when "await" has ended well.
func TestAProgramThatWaitsForTheSidecarIsMeasured(t *testing.T) {
	for name, kind := range map[string]string{"that writes a file": "File", "that pushes": "Push"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			file := filepath.Join(b.dir, "metrics.log")
			copied := filepath.Join(t.TempDir(), "bin", "collector")
			args := []string{"--kind=" + kind, "--metric=loss", "--install=" + copied}
			if kind == "File" {
				args = append(args, "--path="+file)
			}
			s := b.start(args...)
			if out, err := exec.CommandContext(t.Context(), program(t), "await", "--dir="+b.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := exec.CommandContext(t.Context(), copied, "version").CombinedOutput(); err != nil {
				t.Errorf("the copy does not run: %v: %s", err, out)
			}
			if kind == "File" {
				if err := os.WriteFile(file, []byte("loss=0.5\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			} else {
				b.push(0.5)
			}
			s.term()
			series := b.points("loss")
			if len(series) != 1 || len(series[0].Points) != 1 {
				t.Fatalf("%+v, sidecar: %s", series, s.said.String())
			}
			want(t, "losses", []float64{0.5}, values(series[0].Points))
		})
	}
}

// push sends one loss, once.
func (b *bench) push(loss float64) {
	b.t.Helper()
	if err := b.post(fmt.Sprintf(`{"loss": %v}`, loss)); err != nil {
		b.t.Fatal(err)
	}
}

// post sends what is pushed to the socket. The error says that there is no listener.
func (b *bench) post(body string) error {
	b.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(b.dir, pushSocket))
		}}}
	answer, err := client.Post("http://collector/report", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if said, _ := io.ReadAll(answer.Body); answer.StatusCode >= 300 {
		b.t.Fatalf("push: %s: %s", answer.Status, said)
	}
	return nil
}

func TestAwaitFailsWithoutASidecar(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), program(t), "await", "--dir="+t.TempDir(), "--wait=10ms").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "was not ready") {
		t.Errorf("%v: %s", err, out)
	}
}
