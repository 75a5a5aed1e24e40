package trainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// words is the command of most jobs below.
const words = `["--role=${replica.role}", "--index=${replica.index}"]`

// replicaJobs are templates whose %s is a command, and one %[2]s a number of pods.
var replicaJobs = map[string]string{
	"TFJob": `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {
		PS: {replicas: 2, template: {spec: {containers: [{name: tensorflow, command: COMMAND}]}}},
		Worker: {replicas: 3, template: {spec: {containers: [{name: tensorflow, command: COMMAND, ports: [{name: tfjob-port, containerPort: 7000}]}]}}}}}}`,
	"PyTorchJob": `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {
		Master: {template: {spec: {containers: [{name: pytorch, command: COMMAND}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, command: COMMAND}]}}}}}}`,
	"MPIJob": `{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {
		Launcher: {template: {spec: {containers: [{name: mpi, command: COMMAND}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: mpi}]}}}}}}`,
	"MPIJob v2": `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {
		Launcher: {template: {spec: {containers: [{name: mpi, command: COMMAND}]}}},
		Worker: {replicas: 2, template: {spec: {containers: [{name: mpi}]}}}}}}`,
	"XGBoostJob": `{apiVersion: kubeflow.org/v1, kind: XGBoostJob, spec: {xgbReplicaSpecs: {
		Master: {template: {spec: {containers: [{name: xgboost, command: COMMAND}]}}}}}}`,
	"JAXJob": `{apiVersion: kubeflow.org/v1, kind: JAXJob, spec: {jaxReplicaSpecs: {
		Worker: {replicas: 2, template: {spec: {containers: [{name: jax, command: COMMAND}]}}}}}}`,
	"Indexed Job": `{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 5, parallelism: 5, template: {spec: {
		subdomain: mnist, containers: [{name: main, command: COMMAND, ports: [{containerPort: 2222}], env: [{name: A, value: b}]}]}}}}`,
	"Indexed Job of too many": `{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 2000000000, template: {spec: {
		subdomain: mnist, containers: [{name: main, command: COMMAND}]}}}}`,
	"Indexed Job without a Service": `{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 2, template: {spec: {
		containers: [{name: main, command: COMMAND}]}}}}`,
	"Job": `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: main, command: COMMAND}]}}}}`,
	"JobSet": `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [
		{name: leader, template: {spec: {template: {spec: {containers: [{name: main, command: COMMAND}]}}}}},
		{name: worker, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, command: COMMAND}]}}}}},
		{name: many, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main}]}}}}}]}}`,
	"TrainJob":                 `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: torch}, trainer: {numNodes: 2, command: COMMAND}}}`,
	"TrainJob of its runtime":  `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: torch}, trainer: {command: COMMAND}}}`,
	"Workflow":                 `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: a, container: {command: COMMAND}}]}}`,
	"RayJob":                   `{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, command: COMMAND}]}}}}}}`,
	"TFJob of too many":        `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {Worker: {replicas: 2000000000, template: {spec: {containers: [{name: tensorflow, command: COMMAND}]}}}}}}`,
	"TFJob of searched counts": `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {Worker: {replicas: ${trialParameters.n}, template: {spec: {containers: [{name: tensorflow, command: COMMAND}]}}}}}}`,
}

// replicaTold is what a container of a rendered job has in the places that tests look at.
type replicaTold struct {
	Command []string
	Env     []any
}

