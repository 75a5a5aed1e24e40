package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/trainer"
)

// job is a job as the operator reads it, with the defaults of the training operator.
type job struct {
	metav1.ObjectMeta
	framework
	spec     spec
	replicas []replica
	status   status
	gang     *gangScheduler   // which starts the pods together; nil if none does
	ports    map[string]int32 // of each pod on 127.0.0.1; nil if pods have names
	invalid  error            // why it can never run; nil if it can
}

// replica is one kind of pod of a job: its masters, its workers.
type replica struct {
	name     string // as the framework spells it: Worker
	count    int
	restart  restartPolicy
	template corev1.PodTemplateSpec
}

// spec has the fields of all kinds; each has its own few.
type spec struct {
	RunPolicy runPolicy `json:"runPolicy"`

	// CleanPodPolicy of an MPIJob, which may be here too.
	CleanPodPolicy string `json:"cleanPodPolicy"`
	// TFJob
	SuccessPolicy       string `json:"successPolicy"`
	EnableDynamicWorker bool   `json:"enableDynamicWorker"`
	// PyTorchJob
	NprocPerNode  *string        `json:"nprocPerNode"`
	ElasticPolicy *elasticPolicy `json:"elasticPolicy"`
	// MPIJob
	SlotsPerWorker      *int32 `json:"slotsPerWorker"`
	MainContainer       string `json:"mainContainer"`
	MPIImplementation   string `json:"mpiImplementation"`
	RunLauncherAsWorker bool   `json:"runLauncherAsWorker"`
}

type runPolicy struct {
	CleanPodPolicy          string `json:"cleanPodPolicy"`
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished"`
	ActiveDeadlineSeconds   *int64 `json:"activeDeadlineSeconds"`
	BackoffLimit            *int32 `json:"backoffLimit"`
	Suspend                 bool   `json:"suspend"`
	ManagedBy               string `json:"managedBy"`
	// SchedulingPolicy asks for a gang.
	SchedulingPolicy *schedulingPolicy `json:"schedulingPolicy"`
}

// The values of cleanPodPolicy: which pods go when the job has ended.
const (
	cleanNone    = "None"
	cleanRunning = "Running"
	cleanAll     = "All"
)

// maxPods is how many pods a job may have: a typing error must not fill the memory, and
// with more the variables that list the pods are too long for a program to be started.
const maxPods = 2000

type restartPolicy string

// exitCode restarts pods that a signal ended: exit codes from 128 on.
const (
	always    = restartPolicy(corev1.RestartPolicyAlways)
	onFailure = restartPolicy(corev1.RestartPolicyOnFailure)
	never     = restartPolicy(corev1.RestartPolicyNever)
	exitCode  = restartPolicy("ExitCode")
)

// Validate says what is wrong with a job of a kind that the operator knows. It knows
// nothing against a job of another kind.
func Validate(obj *unstructured.Unstructured) error {
	for _, f := range frameworks("") {
		if gvk := obj.GroupVersionKind(); gvk.Group == group && gvk.Kind == f.kind {
			_, err := read(obj, f)
			return err
		}
	}
	return nil
}

// Replicas are the pods of a job of a kind that the operator knows, whichever operator
// runs it: the training operator names and labels them alike.
func Replicas(obj *unstructured.Unstructured) (all []trainer.Replicas, err error) {
	for _, f := range frameworks("") {
		if gvk := obj.GroupVersionKind(); gvk.Group != group || gvk.Kind != f.kind {
			continue
		}
		j, err := read(obj, f)
		if err != nil {
			return nil, err
		}
		specs, _, _ := unstructured.NestedMap(obj.Object, "spec", f.field)
		for key := range specs {
			i := slices.IndexFunc(j.replicas, func(r replica) bool { return strings.EqualFold(r.name, key) })
			all = append(all, j.known(j.replicas[i], []string{"spec", f.field, key}, obj.GroupVersionKind().Version))
		}
		return all, nil
	}
	return nil, fmt.Errorf("the pods of a %s are not known before they run: remove the placeholder", obj.GetKind())
}

// known is what is known of the pods of a type before they run.
func (j *job) known(r replica, path []string, version string) trainer.Replicas {
	out := trainer.Replicas{Role: strings.ToLower(r.name), Path: path, Count: r.count, Host: func(i int) string { return j.endpoint(r.name, i) }}
	if r.count > 1 {
		out.Index = "metadata.labels['" + labelReplicaIndex + "']"
	}
	if j.portName == "" { // mpirun reaches pods by their names, without Services
		out.Host = func(i int) string { return j.podName(r.name, i) }
		if version != "v1" {
			out.NoHosts = "their names depend on the operator that runs the MPIJob: leave the list out, mpirun finds it in its hostfile; or write apiVersion: kubeflow.org/v1"
		}
	}
	return out
}

