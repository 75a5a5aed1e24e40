//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// What Trainer and JobSet are told where they run as processes of this machine. %d is
// the port of their webhooks.
var trainerConfigs = map[string]string{
	"jobset": `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {port: %d}
`,
	"trainer-controller-manager": `
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
certManagement: {enable: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {port: %d}
`,
}

// moduleFolder is the folder of a Go module of e2e/operators.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = "operators"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// TestTrainJobsOnAnInstance runs TrainJobs of two nodes on an embedded instance, under
// Trainer and JobSet, which run beside it with their webhooks.
func TestTrainJobsOnAnInstance(t *testing.T) {
	programs := filepath.Join(os.Getenv("VERNIER_BIN_DIR"), "operators")
	if _, err := os.Stat(filepath.Join(programs, "jobset")); err != nil {
		t.Skipf("NOT RUN: it needs Trainer and JobSet: make e2e-operators builds them (%v)", err)
	}
	jobset, trainer := moduleFolder(t, "sigs.k8s.io/jobset"), moduleFolder(t, "github.com/kubeflow/trainer/v2")
	definitions, err := filepath.Glob(filepath.Join(trainer, "manifests/base/crds/trainer*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definitions = append(definitions, filepath.Join(jobset, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"))
	forEachUser(t, func(t *testing.T, user *syscall.Credential) {
		i, dir := upWithNetworks(t, user)
		for _, file := range definitions {
			i.createAll(t, file, nil)
		}
		i.startWithWebhooks(t, filepath.Join(programs, "jobset"), filepath.Join(jobset, "config/components/webhook/manifests.yaml"))
		i.startWithWebhooks(t, filepath.Join(programs, "trainer-controller-manager"), filepath.Join(trainer, "manifests/base/webhook/manifests.yaml"))
		i.createAll(t, filepath.Join(trainer, "manifests/base/runtimes/torch_distributed.yaml"), nil)
		program := filepath.Join(dir, "program")
		copyFile(t, testProgram(t), program, 0o755)
		command := fmt.Sprintf(`image: host, command: [%s, rank, "${trialParameters.x}"]`, program)
		if err := i.client.Create(t.Context(), operatedJobs["trainjob"].experiment(t, "trainjob", command, nil)); err != nil {
			t.Fatal(err)
		}
		i.checkOperated(t, "trainjob")
	})
}

// createAll creates the objects of a manifest, as soon as what admits them answers.
func (i *instance) createAll(t *testing.T, file string, edit func(*unstructured.Unstructured)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objectsOf(t, string(text)) {
		if edit != nil {
			edit(o)
		}
		eventually(t, time.Minute, func(ctx context.Context) error { return i.client.Create(ctx, o) })
	}
}

// startWithWebhooks runs a controller until the test ends. Its webhooks, as a manifest
// has them, are on this machine.
func (i *instance) startWithWebhooks(t *testing.T, program, webhooks string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close()
	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{address.IP}, nil)
	if err != nil {
		t.Fatal(err)
	}
	serving := filepath.Join(dir, "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(serving, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(serving, "tls.crt"), string(certificate))
	write(t, filepath.Join(serving, "tls.key"), string(key))
	i.createAll(t, webhooks, func(o *unstructured.Unstructured) {
		o.SetName(filepath.Base(program) + "-" + o.GetName())
		for _, hook := range o.Object["webhooks"].([]any) {
			path, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
			hook.(map[string]any)["clientConfig"] = map[string]any{
				"url": fmt.Sprintf("https://%s%s", address, path), "caBundle": base64.StdEncoding.EncodeToString(certificate),
			}
		}
	})
	config := filepath.Join(dir, "config.yaml")
	write(t, config, fmt.Sprintf(trainerConfigs[filepath.Base(program)], address.Port))
	kubeconfig, err := i.vernier("kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config="+config)
	// The certificates are looked for in a folder of the one for temporary files.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+strings.TrimSpace(kubeconfig), "TMPDIR="+dir)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text := log.String()
			t.Logf("end of the log of %s:\n%s", filepath.Base(program), text[max(0, len(text)-6000):])
		}
	})
}
