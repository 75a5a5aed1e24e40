package operator

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the environments of testdata anew")

// environments are the jobs whose generated environments are in testdata, which were
// compared with those of the training operator 1.9.4 (MXJob: 1.8.1).
var environments = map[string][]example{
	"PyTorchJob": {
		{"one master", counts{"Master": 1}, ""},
		{"one master and one worker", counts{"Master": 1, "Worker": 1}, ""},
		{"one master and four workers with two processes each", counts{"Master": 1, "Worker": 4}, "nprocPerNode: '2'"},
		{"one worker", counts{"Worker": 1}, ""},
		{"two workers", counts{"Worker": 2}, ""},
		{"five workers", counts{"Worker": 5}, "nprocPerNode: auto"},
		{"one elastic worker", counts{"Worker": 1}, "elasticPolicy: {}"},
		{"two elastic workers", counts{"Worker": 2}, "elasticPolicy: {minReplicas: 1, maxReplicas: 2, rdzvBackend: c10d, maxRestarts: 100}"},
		{"five elastic workers", counts{"Worker": 5}, "elasticPolicy: {maxReplicas: 5, rdzvPort: 29400, rdzvHost: etcd, rdzvId: run, nProcPerNode: 4, standalone: true, rdzvConf: [{key: timeout, value: '9'}, {key: retry, value: '2'}]}"},
		{"one elastic master and one worker", counts{"Master": 1, "Worker": 1}, "elasticPolicy: {minReplicas: 1}"},
	},
	"TFJob": {
		{"one worker", counts{"Worker": 1}, ""},
		{"two workers", counts{"Worker": 2}, ""},
		{"one parameter server and two workers", counts{"PS": 1, "Worker": 2}, ""},
		{"a chief, two parameter servers, an evaluator and five workers", counts{"Chief": 1, "PS": 2, "Worker": 5, "Evaluator": 1}, ""},
		{"two parameter servers and two dynamic workers", counts{"PS": 2, "Worker": 2}, "enableDynamicWorker: true"},
	},
	"XGBoostJob": {
		{"one master", counts{"Master": 1}, ""},
		{"one master and one worker", counts{"Master": 1, "Worker": 1}, ""},
		{"one master and four workers", counts{"Master": 1, "Worker": 4}, ""},
	},
	"JAXJob": {
		{"one worker", counts{"Worker": 1}, ""},
		{"two workers", counts{"Worker": 2}, ""},
		{"five workers", counts{"Worker": 5}, ""},
	},
	"PaddleJob": {
		{"one worker", counts{"Worker": 1}, ""},
		{"two workers", counts{"Worker": 2}, ""},
		{"five workers", counts{"Worker": 5}, "elasticPolicy: {minReplicas: 2, maxReplicas: 5, maxRestarts: 3}"},
		{"two masters and two workers", counts{"Master": 2, "Worker": 2}, ""},
	},
	"MXJob": {
		{"one worker", counts{"Worker": 1}, ""},
		{"a scheduler, one server and two workers", counts{"Scheduler": 1, "Server": 1, "Worker": 2}, ""},
		{"a scheduler, two servers and five workers", counts{"Scheduler": 1, "Server": 2, "Worker": 5}, ""},
		{"tuning with a server", counts{"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}, "jobMode: MXTune"},
	},
	"MPIJob": {
		{"one worker", counts{"Launcher": 1, "Worker": 1}, ""},
		{"two workers with two slots each", counts{"Launcher": 1, "Worker": 2}, "slotsPerWorker: 2"},
		{"five workers of MPICH", counts{"Launcher": 1, "Worker": 5}, "mpiImplementation: MPICH"},
		{"two workers of Intel MPI", counts{"Launcher": 1, "Worker": 2}, "mpiImplementation: Intel\n  runLauncherAsWorker: true"},
	},
}

type counts map[string]int

type example struct {
	name  string
	pods  counts
	extra string // YAML of the spec
}

// job is the example as an object. Each pod has a second container, and a variable of
// its own.
func (e example) job(t *testing.T, f framework) *unstructured.Unstructured {
	t.Helper()
	var replicas strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.pods)) {
		fmt.Fprintf(&replicas, `
    %s:
      replicas: %d
      template:
        metadata: {annotations: {tuner-server-key: key}}
        spec:
          containers:
          - {name: %s, image: train, env: [{name: OWN, value: "1"}]}
          - {name: beside, image: beside}`, name, e.pods[name], f.container)
	}
	text := fmt.Sprintf(`
apiVersion: kubeflow.org/v1
kind: %s
metadata: {name: exp-0001, namespace: team, uid: a1}
spec:
  %s
  %s:%s
`, f.kind, e.extra, f.field, replicas.String())
	var obj unstructured.Unstructured
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = obj.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return &obj
}

