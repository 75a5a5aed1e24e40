//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// What testdata/distributed.py needs: without JAX, which make e2e-frameworks adds, about
// 80 MB to load.
const (
	collectivePackages    = "numpy mpi4py openmpi xgboost-cpu"
	allCollectivePackages = collectivePackages + " jax"
)

// collectiveJobs are jobs of two ranks. %[1]s is Python, %[2]s its directory, and
// %[3]s the program with its arguments.
var collectiveJobs = map[string]string{
	"mpi": `{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {
      Launcher: {template: {spec: {containers: [{name: main, image: host, env: [{name: OMPI_ALLOW_RUN_AS_ROOT, value: "1"}, {name: OMPI_ALLOW_RUN_AS_ROOT_CONFIRM, value: "1"}],
        command: [%[2]s/mpirun, -n, "2", %[1]s, %[3]s]}]}}},
      Worker: {replicas: 2, template: {spec: {containers: [{name: main, image: host}]}}}}}}`,
	"xgboost": `{apiVersion: kubeflow.org/v1, kind: XGBoostJob, spec: {xgbReplicaSpecs: {
      Master: {template: {spec: {containers: [{name: main, image: host, command: [%[1]s, %[3]s]}]}}},
      Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: host, command: [%[1]s, %[3]s]}]}}}}}}`,
	"jax": `{apiVersion: kubeflow.org/v1, kind: JAXJob, spec: {jaxReplicaSpecs: {
      Worker: {replicas: 2, template: {spec: {containers: [{name: main, image: host, command: [%[1]s, %[3]s]}]}}}}}}`,
	"indexed": `{apiVersion: batch/v1, kind: Job, spec: {completions: 2, parallelism: 2, completionMode: Indexed, backoffLimit: 0, template: {metadata: {labels: {app: indexed}},
      spec: {subdomain: indexed, restartPolicy: Never, containers: [{name: main, image: host, env: [{name: SUBDOMAIN, value: indexed}], command: [%[1]s, %[3]s]}]}}}}`,
}

// collectiveProgram is what the ranks of a job run, by the name of the experiment.
var collectiveProgram = map[string]string{"mpi": "mpi", "xgboost": "xgboost", "jax": "jax", "indexed": "xgboost"}

// cheapJobs are those that make e2e runs.
var cheapJobs = []string{"mpi", "indexed"}

// TestFrameworksOfSeveralRanks tunes trainings of two ranks with real frameworks. What
// they print is what all ranks agreed on.
func TestFrameworksOfSeveralRanks(t *testing.T) {
	forEachUser(t, func(t *testing.T, user *syscall.Credential) {
		i, dir := upWithNetworks(t, user)
		all, packages := os.Getenv(envFrameworksPython) != "", collectivePackages
		if all {
			packages = allCollectivePackages
		}
		jobs := maps.Clone(collectiveJobs)
		maps.DeleteFunc(jobs, func(name, _ string) bool {
			left := !all && !slices.Contains(cheapJobs, name)
			if left {
				t.Logf("NOT RUN: %s, which make e2e-frameworks runs", name)
			}
			return left
		})
		python := pythonFor(t, packages)
		program := filepath.Join(dir, "distributed.py")
		copyFile(t, filepath.Join("testdata", "distributed.py"), program, 0o644)
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "indexed", Namespace: "default"},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{"app": "indexed"}},
		}
		if err := i.client.Create(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		for name, job := range jobs { // side by side
			run := fmt.Sprintf(`%s, %s, "${trialParameters.rate}"`, program, collectiveProgram[name])
			i.tuneRanks(t, name, fmt.Sprintf(job, python, filepath.Dir(python), run))
		}
		for name := range jobs {
			t.Run(name, func(t *testing.T) { i.checkRanks(t, name, 6) })
		}
	})
}

// tuneRanks creates an experiment of 6 trials whose job is given. Its program prints a
// loss and the number of its ranks.
func (i *instance) tuneRanks(t *testing.T, name, job string) {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s, namespace: default}
spec:
  seed: 1
  objective: {type: minimize, objectiveMetricName: loss, additionalMetricNames: [ranks]}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 6
  maxFailedTrialCount: 1
  parameters: [{name: rate, parameterType: double, feasibleSpace: {min: "0.001", max: "0.5", distribution: logUniform}}]
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: rate, reference: rate}]
    trialSpec: %s
