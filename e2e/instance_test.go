//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// instance is an embedded control plane in a home of its own, or a cluster where
// Vernier is installed.
type instance struct {
	home string
	// kubeconfig of the cluster; empty for an embedded one.
	kubeconfig string
	client     client.WithWatch
	// user runs the commands; nil for the user of the test.
	user *syscall.Credential
	// within is a command that vernier up is run under; nil for none.
	within []string
}

// up starts an instance that is stopped when the test ends.
func up(t *testing.T, flags ...string) *instance {
	t.Helper()
	return upAs(t, filepath.Join(t.TempDir(), "home"), nil, flags...)
}

func upAs(t *testing.T, home string, user *syscall.Credential, flags ...string) *instance {
	t.Helper()
	if clusterConfig() != "" {
		t.Skip("it needs an embedded instance, and this run is against a cluster")
	}
	record(t, "instance")
	i := &instance{home: home, user: user}
	i.up(t, flags...)
	return i
}

// up starts the instance.
func (i *instance) up(t *testing.T, flags ...string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			i.showLogs(t)
		}
		if out, err := i.vernier("down"); err != nil {
			t.Errorf("vernier down: %v\n%s", err, out)
		}
	})
	if out, err := i.vernier(append([]string{"up"}, flags...)...); err != nil {
		t.Fatalf("vernier up: %v\n%s", err, out)
	}
	path, err := i.vernier("kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	i.connect(t, strings.TrimSpace(path))
}

func (i *instance) connect(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	i.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
}

// vernier runs the command line against this instance.
func (i *instance) vernier(args ...string) (string, error) {
	dir := os.Getenv("VERNIER_BIN_DIR")
	if dir == "" {
		return "", errors.New("VERNIER_BIN_DIR is not set: run make e2e")
	}
	argv := append([]string{filepath.Join(dir, "vernier"), "--home", i.home}, args...)
	if args[0] == "up" {
		argv = append(slices.Clone(i.within), argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if i.kubeconfig != "" && args[0] != "kubectl" {
		cmd.Args = append([]string{"kubectl-vernier", "--kubeconfig", i.kubeconfig}, args...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: i.user}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String() + stderr.String(), err
	}
	return out.String(), nil
}

// component is one line of `vernier status -o json`.
type component struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Restarts int    `json:"restarts"`
}

func (i *instance) components(t *testing.T) map[string]component {
	t.Helper()
	out, err := i.vernier("status", "-o", "json")
	if err != nil {
		t.Fatalf("vernier status: %v\n%s", err, out)
	}
	var status struct {
		Components []component `json:"components"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatalf("vernier status: %v\n%s", err, out)
	}
	byName := map[string]component{}
	for _, c := range status.Components {
		byName[c.Name] = c
	}
	return byName
}

// showLogs prints the end of every component's log.
func (i *instance) showLogs(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(i.home, "logs", "*.log"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n := len(data) - 3000; n > 0 {
			data = data[n:]
		}
		t.Logf("end of %s:\n%s", filepath.Base(file), data)
	}
}

// showEvents prints what happened to the job and the pods of a trial.
func (i *instance) showEvents(t *testing.T, trial string) {
	var events corev1.EventList
	if err := i.client.List(t.Context(), &events, client.InNamespace("default")); err != nil {
		t.Logf("the events of %s cannot be listed: %v", trial, err)
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, trial) {
			t.Logf("%s %s %s: %s: %s", e.FirstTimestamp.Format(time.TimeOnly), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

// eventually calls check until it returns nil, and fails the test with its last
// error after the time is up.
func eventually(t *testing.T, within time.Duration, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", within, err)
		case <-tick.C:
		}
	}
}

// processesNaming lists the processes whose command line holds text.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		line := string(bytes.ReplaceAll(data, []byte{0}, []byte(" ")))
		if strings.Contains(line, text) {
			found = append(found, fmt.Sprintf("%s: %s", filepath.Base(filepath.Dir(file)), line))
		}
	}
	return found
}
