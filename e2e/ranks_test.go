//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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
metadata: {name: %s, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 4
  maxFailedTrialCount: 1
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}]
  trialTemplate:
    primaryContainerName: pytorch
    trialParameters: [{name: x, reference: x}]
    trialSpec: %s
`

// jobsOfTwo are jobs of two pods with a container.
var jobsOfTwo = map[string]string{
	"indexed": `{apiVersion: batch/v1, kind: Job, spec: {completions: 2, parallelism: 2, completionMode: Indexed, backoffLimit: 0, template: {
      metadata: {labels: {app: ranks}}, spec: {subdomain: ranks, restartPolicy: Never, containers: [%s]}}}}`,
	"pytorch": `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {
      Master: {replicas: 1, template: {spec: {containers: [%[1]s]}}}, Worker: {replicas: 1, template: {spec: {containers: [%[1]s]}}}}}}`,
}

// rank is a program of two processes: rank 1 sends its x to rank 0 by name, and
// rank 0 prints the sum of both. Every job uses the same port. What rank 1 prints is
// better, and must not count. A parameter server serves until it is ended.
func rank(_ context.Context, x string) error {
	own, err := strconv.ParseFloat(x, 64)
	if err != nil {
		return err
	}
	number, first, err := place()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(first)
	if err != nil {
		return err
	}
	switch number {
	case "ps":
		time.Sleep(time.Hour)
		return errors.New("it was not ended")
	case "1":
		fmt.Println("loss=-1")
		for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
			conn, err := net.Dial("tcp", first)
			if err == nil {
				fmt.Fprintln(conn, own)
				return conn.Close()
			}
			if time.Now().After(deadline) {
				return err
			}
		}
	}
	l, err := net.Listen("tcp", "0.0.0.0:"+port)
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

// place is the rank of this process and the address of rank 0, as its job says.
func place() (number, first string, err error) {
	if text := os.Getenv("TF_CONFIG"); text != "" {
		var c struct {
			Cluster map[string][]string
			Task    struct {
				Type  string
				Index int
			}
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil || len(c.Cluster["worker"]) == 0 {
			return "", "", fmt.Errorf("TF_CONFIG %s: %w", text, err)
		}
		if c.Task.Type != "worker" {
			return c.Task.Type, c.Cluster["worker"][0], nil
		}
		return strconv.Itoa(c.Task.Index), c.Cluster["worker"][0], nil
	}
	for _, names := range [][3]string{{"PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}, {"RANK", "MASTER_ADDR", "MASTER_PORT"}} { // torchrun's first
		if host := os.Getenv(names[1]); host != "" {
			return os.Getenv(names[0]), net.JoinHostPort(host, os.Getenv(names[2])), nil
		}
	}
	// The pods of a Job know their hosts' names only.
	name, err := os.Hostname()
	if err != nil {
		return "", "", err
	}
	end := strings.LastIndex(name, "-")
	return name[end+1:], name[:end] + "-0." + cmp.Or(os.Getenv("SUBDOMAIN"), "ranks") + ":23456", nil
}

// TestRanksOfAJobTalkByName runs jobs of two pods side by side, as the user of the
// test and as one without any rights.
func TestRanksOfAJobTalkByName(t *testing.T) {
	forEachUser(t, tryRanks)
}

func tryRanks(t *testing.T, user *syscall.Credential) {
	i, dir := upWithNetworks(t, user)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	copyFile(t, self, program, 0o755)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "ranks", Namespace: "default"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "ranks"}},
	}
	if err := i.client.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	i.sumRanks(t, program, jobsOfTwo)
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

// sumRanks tunes jobs whose ranks send each other what they sum.
func (i *instance) sumRanks(t *testing.T, program string, jobs map[string]string) {
	t.Helper()
	for name, job := range jobs {
		container := fmt.Sprintf(`{name: pytorch, image: host, command: [%s, rank, "${trialParameters.x}"]}`, program)
		var experiment v1beta1.Experiment
		if err := yaml.UnmarshalStrict([]byte(fmt.Sprintf(ranksExperiment, name, fmt.Sprintf(job, container))), &experiment); err != nil {
			t.Fatal(err)
		}
		if err := i.client.Create(t.Context(), &experiment); err != nil {
			t.Fatal(err)
		}
	}
	for name := range jobs {
		i.awaitEnd(t, name)
		for _, trial := range i.trials(t, name) {
			x, err := strconv.ParseFloat(trial.Spec.ParameterAssignments[0].Value, 64)
			if err != nil {
				t.Fatal(err)
			}
			want := strconv.FormatFloat(x+x, 'g', -1, 64)
			if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != want || o.Metrics[0].Min != want {
				t.Errorf("%s observed %+v, want the sum %s and no other", trial.Name, o, want)
			}
		}
	}
}

// TestRanksTalkWithoutNetworksOfPods runs jobs side by side, on one port by their
// definition, where the machine allows no network namespaces.
func TestRanksTalkWithoutNetworksOfPods(t *testing.T) {
	if clusterConfig() != "" {
		t.Skip("it needs an embedded instance, and this run is against a cluster")
	}
	within := []string{"unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"`, "sh"}
	if out, err := exec.Command(within[0], append(within[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("network namespaces cannot be forbidden for a part of this machine: %v %s", err, out)
	}
	record(t, "instance")
	i := &instance{home: filepath.Join(t.TempDir(), "home"), within: within}
	i.up(t)
	if status, err := i.vernier("status"); err != nil || !strings.Contains(status, "pods share the machine's network") {
		t.Fatalf("pods have networks: %v\n%s", err, status)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	i.sumRanks(t, self, map[string]string{
		"pytorch": jobsOfTwo["pytorch"],
		"xgboost": `{apiVersion: kubeflow.org/v1, kind: XGBoostJob, spec: {xgbReplicaSpecs: {
      Master: {replicas: 1, template: {spec: {containers: [%[1]s]}}}, Worker: {replicas: 1, template: {spec: {containers: [%[1]s]}}}}}}`,
	})
}
