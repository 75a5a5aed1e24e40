//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// distributedJob is a job of several pods. Replicas are "type count".
type distributedJob struct {
	kind, field, container string
	replicas               []string
}

var distributed = map[string]distributedJob{
	"pytorch":    {"PyTorchJob", "pytorchReplicaSpecs", "pytorch", []string{"Master 1", "Worker 1"}},
	"tensorflow": {"TFJob", "tfReplicaSpecs", "tensorflow", []string{"PS 1", "Worker 2"}},
	"mpi":        {"MPIJob", "mpiReplicaSpecs", "mpi", []string{"Launcher 1", "Worker 2"}},
	"xgboost":    {"XGBoostJob", "xgbReplicaSpecs", "xgboost", []string{"Master 1", "Worker 2"}},
	"jax":        {"JAXJob", "jaxReplicaSpecs", "jax", []string{"Worker 2"}},
	"paddle":     {"PaddleJob", "paddleReplicaSpecs", "paddle", []string{"Worker 2"}},
	"mxnet":      {"MXJob", "mxReplicaSpecs", "mxnet", []string{"Scheduler 1", "Server 1", "Worker 2"}},
}

// TestDistributedJobsRunWithoutTheirOperator runs an experiment of each kind on an
// embedded instance, without a training operator. The replicas find
// each other by name, several trials at a time on the same ports. All print a loss, and
// that of others than the first would be the best.
func TestDistributedJobsRunWithoutTheirOperator(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("testdata", "replica.py"))
	if err != nil {
		t.Fatal(err)
	}
	i := up(t)
	for name, job := range distributed {
		t.Run(job.kind, func(t *testing.T) {
			dir := t.TempDir()
			i.createDistributed(t, name, job, 4, "python3, "+program+", "+dir)
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
					i.showEvents(t, name)
				}
			})
			i.awaitEnd(t, name)
			trials := i.trials(t, name)
			checkTrials(t, name, 4, trials)
			for _, trial := range trials {
				x := trial.Spec.ParameterAssignments[0].Value
				if o := trial.Status.Observation; o == nil || o.Metrics[0].Min != x || o.Metrics[0].Max != x {
					t.Errorf("%s observed %+v, want a loss of %s and no other", trial.Name, o, x)
				}
			}
			eventually(t, 30*time.Second, func(context.Context) error {
				if left := processesNaming(t, dir); len(left) > 0 {
					return fmt.Errorf("still running: %s", strings.Join(left, "; "))
				}
				return nil
			})
		})
	}
}

// createDistributed creates an experiment whose trials are such jobs. All of their pods
// run the command, words of a YAML list, with x as its last argument.
func (i *instance) createDistributed(t *testing.T, name string, job distributedJob, trials int, command string) {
	t.Helper()
	var replicas strings.Builder
	for _, r := range job.replicas {
		kind, count, _ := strings.Cut(r, " ")
		fmt.Fprintf(&replicas, `
          %s:
            replicas: %s
            template:
              spec:
                containers:
                - {name: %s, image: host, command: [%s, "${trialParameters.x}"]}`, kind, count, job.container, command)
	}
	text := fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: sobol}
  maxTrialCount: %d
  maxFailedTrialCount: 1
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}]
  trialTemplate:
    primaryContainerName: %s
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: kubeflow.org/v1
      kind: %s
      spec:
        %s:%s
`, name, trials, job.container, job.kind, job.field, replicas.String())
	var experiment v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(text), &experiment); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Create(t.Context(), &experiment); err != nil {
		t.Fatal(err)
	}
}

// TestADistributedTrialOutlivesItsNode stops the instance while a trial trains. The
// restart policy of a TFJob is Never, but its pods were disrupted, and did not fail.
func TestADistributedTrialOutlivesItsNode(t *testing.T) {
	dir := t.TempDir()
	i := up(t)
	const train = `echo start >> $0/$KATIB_TRIAL_NAME.${TF_CONFIG##*index}; until [ -e $0/go ]; do sleep 0.1; done; echo loss=$1`
	workers := distributedJob{"TFJob", "tfReplicaSpecs", "tensorflow", []string{"Worker 2"}}
	i.createDistributed(t, "lasting", workers, 1, fmt.Sprintf(`sh, -c, %q, %s`, train, dir))
	starts := func(want int) {
		t.Helper()
		eventually(t, time.Minute, func(context.Context) error {
			files, err := filepath.Glob(filepath.Join(dir, "lasting-*"))
			if err != nil || len(files) != 2 {
				return fmt.Errorf("%v, %v", files, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				if n := strings.Count(string(text), "start"); n < want {
					return fmt.Errorf("%s has %d starts, want %d", file, n, want)
				}
			}
			return nil
		})
	}
	starts(1)
	for _, command := range []string{"down", "up"} {
		if out, err := i.vernier(command); err != nil {
			t.Fatalf("vernier %s: %v\n%s", command, err, out)
		}
	}
	starts(2)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "lasting")
	checkTrials(t, "lasting", 1, i.trials(t, "lasting"))
}

