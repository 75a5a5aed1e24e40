package operator

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// outcome is what a plan comes to: conditions that are true, and names without the
// job's.
type outcome struct {
	conditions, create, remove string
	restarts                   int32
	removeJob                  bool
	after                      time.Duration
}

func TestPlan(t *testing.T) {
	torch, tf, mx, mpirun := pytorch(), tensorflow(), mxnet(), mpi("kubectl")
	pair := counts{"Master": 1, "Worker": 1}
	servers := counts{"PS": 1, "Worker": 2}
	ended := statusWith(torch, succeeded)
	for name, tc := range map[string]struct {
		framework
		example
		annotations map[string]string
		restart     restartPolicy // of all replicas
		invalid     bool
		before      status
		pods        []corev1.Pod
		want        outcome
	}{
		"a new job gets its pods": {
			framework: torch, example: example{pods: pair},
			want: outcome{conditions: "Created", create: "master-0 worker-0"},
		},
		"it runs when its master does": {
			framework: torch, example: example{pods: pair},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodPending)},
			want: outcome{conditions: "Created Running"},
		},
		"without a master it runs when all workers do": {
			framework: torch, example: example{pods: counts{"Worker": 2}},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodPending)},
			want: outcome{conditions: "Created"},
		},
		"the master's success is the job's, and what runs is removed": {
			framework: torch, example: example{pods: pair},
			pods: []corev1.Pod{in("master-0", corev1.PodSucceeded), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded", remove: "worker-0"},
		},
		"a worker's success is not": {
			framework: torch, example: example{pods: pair},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Running"},
		},
		"cleanPodPolicy None keeps the pods": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {cleanPodPolicy: None}"},
			pods: []corev1.Pod{in("master-0", corev1.PodSucceeded), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded"},
		},
		"cleanPodPolicy All removes those that ended too": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {cleanPodPolicy: All}"},
			pods: []corev1.Pod{in("master-0", corev1.PodSucceeded), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded", remove: "master-0 worker-0"},
		},
		"a failure that is not restarted is the job's": {
			framework: torch, example: example{pods: pair}, restart: never,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed)},
			want: outcome{conditions: "Created Failed", remove: "master-0"},
		},
		"a failure that is restarted is counted": {
			framework: torch, example: example{pods: pair}, restart: onFailure,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed)},
			want: outcome{conditions: "Created Restarting", remove: "worker-0", restarts: 1},
		},
		"a failure that was counted is not counted again": {
			framework: torch, example: example{pods: pair}, restart: onFailure, before: status{Restarts: map[string]int32{"exp-0001-worker-0": 1}},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed)},
			want: outcome{conditions: "Created Restarting", remove: "worker-0", restarts: 1},
		},
		"the second failure of a pod is": {
			framework: torch, example: example{pods: pair}, restart: onFailure, before: status{Restarts: map[string]int32{"exp-0001-worker-0": 1}},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed, func(p *corev1.Pod) { p.Annotations = map[string]string{annotationRestarts: "1"} })},
			want: outcome{conditions: "Created Restarting", remove: "worker-0", restarts: 2},
		},
		"a disrupted pod is made again, whatever its restart policy, and not counted": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {backoffLimit: 0}"}, restart: never,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed, disruption)},
			want: outcome{conditions: "Created Restarting", remove: "worker-0"},
		},
		"a pod that was evicted for using more storage than its own limit has failed": {
			framework: torch, example: example{pods: pair}, restart: onFailure,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" })},
			want: outcome{conditions: "Created Restarting", remove: "worker-0", restarts: 1},
		},
		"a pod that is being removed is waited for": {
			framework: torch, example: example{pods: pair}, restart: never,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning, leaving), in("worker-0", corev1.PodFailed, leaving)},
			want: outcome{conditions: "Created"},
		},
		"ExitCode restarts a pod that a signal ended": {
			framework: torch, example: example{pods: pair}, restart: exitCode,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed, exit(137))},
			want: outcome{conditions: "Created Restarting", remove: "worker-0", restarts: 1},
		},
		"ExitCode fails with a program that fails": {
			framework: torch, example: example{pods: pair}, restart: exitCode,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodFailed, exit(1))},
			want: outcome{conditions: "Created Failed", remove: "master-0"},
		},
		"restarts up to the backoff limit": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {backoffLimit: 3}"},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning, restarted(1)), in("worker-0", corev1.PodRunning, restarted(1))},
			want: outcome{conditions: "Created Running"},
		},
		"the backoff limit fails the job": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {backoffLimit: 3}"}, before: status{Restarts: map[string]int32{"exp-0001-worker-0": 1}},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning, restarted(1)), in("worker-0", corev1.PodRunning, restarted(1))},
			want: outcome{conditions: "Created Failed", remove: "master-0 worker-0", restarts: 1},
		},
		"a program that can never work ends": {
			framework: torch, example: example{pods: pair},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning, restarted(6)), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Failed", remove: "master-0 worker-0"},
		},
		"a deadline is waited for": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {activeDeadlineSeconds: 60}"}, before: startedAt(noon.Add(-20 * time.Second)),
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Running", after: 40 * time.Second},
		},
		"a deadline that has passed fails the job": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {activeDeadlineSeconds: 60}"}, before: startedAt(noon.Add(-time.Minute)),
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Failed", remove: "master-0 worker-0"},
		},
		"a deadline in hundreds of years does not pass": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {activeDeadlineSeconds: 9999999999}"}, before: startedAt(noon.Add(-time.Minute)),
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Running", after: math.MaxInt32*time.Second - time.Minute},
		},
		"a suspended job has no pods": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {suspend: true}"}, before: statusWith(torch, running),
			pods: []corev1.Pod{in("master-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Suspended", remove: "master-0"},
		},
		"a resumed job gets them again, and all of its time": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {activeDeadlineSeconds: 60}"}, before: statusWith(torch, suspended),
			want: outcome{conditions: "Created", create: "master-0 worker-0", after: time.Minute},
		},
		"a launcher waits for its workers": {
			framework: mpirun, example: example{pods: counts{"Launcher": 1, "Worker": 2}},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created", create: "worker-1"},
		},
		"and comes when they run": {
			framework: mpirun, example: example{pods: counts{"Launcher": 1, "Worker": 2}},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodRunning)},
			want: outcome{conditions: "Created", create: "launcher"},
		},
		"a launcher does not wait for a worker whose program has ended": {
			framework: mpirun, example: example{pods: counts{"Launcher": 1, "Worker": 2}},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodSucceeded)},
			want: outcome{conditions: "Created", create: "launcher"},
		},
		"replicas that are not wanted any more are removed": {
			framework: torch, example: example{pods: counts{"Worker": 1}, extra: "elasticPolicy: {}"},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodRunning)},
			want: outcome{conditions: "Created Running", remove: "worker-1"},
		},
		"an elastic job succeeds with any worker, and lets the others end": {
			framework: torch, example: example{pods: counts{"Worker": 2}, extra: "elasticPolicy: {}"},
			pods: []corev1.Pod{in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Succeeded", after: 30 * time.Second},
		},
		"a job that was edited to be invalid fails, and its pods are removed": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {cleanPodPolicy: Some}"}, invalid: true,
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodPending)},
			want: outcome{conditions: "Created Failed", remove: "master-0 worker-0"},
		},
		"a job that has ended stays as it is": {
			framework: torch, example: example{pods: pair}, before: ended,
			pods: []corev1.Pod{in("master-0", corev1.PodFailed)},
			want: outcome{conditions: "Created Succeeded"},
		},
		"a job goes when its time to live is over": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {ttlSecondsAfterFinished: 60}"}, before: ended,
			want: outcome{conditions: "Created Succeeded", removeJob: true, after: time.Millisecond},
		},
		"and not before": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {ttlSecondsAfterFinished: 3660}"}, before: ended,
			want: outcome{conditions: "Created Succeeded", after: time.Minute},
		},
		"a TFJob succeeds with its first worker; its parameter servers go later": {
			framework: tf, example: example{pods: servers},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodSucceeded), in("worker-1", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded", remove: "worker-1", after: 30 * time.Second},
		},
		"an MXJob's workers, which are measured, end after its scheduler": {
			framework: mx, example: example{pods: counts{"Scheduler": 1, "Server": 1, "Worker": 1}},
			pods: []corev1.Pod{in("scheduler-0", corev1.PodSucceeded), in("server-0", corev1.PodRunning), in("worker-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded", after: 30 * time.Second},
		},
		"the delay of parameter servers can be set": {
			framework: tf, example: example{pods: servers}, annotations: map[string]string{AnnotationServerDelay: "5m"},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodSucceeded), in("worker-1", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Succeeded", after: 5 * time.Minute},
		},
		"after the delay they go": {
			framework: tf, example: example{pods: servers}, before: statusWith(tf, succeeded),
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning)},
			want: outcome{conditions: "Created Succeeded", remove: "ps-0"},
		},
		"those of a job that has failed go at once": {
			framework: tf, example: example{pods: servers},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodFailed)},
			want: outcome{conditions: "Created Failed", remove: "ps-0 worker-0"},
		},
		"AllWorkers waits for all": {
			framework: tf, example: example{pods: servers, extra: "successPolicy: AllWorkers"},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodSucceeded), in("worker-1", corev1.PodRunning)},
			want: outcome{conditions: "Created Running"},
		},
		"with a chief the first worker does not matter": {
			framework: tf, example: example{pods: counts{"Chief": 1, "Worker": 1}},
			pods: []corev1.Pod{in("chief-0", corev1.PodRunning), in("worker-0", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Running"},
		},
		"dynamic workers may fail": {
			framework: tf, example: example{pods: servers, extra: "enableDynamicWorker: true"},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodRunning), in("worker-1", corev1.PodFailed)},
			want: outcome{conditions: "Created Running"},
		},
		"but not all of them": {
			framework: tf, example: example{pods: servers, extra: "enableDynamicWorker: true"},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodFailed), in("worker-1", corev1.PodFailed)},
			want: outcome{conditions: "Created Failed", remove: "ps-0"},
		},
		"a job ends when the dynamic workers that have not failed have succeeded": {
			framework: tf, example: example{pods: servers, extra: "enableDynamicWorker: true"},
			pods: []corev1.Pod{in("ps-0", corev1.PodRunning), in("worker-0", corev1.PodFailed), in("worker-1", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Succeeded", after: defaultServerDelay},
		},
		"an init container that crashes again and again reaches the backoff limit": {
			framework: torch, example: example{pods: pair, extra: "runPolicy: {backoffLimit: 3}"},
			pods: []corev1.Pod{in("master-0", corev1.PodRunning), in("worker-0", corev1.PodPending, func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare", RestartCount: 50}}
			})},
			want: outcome{conditions: "Created Failed", remove: "master-0 worker-0"},
		},
		"the end of a job ends its restarting": {
			framework: torch, example: example{pods: counts{"Master": 1}}, before: statusWith(torch, restarting),
			pods: []corev1.Pod{in("master-0", corev1.PodSucceeded)},
			want: outcome{conditions: "Created Succeeded"},
		},
		"a suspended job does not restart": {
			framework: torch, example: example{pods: counts{"Master": 1}, extra: "runPolicy: {suspend: true}"}, before: statusWith(torch, restarting),
			want: outcome{conditions: "Created Suspended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, err := read(tc.job(t, tc.framework), tc.framework)
			if (err != nil) != tc.invalid {
				t.Fatal(err)
			}
			j.invalid, j.status, j.Annotations = err, tc.before, tc.annotations
			for i := range j.replicas {
				if tc.restart != "" {
					j.replicas[i].restart = tc.restart
				}
			}
			d := plan(j, tc.pods, noon)
			s := j.status
			if d.status != nil {
				s = *d.status
			}
			got := outcome{removeJob: d.removeJob, after: d.after, restarts: tally{}.restarts(&s)}
			for _, c := range started(status{}, s) {
				got.conditions = word(got.conditions, c.Type)
			}
			for _, seat := range d.create {
				got.create = word(got.create, strings.TrimPrefix(j.podName(seat.replica, seat.index), "exp-0001-"))
			}
			for _, p := range d.remove {
				got.remove = word(got.remove, strings.TrimPrefix(p.Name, "exp-0001-"))
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if d.status != nil {
				j.status = s
				if again := plan(j, tc.pods, noon); again.status != nil {
					t.Errorf("the status changes with each look: %+v, then %+v", s, *again.status)
				}
			}
		})
	}
}

func word(list, w string) string { return strings.TrimSpace(list + " " + w) }

// statusWith is that of a job with conditions; if it has ended, an hour ago.
func statusWith(f framework, conditions ...string) status {
	s := startedAt(noon.Add(-time.Hour))
	for _, c := range append([]string{created}, conditions...) {
		s.set(f.kind, c, "", noon.Add(-time.Hour))
	}
	return s
}

func startedAt(at time.Time) status { return status{StartTime: &metav1.Time{Time: at}} }

// in is a pod of exp-0001 in a phase.
func in(name string, phase corev1.PodPhase, change ...func(*corev1.Pod)) corev1.Pod {
	replica, _, _ := strings.Cut(name, "-")
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "exp-0001-" + name, Labels: map[string]string{labelReplicaType: replica}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "beside"}, {Name: "pytorch"}}},
		Status:     corev1.PodStatus{Phase: phase},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }

func disruption(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
}

func exit(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code},
		}}}
	}
}

func restarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "pytorch", RestartCount: n}}
	}
}