func TestReplicasAreTold(t *testing.T) {
	label := []any{map[string]any{"name": trainer.VariableIndex, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}}}}
	completion := []any{map[string]any{"name": trainer.VariableIndex, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}}
	const index = "$(" + trainer.VariableIndex + ")"
	tests := map[string]struct {
		job, command string
		container    []string
		want         replicaTold
	}{
		"a worker of a TFJob": {"TFJob", words, []string{"spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"},
			replicaTold{[]string{"--role=worker", "--index=" + index}, label}},
		"hosts of a TFJob, with the port that its container declares": {"TFJob", `["--ps_hosts=${replica.hosts.ps}", "--worker_hosts=${replica.hosts.worker}"]`,
			[]string{"spec", "tfReplicaSpecs", "PS", "template", "spec", "containers"},
			replicaTold{[]string{"--ps_hosts=exp-0007-ps-0.team.svc:2222,exp-0007-ps-1.team.svc:2222",
				"--worker_hosts=exp-0007-worker-0.team.svc:7000,exp-0007-worker-1.team.svc:7000,exp-0007-worker-2.team.svc:7000"}, nil}},
		"the only master of a PyTorchJob": {"PyTorchJob", `["${replica.index}", "${replica.hosts}", "${replica.hosts.worker[1]}"]`,
			[]string{"spec", "pytorchReplicaSpecs", "Master", "template", "spec", "containers"},
			replicaTold{[]string{"0", "exp-0007-master-0.team.svc:23456", "exp-0007-worker-1.team.svc:23456"}, nil}},
		"workers of an MPIJob by the names that mpirun takes": {"MPIJob", `["mpirun", "-H", "${replica.hosts.worker}"]`,
			[]string{"spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers"},
			replicaTold{[]string{"mpirun", "-H", "exp-0007-worker-0,exp-0007-worker-1"}, nil}},
		"an XGBoostJob of a master": {"XGBoostJob", `["${replica.hosts.master}"]`, []string{"spec", "xgbReplicaSpecs", "Master", "template", "spec", "containers"},
			replicaTold{[]string{"exp-0007-master-0.team.svc:9999"}, nil}},
		"the coordinator of a JAXJob": {"JAXJob", `["${replica.hosts[0]}", "${replica.index}"]`, []string{"spec", "jaxReplicaSpecs", "Worker", "template", "spec", "containers"},
			replicaTold{[]string{"exp-0007-worker-0.team.svc:6666", index}, label}},
		"an Indexed Job whose first pods are servers": {"Indexed Job", `["${replica.hosts[:2]}", "${replica.hosts[2:5]}", "${replica.index}"]`, []string{"spec", "template", "spec", "containers"},
			replicaTold{[]string{"exp-0007-0.mnist:2222,exp-0007-1.mnist:2222", "exp-0007-2.mnist:2222,exp-0007-3.mnist:2222,exp-0007-4.mnist:2222", index},
				append(completion[:1:1], map[string]any{"name": "A", "value": "b"})}},
		"a worker of a JobSet": {"JobSet", `["${replica.hosts.leader}", "${replica.hosts.many[3]}", "${replica.index}"]`, []string{"spec", "replicatedJobs", "1", "template", "spec", "template", "spec", "containers"},
			replicaTold{[]string{"exp-0007-leader-0-0.exp-0007", "exp-0007-many-1-1.exp-0007", index}, completion}},
		"a node of a TrainJob": {"TrainJob", `["${replica.hosts}", "${replica.index}", "${replica.role}"]`, []string{"spec", "trainer"},
			replicaTold{[]string{"exp-0007-node-0-0.exp-0007:29500,exp-0007-node-0-1.exp-0007:29500", index, "node"}, completion}},
		"the number of workers may be searched": {"TFJob of searched counts", `["${replica.hosts[1:]}"]`, []string{"spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"},
			replicaTold{[]string{"exp-0007-worker-1.team.svc:2222"}, nil}},
		"a value that looks like a placeholder is kept": {"Job", `["${trialParameters.text}"]`, []string{"spec", "template", "spec", "containers"},
			replicaTold{[]string{"$${replica.index}"}, nil}},
		"names of another language are left alone": {"Workflow", `["id=${replica.id}", "${replica.${which}}", "${replica.hostsfile}"]`, []string{"spec", "templates", "0", "container"},
			replicaTold{[]string{"id=${replica.id}", "${replica.${which}}", "${replica.hostsfile}"}, nil}},
		"a placeholder that is only text": {"Workflow", `["id=$${replica.index}", "$${replica.hosts[0]}", "$${trialSeed}", "$${trialParameters.n}"]`, []string{"spec", "templates", "0", "container"},
			replicaTold{[]string{"id=${replica.index}", "${replica.hosts[0]}", "${trialSeed}", "$2"}, nil}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trainer.Render([]byte(strings.ReplaceAll(replicaJobs[tc.job], "COMMAND", tc.command)), replicaParameters,
				map[string]string{"text": "${replica.index}", "n": "2"}, id, kind.For)
			if err != nil {
				t.Fatal(err)
			}
			var at any = got.Object
			for _, p := range tc.container {
				if list, ok := at.([]any); ok {
					at = list[int(p[0]-'0')]
					continue
				}
				at = at.(map[string]any)[p]
			}
			if list, ok := at.([]any); ok {
				at = list[0]
			}
			var have replicaTold
			raw, err := yaml.Marshal(at)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(raw, &have); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

var replicaParameters = []trainer.Placeholder{{Name: "text", Reference: "text"}, {Name: "n", Reference: "n"}}

func TestReplicasThatAreNotKnown(t *testing.T) {
	tests := map[string]struct{ job, command, want string }{
		"the index of a plain Job":                      {"Job", `["${replica.index}"]`, "completionMode: Indexed"},
		"hosts of an Indexed Job without a Service":     {"Indexed Job without a Service", `["${replica.hosts}"]`, "spec.template.spec.subdomain"},
		"hosts of an MPIJob whose operator decides":     {"MPIJob v2", `["${replica.hosts.worker}"]`, "hostfile"},
		"hosts of a TrainJob whose runtime counts them": {"TrainJob of its runtime", `["${replica.hosts}"]`, "spec.trainer.numNodes"},
		"a Workflow":                       {"Workflow", `["${replica.index}"]`, "a Workflow are not known"},
		"a RayJob":                         {"RayJob", `["${replica.index}"]`, "a RayJob are not known"},
		"a role that the job has not":      {"TFJob", `["${replica.hosts.chief}"]`, "no such role"},
		"a pod that the job has not":       {"TFJob", `["${replica.hosts.ps[2]}"]`, "there are 2 of these pods"},
		"a range that is upside down":      {"TFJob", `["${replica.hosts.worker[2:1]}"]`, "there are 3"},
		"more hosts than a command holds":  {"Indexed Job of too many", `["${replica.hosts}"]`, "a list may have 10000"},
		"more pods than a job may have":    {"TFJob of too many", `["${replica.hosts}"]`, "2000000000 pods are more than the 2000"},
		"a list that there is not":         {"TFJob", `["${replica.hosts[first]}"]`, "write hosts, hosts.ROLE"},
		"the role of pods that have none":  {"Indexed Job", `["${replica.role}"]`, "one role without a name"},
		"the index outside of a container": {"Indexed Job", `["x"]}], nodeName: "${replica.index}", volumes: [{name: a`, "command, args, env or subPathExpr"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := trainer.Render([]byte(strings.ReplaceAll(replicaJobs[tc.job], "COMMAND", tc.command)), replicaParameters, map[string]string{"n": "2"}, id, kind.For)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, trainer.ErrUnknownPlaceholder) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
}