// TestAReplicaIsKilled kills the program of one pod of a job while it trains. What its
// kind's restart policy promises happens: by default a PyTorchJob starts the pod again, and
// the server of a TFJob or the launcher of an MPIJob takes the job with it.
// In a command, Kubernetes reads two dollars as one.
func TestAReplicaIsKilled(t *testing.T) {
	const train = `echo $$$$ >> "$0/%s"; until [ -e $0/go ]; do sleep 0.1; done; echo loss=$1`
	i := up(t)
	for name, tc := range map[string]struct {
		of, key, victim string
		end             v1beta1.TrialConditionType
	}{
		"worker":   {"pytorch", "$RANK", "1", v1beta1.TrialSucceeded},
		"server":   {"tensorflow", "${TF_CONFIG##*type}", "*ps*", v1beta1.TrialFailed},
		"launcher": {"mpi", "$K_MPI_JOB_ROLE", "launcher", v1beta1.TrialFailed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			i.createDistributed(t, name, distributed[tc.of], 1, fmt.Sprintf(`sh, -c, %q, %s`, fmt.Sprintf(train, tc.key), dir))
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
					i.showEvents(t, name)
				}
			})
			if err := syscall.Kill(awaitPID(t, filepath.Join(dir, tc.victim), 1), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if tc.end == v1beta1.TrialSucceeded {
				awaitPID(t, filepath.Join(dir, tc.victim), 2)
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, time.Minute, func(context.Context) error {
				trials := i.trials(t, name)
				if len(trials) != 1 || trials[0].State() != tc.end {
					return fmt.Errorf("%d trials, want one that is %s", len(trials), tc.end)
				}
				return nil
			})
		})
	}
}

// awaitPID gives the last of n lines, the process that a start of a program wrote into
// the file that matches the pattern.
func awaitPID(t *testing.T, pattern string, n int) (pid int) {
	t.Helper()
	eventually(t, time.Minute, func(context.Context) error {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) != 1 {
			return fmt.Errorf("%s: %v, %v", pattern, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		lines := strings.Fields(string(text))
		if len(lines) != n {
			return fmt.Errorf("%d starts, want %d", len(lines), n)
		}
		pid, err = strconv.Atoi(lines[n-1])
		return err
	})
	return pid
}

// TestRenderedTensorFlowRuns runs what vernier render tensorflow prints: parameter
// servers that never end, and workers of which the first one's loss counts.
func TestRenderedTensorFlowRuns(t *testing.T) {
	i := up(t)
	const train = `case "$*" in
*--job_name=ps*) exec sleep 1000 ;;
*--task_index=0*) touch /logs/here; echo loss=${trialParameters.lr} ;;
*) echo loss=-1 ;;
esac`
	text, err := i.vernier("render", "tensorflow", "plain", "--workers", "2", "--ps", "1", "--image", "host", "--range", "lr=0.1:0.9", "--", "sh", "-c", train, "train")
	if err != nil {
		t.Fatalf("vernier render: %v\n%s", err, text)
	}
	file := filepath.Join(t.TempDir(), "plain.yaml")
	text = strings.Replace(text, "maxTrialCount: 12", "maxTrialCount: 2", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := i.vernier("run", "-f", file, "--timeout", "2m"); err != nil {
		i.showFailures(t, "plain")
		t.Fatalf("vernier run: %v\n%s", err, out)
	}
	trials := i.trials(t, "plain")
	checkTrials(t, "plain", 2, trials)
	for _, trial := range trials {
		x := trial.Spec.ParameterAssignments[0].Value
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Min != x || o.Metrics[0].Max != x {
			t.Errorf("%s observed %+v, want a loss of %s and no other", trial.Name, o, x)
		}
	}
}

// TestReplicasAreToldTheirPlaces runs the example of docs/distributed.md with another
// program: each worker says hello to all parameter servers at the addresses that it was
// given, and the first one's loss counts once these have heard from all.
func TestReplicasAreToldTheirPlaces(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "distributed.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "TestReplicasAreToldTheirPlaces")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	program, err := filepath.Abs(filepath.Join("testdata", "places.py"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "servers.yaml")
	write(t, file, strings.Replace(text, "/train.py", program, 1))
	i := up(t)
	if out, err := i.vernier("run", "-f", file, "--timeout", "5m"); err != nil {
		i.showFailures(t, "servers")
		t.Fatalf("vernier run: %v\n%s", err, out)
	}
	trials := i.trials(t, "servers")
	checkTrials(t, "servers", 4, trials)
	for _, trial := range trials {
		x := trial.Spec.ParameterAssignments[0].Value
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Min != x || o.Metrics[0].Max != x {
			t.Errorf("%s observed %+v, want a loss of %s and no other", trial.Name, o, x)
		}
	}
}