func TestEnvironmentsAreThoseOfTheTrainingOperator(t *testing.T) {
	for _, f := range frameworks("kubectl") {
		t.Run(f.kind, func(t *testing.T) {
			var got strings.Builder
			for _, e := range environments[f.kind] {
				j, err := read(e.job(t, f), f)
				if err != nil {
					t.Fatalf("%s: %v", e.name, err)
				}
				fmt.Fprintf(&got, "# %s\n", e.name)
				var all []seat
				for _, r := range j.replicas {
					for i := range r.count {
						all = append(all, seat{r.name, i})
					}
				}
				for _, o := range j.objects(all) {
					describe(&got, o)
				}
			}
			file := filepath.Join("testdata", strings.ToLower(f.kind)+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("environments (-want +got); go test -update ./trainer/operator writes them\n%s", diff)
			}
		})
	}
}

func describe(b *strings.Builder, o client.Object) {
	if config, ok := o.(*corev1.ConfigMap); ok {
		for _, name := range slices.Sorted(maps.Keys(config.Data)) {
			fmt.Fprintf(b, "%s %s\n  %s\n", config.Name, name, strings.ReplaceAll(strings.TrimSpace(config.Data[name]), "\n", "\n  "))
		}
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	for _, c := range pod.Spec.Containers {
		fmt.Fprintln(b, strings.TrimSpace(pod.Name+" "+c.Name+" "+pod.Labels[labelJobRole]))
		for _, v := range c.Env {
			value := v.Value
			if v.ValueFrom != nil {
				value = v.ValueFrom.FieldRef.FieldPath
			}
			fmt.Fprintf(b, "  %s=%s\n", v.Name, value)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for name, tc := range map[string]struct {
		framework
		example
		want string
	}{
		"a sound job":                    {pytorch(), example{pods: counts{"Master": 1, "Worker": 2}}, ""},
		"types in any case":              {pytorch(), example{pods: counts{"master": 1}}, ""},
		"no such type":                   {pytorch(), example{pods: counts{"Master": 1, "PS": 1}}, "spec.pytorchReplicaSpecs.PS: a PyTorchJob has no such replicas: write Master, Worker"},
		"none decides when it has ended": {tensorflow(), example{pods: counts{"PS": 1}}, "spec.tfReplicaSpecs: no replica decides when the job has ended: give at least one Chief or Master or Worker"},
		"no workers":                     {jax(), example{pods: counts{"Worker": 0}}, "give at least one Worker"},
		"fewer than none":                {tensorflow(), example{pods: counts{"PS": -1, "Worker": 1}}, "spec.tfReplicaSpecs.PS.replicas: -1 is less than 0"},
		"more than can be run":           {tensorflow(), example{pods: counts{"Chief": 1, "Worker": 2_000_000_000}}, "spec.tfReplicaSpecs: 2000000001 pods are more than the 2000"},
		"a type in two spellings":        {jax(), example{pods: counts{"worker": 1, "Worker": 2}}, "spec.jaxReplicaSpecs.worker: Worker is given twice"},
		"an XGBoostJob with no one":      {xgboost(), example{pods: counts{"Worker": 1}}, "spec.xgbReplicaSpecs.Master: is missing"},
		"two launchers":                  {mpi(""), example{pods: counts{"Launcher": 2, "Worker": 1}}, "spec.mpiReplicaSpecs.Launcher: an MPIJob has one launcher"},
		"elastic without workers":        {pytorch(), example{pods: counts{"Master": 1}, extra: "elasticPolicy: {}"}, "spec.elasticPolicy: needs Worker replicas"},
		"a policy of its own":            {jax(), example{pods: counts{"Worker": 1}, extra: "runPolicy: {cleanPodPolicy: Some}"}, `spec.runPolicy.cleanPodPolicy: write None, Running or All, not "Some"`},
		"a number for a text":            {pytorch(), example{pods: counts{"Worker": 1}, extra: "nprocPerNode: 2"}, "spec: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(tc.job(t, tc.framework))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestServicesHaveThePortsOfTheirPods(t *testing.T) {
	port := func(name string, number int32, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol}
	}
	for name, tc := range map[string]struct {
		ports []corev1.ContainerPort
		want  string
	}{
		"none":                            {nil, "pytorchjob-port:23456/TCP"},
		"two without a name":              {[]corev1.ContainerPort{port("", 80, ""), port("", 81, "UDP")}, "port-80:80/TCP port-81-udp:81/UDP pytorchjob-port:23456/TCP"},
		"the kind's, by another name":     {[]corev1.ContainerPort{port("rdzv", 23456, "")}, "rdzv:23456/TCP"},
		"the kind's, with another number": {[]corev1.ContainerPort{port("pytorchjob-port", 1, "TCP")}, "pytorchjob-port:1/TCP"},
		"one number twice":                {[]corev1.ContainerPort{port("a", 80, "TCP"), port("b", 80, ""), port("", 80, "UDP")}, "a:80/TCP port-80-udp:80/UDP pytorchjob-port:23456/TCP"},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := read(example{pods: counts{"Master": 1}}.job(t, pytorch()), pytorch())
			if err != nil {
				t.Fatal(err)
			}
			j.main(&j.replicas[0].template.Spec).Ports = tc.ports
			got, master := "", seat{"Master", 0}
			for _, p := range j.service(master, j.pod(master)).Spec.Ports {
				got = word(got, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
