//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const ranksExperiment = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: ranks, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 4
  maxFailedTrialCount: 1
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}]
  trialTemplate:
    primaryContainerName: training
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        completions: 2
        parallelism: 2
        completionMode: Indexed
        backoffLimit: 0
        template:
          metadata: {labels: {app: ranks}}
          spec:
            subdomain: ranks
            restartPolicy: Never
            containers:
              - {name: training, image: host, command: [%s, rank, "${trialParameters.x}"]}
`

// rank is a program of two processes: rank 1 sends its x to rank 0 by name, and
// rank 0 prints the sum of both. Every job uses the same port.
func rank(_ context.Context, x string) error {
	own, err := strconv.ParseFloat(x, 64)
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if job, ok := strings.CutSuffix(name, "-1"); ok {
		for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
			conn, err := net.Dial("tcp", job+"-0.ranks:23456")
			if err == nil {
				fmt.Fprintln(conn, own)
				return conn.Close()
			}
			if time.Now().After(deadline) {
				return err
			}
		}
	}
	l, err := net.Listen("tcp", "0.0.0.0:23456")
	if err != nil {
		return err
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	var other float64
	if _, err := fmt.Fscan(conn, &other); err != nil {
		return err
	}
	fmt.Printf("loss=%g\n", own+other)
	return nil
}

// TestRanksOfAJobTalkByName runs jobs of two pods side by side, as the user of the
// test and as one without any rights.
func TestRanksOfAJobTalkByName(t *testing.T) {
	t.Run("as this user", func(t *testing.T) { tryRanks(t, nil) })
	t.Run("as an ordinary user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("this user is one already")
		}
		tryRanks(t, &syscall.Credential{Uid: 65534, Gid: 65534})
	})
}

func tryRanks(t *testing.T, user *syscall.Credential) {
	// The user must be able to execute it; t.TempDir is for the owner only.
	dir, err := os.MkdirTemp("", "ranks-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if user != nil {
		if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	i := upAs(t, filepath.Join(dir, "home"), user)

	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "ranks", Namespace: "default"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "ranks"}},
	}
	if err := i.client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	var experiment v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(fmt.Sprintf(ranksExperiment, program)), &experiment); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Create(t.Context(), &experiment); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "ranks")
	for _, trial := range i.trials(t, "ranks") {
		x, err := strconv.ParseFloat(trial.Spec.ParameterAssignments[0].Value, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := strconv.FormatFloat(x+x, 'g', -1, 64)
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != want {
			t.Errorf("%s observed %+v, want the sum %s", trial.Name, o, want)
		}
	}
	if out, err := i.vernier("down"); err != nil {
		t.Fatalf("vernier down: %v\n%s", err, out)
	}
	i.awaitNoProcess(t)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range interfaces {
		if strings.HasPrefix(link.Name, "pod") {
			t.Errorf("the interface %s is left", link.Name)
		}
	}
}
