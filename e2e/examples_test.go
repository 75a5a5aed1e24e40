//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// notRun are examples that cannot run in this test, and why.
var notRun = map[string]string{
	"darts":               "its references are for admission; KATIB_REPO has darts-cpu and darts-gpu",
	"xgb-svhn-fpga":       "it needs an FPGA",
	"prometheus":          "TestCollectors runs it",
	"push-metrics":        "TestCollectors runs it",
	"all-parameter-types": "it is for admission: its trials do nothing",
}

// TestKatibsExamplesRunToTheEnd runs experiments of the shapes of Katib's examples, and
// with KATIB_REPO, a checkout of its repository, these themselves, as they are written
// but for the namespace. No image is run: a program of testdata stands in for those of
// the images. No training operator is installed; the controllers of Workflows,
// PipelineRuns and TrainJobs have stand-ins.
func TestKatibsExamplesRunToTheEnd(t *testing.T) {
	program := standInPrograms(t)
	i := up(t, "--gpus=GPU-0,GPU-1", "--cpu=16", // more than there are: MPIJobs of two trials need three
		"--image-command=*/*/*/xgboost-lightgbm:*=lightgbm",
		"--image-command=*/*/*/custom-metrics-collector:*=python3 collect", "--image-command=registry.example/custom:*=python3 collect")
	i.shareTemplates(t)
	for _, gvk := range []schema.GroupVersionKind{workflows, pipelineRuns, taskRuns, trainJobs, jobSets} {
		i.define(t, gvk)
	}
	for gvk, make := range standIns {
		s := &standIn{i.client, program}
		i.control(t, gvk, func(ctx context.Context, job *unstructured.Unstructured) error { return make(s, ctx, job) })
	}
	for _, e := range katibExamples(t) {
		t.Run(e.Name, func(t *testing.T) {
			if why := notRun[e.Name]; why != "" {
				t.Skip("NOT RUN: " + why)
			}
			t.Parallel()
			if err := i.client.Create(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, e.Name)
				}
			})
			i.checkExample(t, e)
		})
	}
}

// checkExample holds that an experiment ends as Katib's documentation says: by its goal,
// or when all trials have ended, of which none failed; and goes on where it may.
func (i *instance) checkExample(t *testing.T, e *v1beta1.Experiment) {
	t.Helper()
	const patience = 8 * time.Minute
	i.awaitEndWithin(t, patience, e.Name)
	if e.Spec.ResumePolicy == v1beta1.LongRunning || e.Spec.ResumePolicy == v1beta1.FromVolume {
		eventually(t, time.Minute, func(ctx context.Context) error {
			patch := fmt.Appendf(nil, `{"spec": {"maxTrialCount": %d}}`, *e.Spec.MaxTrialCount+2)
			return i.client.Patch(ctx, e, client.RawPatch(types.MergePatchType, patch))
		})
		eventually(t, patience, func(ctx context.Context) error {
			if n := len(i.trials(t, e.Name)); n != int(*e.Spec.MaxTrialCount) {
				return fmt.Errorf("%d trials, want %d", n, *e.Spec.MaxTrialCount)
			}
			return nil
		})
		i.awaitEndWithin(t, patience, e.Name)
	}
	if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	trials := i.trials(t, e.Name)
	reason := e.LastCondition().Reason
	reached := reason == "ExperimentGoalReached" // which stops the others
	if !reached && len(trials) != int(*e.Spec.MaxTrialCount) {
		t.Errorf("it ended by %s after %d trials of %d", reason, len(trials), *e.Spec.MaxTrialCount)
	}
	ends := map[string]int{}
	for _, trial := range trials {
		last := trial.Status.Conditions[len(trial.Status.Conditions)-1]
		ends[string(last.Type)]++
		if last.Type != v1beta1.TrialSucceeded && last.Type != v1beta1.TrialEarlyStopped && !(reached && last.Type == v1beta1.TrialKilled) {
			t.Errorf("%s is %s: %s", trial.Name, last.Type, last.Message)
		}
	}
	best := e.Status.CurrentOptimalTrial
	t.Logf("%s: %s; trials %v; best %s", e.Name, e.LastCondition().Reason, ends, best.BestTrialName)
	if best.BestTrialName == "" {
		t.Error("there is no best trial")
	}
	if e.Spec.Algorithm.AlgorithmName == "pbt" {
		checkPopulation(t, e, trials)
	}
}

// checkPopulation holds that trials that continue others are better than these, since
// the program goes on from the checkpoint.
func checkPopulation(t *testing.T, e *v1beta1.Experiment, trials []v1beta1.Trial) {
	t.Helper()
	values := map[string]string{}
	for _, trial := range trials {
		values[trial.Name] = trial.Status.Observation.Metrics[0].Latest
	}
	for _, trial := range trials {
		parent := trial.Spec.Checkpoints.Parent
		maximize := e.Spec.Objective.Type == v1beta1.ObjectiveTypeMaximize
		if parent != "" && (values[trial.Name] > values[parent]) != maximize {
			t.Errorf("%s has %s, and %s, which it continues, %s", trial.Name, values[trial.Name], parent, values[parent])
		}
	}
}

// shareTemplates makes the ConfigMap of Katib's installation that examples name.
func (i *instance) shareTemplates(t *testing.T) {
	t.Helper()
	text := `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [
{name: training-container, image: host, command: [python3, /opt/mnist/mnist.py, "--lr=${trialParameters.learningRate}"]}]}}}}`
	templates := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "trial-templates", Labels: map[string]string{"katib.kubeflow.org/component": "trial-templates"}},
		Data:       map[string]string{"defaultTrialTemplate.yaml": text},
	}
	if err := i.client.Create(t.Context(), templates); err != nil {
		t.Fatal(err)
	}
}

