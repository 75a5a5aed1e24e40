package agent

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podOf is a pod that the named owner controls.
func podOf(kind, apiVersion, owner string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true),
	}}}}
}

func TestIsExcess(t *testing.T) {
	job := func(name string) *corev1.Pod { return podOf("Job", "batch/v1", name) }
	leaving := job("a")
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	tests := map[string]struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		limit  int32
		want   bool
	}{
		"the first pod of a Job":                       {job("a"), nil, 1, false},
		"a second pod of a Job with one at a time":     {job("a"), []*corev1.Pod{job("a")}, 1, true},
		"a second pod of a Job with two at a time":     {job("a"), []*corev1.Pod{job("a")}, 2, false},
		"a third pod of a Job with two at a time":      {job("a"), []*corev1.Pod{job("a"), job("b"), job("a")}, 2, true},
		"pods of other Jobs do not count":              {job("a"), []*corev1.Pod{job("b"), job("c")}, 1, false},
		"a pod that is being deleted does not count":   {job("a"), []*corev1.Pod{leaving}, 1, false},
		"a pod of a ReplicaSet is never surplus":       {podOf("ReplicaSet", "apps/v1", "a"), []*corev1.Pod{podOf("ReplicaSet", "apps/v1", "a")}, 1, false},
		"a pod of a foreign kind Job is never surplus": {podOf("Job", "example.com/v1", "a"), []*corev1.Pod{podOf("Job", "example.com/v1", "a")}, 1, false},
		"a pod without an owner is never surplus":      {&corev1.Pod{}, []*corev1.Pod{{}, {}}, 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isExcess(test.pod, test.others, test.limit); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// createJob makes a Job; no controller makes its pods here.
func (r *rig) createJob(name string, parallelism int32) *batchv1.Job {
	r.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		Parallelism: &parallelism,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{shell("main", "true")},
		}},
	}}
	created, err := r.client.BatchV1().Jobs(r.namespace).Create(r.t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return created
}

// createOf makes a pod that the Job controls.
func (r *rig) createOf(job *batchv1.Job, name, script string) {
	r.t.Helper()
	pod := r.pod(name, script)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	r.create(pod)
}

func TestAnExcessPodOfAJobIsHeldUntilAnotherHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	dir := t.TempDir()
	job := r.createJob("one", 1)
	r.createOf(job, "first", "echo first >> "+dir+"/order; while [ ! -e "+dir+"/go ]; do sleep 0.02; done; echo ended >> "+dir+"/order")
	r.awaitPhase("first", corev1.PodRunning)
	r.createOf(job, "second", "echo second >> "+dir+"/order")
	// A pod of another Job that comes later starts: the node is not blocked.
	r.createOf(r.createJob("other", 1), "bystander", "true")
	r.awaitPhase("bystander", corev1.PodSucceeded)
	if got := r.get("second").Status.Phase; got != corev1.PodPending {
		t.Errorf("the second pod is %s while the first runs, want Pending", got)
	}
	touch(t, dir+"/go")
	r.awaitPhase("second", corev1.PodSucceeded)
	if got, want := readFile(t, dir+"/order"), "first\nended\nsecond\n"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

func TestAnExcessPodThatIsDeletedNeverRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	dir := t.TempDir()
	job := r.createJob("one", 1)
	r.createOf(job, "first", "while [ ! -e "+dir+"/go ]; do sleep 0.02; done")
	r.awaitPhase("first", corev1.PodRunning)
	r.createOf(job, "second", "touch "+dir+"/ran")
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.awaitGone("second")
	touch(t, dir+"/go")
	r.awaitPhase("first", corev1.PodSucceeded)
	if exists(dir + "/ran") {
		t.Error("the surplus pod ran")
	}
}

func TestPodsOfAJobRunSideBySideUpToItsParallelism(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	dir := t.TempDir()
	job := r.createJob("two", 2)
	// Each ends only once the other has started.
	r.createOf(job, "a", "touch "+dir+"/a; while [ ! -e "+dir+"/b ]; do sleep 0.02; done")
	r.createOf(job, "b", "touch "+dir+"/b; while [ ! -e "+dir+"/a ]; do sleep 0.02; done")
	r.awaitPhase("a", corev1.PodSucceeded)
	r.awaitPhase("b", corev1.PodSucceeded)
}
