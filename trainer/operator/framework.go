package operator

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// framework is what one kind of job has of its own.
type framework struct {
	kind, plural string
	// field of the spec that has the replicas, and their types in order.
	field string
	types []string
	// container that trains, the port where it listens, and how its pods restart
	// unless the job says otherwise.
	container, portName string
	defaultPort         int32
	restart             restartPolicy
	// leaders are the types that decide when the job has ended: the first one that it has
	// does. Its pods are labelled as master. A job without leader ends as its workers do.
	leaders []string
	// worker0 labels the first worker of a job without leader as master.
	worker0 bool
	// lasting are types whose pods may outlive the job's success for a while: servers,
	// which workers need that still end, and workers that are measured although another
	// pod's end is the job's.
	lasting []string
	// dynamic: workers may come and go where spec.enableDynamicWorker says so.
	dynamic bool
	// last is a type of one pod that is made when all others run.
	last string
	// check says what is wrong with a job.
	check func(*job) error
	// environ writes the cluster into the environment of one pod's containers.
	environ func(*job, seat, *corev1.PodSpec)
	// beside are the other objects that a job's pods need; nil for none.
	beside func(*job) []client.Object
	// workersDone says whether a job without leader has succeeded.
	workersDone func(*job, tally) bool
}

// seat is one pod's place in its job.
type seat struct {
	replica string
	index   int
}

// group of all kinds. Katib's objects are in it too.
const group = "kubeflow.org"

func (f framework) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: f.kind}
}

// frameworks are the kinds that the operator runs, sorted by kind. kubectl is what
// launchers of MPIJobs call.
func frameworks(kubectl string) []framework {
	return []framework{jax(), mpi(kubectl), mxnet(), paddle(), pytorch(), tensorflow(), xgboost()}
}

func valid(*job) error { return nil }

// allWorkers succeed, but for those that may fail.
func allWorkers(j *job, t tally) bool {
	done := t.of("Worker").Succeeded
	return done > 0 && done+t.gone >= j.count("Worker")
}

// variable and number are environment variables.
func variable(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
func number[N int | int32](name string, n N) corev1.EnvVar {
	return variable(name, strconv.Itoa(int(n)))
}

// inAll adds variables to all containers of a pod.
func inAll(pod *corev1.PodSpec, env ...corev1.EnvVar) {
	for i := range pod.Containers {
		pod.Containers[i].Env = append(pod.Containers[i].Env, env...)
	}
}