`, name, job)
	var experiment v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(text), &experiment); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Create(t.Context(), &experiment); err != nil {
		t.Fatal(err)
	}
}

// checkRanks waits for an experiment. In each of its trials two ranks took part, and the
// best is better than the first.
func (i *instance) checkRanks(t *testing.T, name string, trials int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			i.showFailures(t, name)
			i.showEvents(t, name)
			out, _ := i.vernier("logs", name+"/"+name+"-0000", "--tail", "60")
			t.Logf("%s", out)
		}
	})
	i.awaitEndWithin(t, 8*time.Minute, name)
	all := i.trials(t, name)
	checkTrials(t, name, trials, all)
	var losses []float64
	for _, trial := range all {
		values := map[string]string{}
		if trial.Status.Observation != nil {
			for _, m := range trial.Status.Observation.Metrics {
				values[m.Name] = m.Latest
			}
		}
		loss, err := strconv.ParseFloat(values["loss"], 64)
		if err != nil || values["ranks"] != "2" {
			t.Errorf("%s observed %v, want a loss and 2 ranks", trial.Name, values)
		}
		losses = append(losses, loss)
	}
	best := losses[0]
	for _, loss := range losses {
		best = min(best, loss)
	}
	t.Logf("the first loss is %g, the best %g", losses[0], best)
	if !(best < losses[0]) {
		t.Errorf("no trial is better than the first: %v", losses)
	}
}

// forEachUser runs a test as the user of the tests and as one without any rights.
func forEachUser(t *testing.T, test func(t *testing.T, user *syscall.Credential)) {
	t.Run("as this user", func(t *testing.T) { test(t, nil) })
	t.Run("as an ordinary user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("this user is one already")
		}
		test(t, ordinary)
	})
}

// ordinary is a user without any rights.
var ordinary = &syscall.Credential{Uid: 65534, Gid: 65534}

// upWithNetworks starts an instance of a user where pods have networks of their own,
// and returns a directory that the user may read and write.
func upWithNetworks(t *testing.T, user *syscall.Credential) (*instance, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ranks-") // t.TempDir is for the owner only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if user != nil {
		if err := os.Chown(dir, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	i := upAs(t, filepath.Join(dir, "home"), user)
	status, err := i.vernier("status")
	if err != nil {
		t.Fatal(err)
	}
	if _, why, shared := strings.Cut(status, "pods share the machine's network"); shared {
		t.Skipf("this machine allows no networks of pods%s", why)
	}
	return i, dir
}

// pythonFor is a Python with packages that any user may run. Without the packages the
// test is skipped, and says why.
func pythonFor(t *testing.T, packages string) string {
	t.Helper()
	var user *syscall.Credential
	if os.Geteuid() == 0 {
		user = ordinary
	}
	for _, base := range []string{"python3", "/usr/bin/python3"} {
		if tryPython(base, user) != nil {
			continue
		}
		python, err := venvOf(t.Context(), base, packages)
		if err != nil {
			t.Skipf("NOT RUN: %s cannot be installed: %v", packages, err)
		}
		return python
	}
	t.Skip("NOT RUN: an ordinary user can run no python3 that has venv")
	return ""
}

// tryPython says why a user cannot run a Python. One below another user's home, for
// instance, is out of reach.
func tryPython(python string, user *syscall.Credential) error {
	cmd := exec.Command(python, "-c", "import ensurepip, venv")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	return cmd.Run()
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, mode); err != nil {
		t.Fatal(err)
	}
}

// TestExamplesOfSeveralRanks runs the examples of PyTorch and TensorFlow, whose packages
// take some GB: make e2e-frameworks has them.
func TestExamplesOfSeveralRanks(t *testing.T) {
	python := os.Getenv(envFrameworksPython)
	if python == "" {
		t.Skip("NOT RUN: PyTorch and TensorFlow take 7 GB: run make e2e-frameworks")
	}
	examples := map[string]struct{ framework, file, name, command, program string }{
		"PyTorchJob": {"torch", "pytorch/experiment.yaml", "ddp", "torchrun", "pytorch/ddp.py"},
		"TFJob":      {"tf_keras", "tensorflow/tfjob.yaml", "servers", "python3", "tensorflow/servers.py"},
	}
	forEachUser(t, func(t *testing.T, user *syscall.Credential) {
		if err := tryPython(python, user); err != nil {
			t.Skipf("NOT RUN: this user cannot run %s: %v", python, err)
		}
		i, dir := upWithNetworks(t, user)
		for kind, example := range examples {
			t.Run(kind, func(t *testing.T) {
				if !slices.Contains(strings.Fields(os.Getenv(envFrameworks)), example.framework) {
					t.Skipf("NOT RUN: %s is not among the FRAMEWORKS", example.framework)
				}
				program := filepath.Join(dir, filepath.Base(example.program))
				copyFile(t, filepath.Join("..", "examples", example.program), program, 0o644)
				text, err := os.ReadFile(filepath.Join("..", "examples", example.file))
				if err != nil {
					t.Fatal(err)
				}
				command := example.command + ", /train/" + filepath.Base(program)
				if !strings.Contains(string(text), command) {
					t.Fatalf("the example does not run %s", command)
				}
				run := filepath.Join(filepath.Dir(python), example.command) + ", " + program
				var experiment v1beta1.Experiment
				if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), command, run)), &experiment); err != nil {
					t.Fatal(err)
				}
				experiment.Namespace, experiment.Spec.Seed = "default", ptr.To[int64](1)
				if err := i.client.Create(t.Context(), &experiment); err != nil {
					t.Fatal(err)
				}
				i.checkRanks(t, example.name, 6)
			})
		}
	})
}