// read reads a job. Its error is for the job's author.
func read(obj *unstructured.Unstructured, f framework) (*job, error) {
	j := &job{framework: f}
	var whole struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     spec              `json:"spec"`
		Status   status            `json:"status"`
	}
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(map[string]any{"metadata": obj.Object["metadata"], "status": orEmpty(obj.Object["status"])}, &whole); err != nil {
		return nil, fmt.Errorf("read the %s: %w", f.kind, err)
	}
	j.ObjectMeta, j.status = whole.Metadata, whole.Status
	if err := converter.FromUnstructured(map[string]any{"spec": orEmpty(obj.Object["spec"])}, &whole); err != nil {
		return j, fault("spec", "%v", err)
	}
	j.spec = whole.Spec
	if err := j.readPorts(); err != nil {
		return j, err
	}
	for _, policy := range []string{j.spec.RunPolicy.CleanPodPolicy, j.spec.CleanPodPolicy} {
		if !slices.Contains([]string{"", cleanNone, cleanRunning, cleanAll}, policy) {
			return j, fault("spec.runPolicy.cleanPodPolicy", "write None, Running or All, not %q", policy)
		}
	}
	return j, j.readReplicas(obj)
}

func fault(field, problem string, args ...any) error {
	return &trainer.FieldError{Field: field, Problem: fmt.Sprintf(problem, args...)}
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

func (j *job) readReplicas(obj *unstructured.Unstructured) error {
	where := "spec." + j.field
	specs, _, err := unstructured.NestedMap(obj.Object, "spec", j.field)
	if err != nil {
		return fault(where, "%v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		under := where + "." + key
		i := slices.IndexFunc(j.types, func(t string) bool { return strings.EqualFold(t, key) })
		fields, ok := specs[key].(map[string]any)
		if i < 0 || !ok {
			return fault(under, "a %s has no such replicas: write %s", j.kind, strings.Join(j.types, ", "))
		}
		if j.of(j.types[i]) != nil {
			return fault(under, "%s is given twice: keep one of them", j.types[i])
		}
		var r struct {
			Replicas      *int32                 `json:"replicas"`
			RestartPolicy restartPolicy          `json:"restartPolicy"`
			Template      corev1.PodTemplateSpec `json:"template"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &r); err != nil {
			return fault(under, "%v", err)
		}
		if len(r.Template.Spec.Containers) == 0 {
			return fault(under+".template.spec.containers", "a pod needs a container")
		}
		restart := cmp.Or(r.RestartPolicy, j.restart)
		if !slices.Contains([]restartPolicy{always, onFailure, never, exitCode}, restart) {
			return fault(under+".restartPolicy", "write Always, OnFailure, Never or ExitCode, not %q", restart)
		}
		count := int(ptr.Deref(r.Replicas, 1))
		if count < 0 {
			return fault(under+".replicas", "%d is less than 0", count)
		}
		j.replicas = append(j.replicas, replica{name: j.types[i], count: count, restart: restart, template: r.Template})
	}
	if n := j.total(); n > maxPods {
		return fault(where, "%d pods are more than the %d that a job may have", n, maxPods)
	}
	if l := j.leader(); l != nil && l.count == 0 || l == nil && j.count("Worker") == 0 {
		return fault(where, "no replica decides when the job has ended: give at least one %s", strings.Join(append(slices.Clone(j.leaders), "Worker"), " or "))
	}
	slices.SortFunc(j.replicas, func(a, b replica) int {
		return slices.Index(j.types, a.name) - slices.Index(j.types, b.name)
	})
	return j.check(j)
}

// of returns the replicas of a name, or nil.
func (j *job) of(name string) *replica {
	i := slices.IndexFunc(j.replicas, func(r replica) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return &j.replicas[i]
}

// count is the number of replicas of a name.
func (j *job) count(name string) int {
	if r := j.of(name); r != nil {
		return r.count
	}
	return 0
}

func (j *job) total() (n int) {
	for _, r := range j.replicas {
		n += r.count
	}
	return n
}

// isMaster says whether a pod is labelled as the job's master.
func (j *job) isMaster(s seat) bool {
	if l := j.leader(); l != nil {
		return l.name == s.replica
	}
	return j.worker0 && s.replica == "Worker" && s.index == 0
}

// leader is the replica that decides when the job has ended: its master, its launcher.
// It is nil for a job that has workers only.
func (j *job) leader() *replica {
	for _, name := range j.leaders {
		if r := j.of(name); r != nil {
			return r
		}
	}
	return nil
}

// podName is the name of a replica's pod, and of its Service.
func (j *job) podName(replica string, index int) string {
	if replica == j.last {
		return j.Name + "-" + strings.ToLower(replica)
	}
	return j.Name + "-" + strings.ToLower(replica) + "-" + strconv.Itoa(index)
}

// port is where the replicas of a name listen.
func (j *job) port(name string) int32 {
	if r := j.of(name); r != nil {
		for _, p := range j.main(&r.template.Spec).Ports {
			if p.Name == j.portName {
				return p.ContainerPort
			}
		}
	}
	return j.defaultPort
}

// main is the container that trains.
func (f framework) main(pod *corev1.PodSpec) *corev1.Container {
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == f.container })
	return &pod.Containers[max(i, 0)]
}

// backoffLimit is how often pods may fail and start again. The training operator has
// no limit if none is given; a trial whose program cannot work would never end.
func (j *job) backoffLimit() int32 { return ptr.Deref(j.spec.RunPolicy.BackoffLimit, 6) }

// serverDelay is how long parameter servers outlive the job's end.
func (j *job) serverDelay() time.Duration {
	if d, err := time.ParseDuration(j.Annotations[AnnotationServerDelay]); err == nil {
		return d
	}
	return defaultServerDelay
}