// katibExamples are the experiments of this repository and of KATIB_REPO, in the
// namespace default, by their names.
func katibExamples(t *testing.T) []*v1beta1.Experiment {
	t.Helper()
	patterns := []string{filepath.Join("..", "api", "v1beta1", "testdata", "experiments", "*.yaml")}
	if repo := os.Getenv("KATIB_REPO"); repo != "" {
		patterns = []string{filepath.Join(repo, "examples", "v1beta1", "*", "*.yaml")}
	}
	all := map[string]*v1beta1.Experiment{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e := &v1beta1.Experiment{}
			if err := yaml.Unmarshal(raw, e); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			e.Namespace = "default"
			if os.Getenv("KATIB_REPO") == "" {
				forStandIn(t, e)
			}
			all[e.Name] = e
		}
	}
	var sorted []*v1beta1.Experiment
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[name])
	}
	return sorted
}

// forStandIn has the commands of an example of this repository say where metrics and
// checkpoints belong, as those of Katib's do, and runs a few trials only.
func forStandIn(t *testing.T, e *v1beta1.Experiment) {
	t.Helper()
	e.Spec.MaxTrialCount = ptr.To(min(ptr.Deref(e.Spec.MaxTrialCount, 4), 4))
	e.Spec.ParallelTrialCount = ptr.To(min(ptr.Deref(e.Spec.ParallelTrialCount, 2), 2))
	if e.Spec.MaxFailedTrialCount != nil {
		e.Spec.MaxFailedTrialCount = ptr.To(min(*e.Spec.MaxFailedTrialCount, 2))
	}
	if e.Spec.TrialTemplate == nil || e.Spec.TrialTemplate.TrialSpec == nil {
		return
	}
	var more string
	if m := e.Spec.MetricsCollectorSpec; m != nil && m.Source != nil && m.Source.FileSystemPath != nil {
		more += `, "--log-path=` + m.Source.FileSystemPath.Path + `"`
	}
	if c := e.Spec.Checkpoints(); c != nil {
		more += `, "--checkpoint=` + c.Path + `"`
	}
	raw := string(e.Spec.TrialTemplate.TrialSpec.Raw)
	for _, program := range []string{`"/opt/mnist/mnist.py"`, `"train.py"`} {
		raw = strings.ReplaceAll(raw, program, program+more)
	}
	e.Spec.TrialTemplate.TrialSpec.Raw = []byte(raw)
}

// standInPrograms puts programs into PATH that run the one of testdata in the place of
// those of images, and returns a command that does.
func standInPrograms(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(filepath.Join("testdata", "katib_example.py"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	interpreter := fmt.Sprintf(`#!/bin/sh
for word; do
	case $word in
	/opt/*|/examples/*|XGBoost/*|run_trial.py|RunTrial.py|train.py|collect) exec %[1]q -B %[2]q "$@" ;;
	esac
done
exec %[1]q "$@"
`, python, program)
	for name, script := range map[string]string{
		"python":   interpreter,
		"python3":  interpreter,
		"lightgbm": fmt.Sprintf("#!/bin/sh\nexec %q -B %q lightgbm \"$@\"\n", python, program),
		"mpirun":   "#!/bin/sh\nuntil [ \"$1\" = python ] || [ \"$1\" = python3 ]; do shift || exit 1; done\nexec \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return python + " -B " + program
}

// TestSimplePBTImproves runs Katib's simple-pbt, with a smaller population: each
// generation goes on from the checkpoints of the one before, and so becomes better.
func TestSimplePBTImproves(t *testing.T) {
	forEachUser(t, func(t *testing.T, user *syscall.Credential) {
		i, dir := upWithNetworks(t, user)
		program := filepath.Join(dir, "program.py")
		copyFile(t, filepath.Join("testdata", "katib_example.py"), program, 0o644)
		e := exampleOf(t, "simple-pbt")
		const population = 5
		e.Namespace, e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = "default", ptr.To[int32](4*population), ptr.To[int32](population)
		for n := range e.Spec.Algorithm.AlgorithmSettings {
			if s := &e.Spec.Algorithm.AlgorithmSettings[n]; s.Name == "n_population" {
				s.Value = fmt.Sprint(population)
			}
		}
		raw := string(e.Spec.TrialTemplate.TrialSpec.Raw)
		raw = strings.Replace(raw, `"/opt/mnist/mnist.py"`, fmt.Sprintf(`%q, "--checkpoint=%s"`, program, e.Spec.Checkpoints().Path), 1)
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.Replace(raw, "--epochs=1", "--epochs=20", 1))
		if err := i.client.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		i.awaitEndWithin(t, 4*time.Minute, e.Name)
		trials := i.trials(t, e.Name)
		checkTrials(t, e.Name, 4*population, trials)
		checkPopulation(t, e, trials)
		best := map[bool]float64{true: 1, false: 1} // by whether the trial continues another
		continued := 0
		for _, trial := range trials {
			var loss float64
			if _, err := fmt.Sscan(trial.Status.Observation.Metrics[0].Latest, &loss); err != nil {
				t.Fatal(err)
			}
			goesOn := trial.Spec.Checkpoints.Parent != ""
			if goesOn {
				continued++
			}
			best[goesOn] = min(best[goesOn], loss)
		}
		t.Logf("the best loss of the first generation is %.3f, of %d trials that go on %.3f", best[false], continued, best[true])
		if continued < 2*population || best[true] >= best[false] {
			t.Errorf("%d trials went on, and the best of them has %g; without, %g", continued, best[true], best[false])
		}
	})
}
