// Package trainertest has the contract tests of kinds of jobs, and fixtures with
// their jobs in each phase.
//
// A kind is tested if it has a file in fixtures.
package trainertest

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/trainer"
)

//go:embed fixtures/*.yaml
var files embed.FS

// Fixture is one kind of job.
type Fixture struct {
	// File that the fixture comes from.
	File string `json:"-"`
	// SuccessCondition and FailureCondition as an experiment has them.
	SuccessCondition string `json:"successCondition"`
	FailureCondition string `json:"failureCondition"`
	// PrimaryContainer and PrimaryPodLabels as an experiment has them.
	PrimaryContainer string            `json:"primaryContainer"`
	PrimaryPodLabels map[string]string `json:"primaryPodLabels"`
	// PrimaryTemplate is the path of the template that is measured; empty if none
	// can be found in the kind.
	PrimaryTemplate string `json:"primaryTemplate"`
	// Templates are the paths of all pod templates.
	Templates []string `json:"templates"`
	// Pod is one that an Opaque kind's controller makes and that reports, and OtherPod one
	// that does not, both before their admission.
	Pod      map[string]any `json:"pod"`
	OtherPod map[string]any `json:"otherPod"`
	// PodContainer is the primary container of Pod. Default: PrimaryContainer.
	PodContainer string `json:"podContainer"`
	// PodLabels is the path of the labels that its controller gives to Pod.
	PodLabels string `json:"podLabels"`
	// Job without its status.
	Job map[string]any `json:"job"`
	// States that the job passes through.
	States []State `json:"states"`
}

// State is one moment in the life of a fixture's job.
type State struct {
	Name   string         `json:"name"`
	Status map[string]any `json:"status"`
	// Phase, Reason and Message that the status should give.
	Phase   trainer.Phase `json:"phase"`
	Reason  string        `json:"reason"`
	Message string        `json:"message"`
}

// Object is a copy of the fixture's job.
func (f Fixture) Object() *unstructured.Unstructured {
	return (&unstructured.Unstructured{Object: f.Job}).DeepCopy()
}

// In is the fixture's job in a state.
func (f Fixture) In(s State) *unstructured.Unstructured {
	job := f.Object()
	if s.Status != nil {
		job.Object["status"] = s.Status
	}
	return job
}

// alike are kinds that differ by names only from the first of their list, which has the
// file: the kind, the field of its replicas, the container, and the role that leads.
var alike = map[string][][4]string{
	"pytorchjob.yaml": {
		{"PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master"},
		{"TFJob", "tfReplicaSpecs", "tensorflow", "Chief"},
		{"MPIJob", "mpiReplicaSpecs", "mpi", "Launcher"},
		{"XGBoostJob", "xgbReplicaSpecs", "xgboost", "Master"},
	},
	"jaxjob.yaml": {
		{"JAXJob", "jaxReplicaSpecs", "jax", "Worker"},
		{"PaddleJob", "paddleReplicaSpecs", "paddle", "Worker"},
		{"MXJob", "mxReplicaSpecs", "mxnet", "Worker"},
	},
}

// Fixtures reads all fixtures, sorted by file.
func Fixtures() ([]Fixture, error) {
	entries, err := files.ReadDir("fixtures")
	if err != nil {
		return nil, fmt.Errorf("read the fixtures: %w", err)
	}
	var all []Fixture
	add := func(name, text string) error {
		f, err := parse(name, text)
		if err != nil {
			return fmt.Errorf("read the fixture %s: %w", name, err)
		}
		all = append(all, f)
		return nil
	}
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("fixtures", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the fixture %s: %w", e.Name(), err)
		}
		if err := add(e.Name(), string(text)); err != nil {
			return nil, err
		}
		kinds := alike[e.Name()]
		for i := 1; i < len(kinds); i++ {
			var names []string
			for n, old := range kinds[0] {
				names = append(names, old, kinds[i][n])
			}
			if err := add(e.Name()+" as "+kinds[i][0], strings.NewReplacer(names...).Replace(string(text))); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func parse(name, text string) (Fixture, error) {
	f := Fixture{File: name}
	if err := yaml.UnmarshalStrict([]byte(text), &f); err != nil {
		return f, err
	}
	// Through the decoder of API objects, so that numbers have the right types.
	job := &unstructured.Unstructured{}
	raw, err := yaml.Marshal(f.Job)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err == nil {
		err = job.UnmarshalJSON(raw)
	}
	f.Job = job.Object
	return f, err
}
