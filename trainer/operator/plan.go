package operator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decision is what is to be done about a job: the status is written first.
type decision struct {
	status *status // nil if it stays as it is
	create []seat
	remove []corev1.Pod
	// anew: none of the pods that there are stays, so that all may be told something else.
	anew bool
	// removeJob: it ended longer ago than ttlSecondsAfterFinished.
	removeJob bool
	// after is when to look again though nothing happens; 0 for never.
	after time.Duration
}

// wake has the job looked at again after a time, or before.
func (d *decision) wake(after time.Duration) {
	if d.after == 0 || after < d.after {
		d.after = after
	}
}

// plan decides. It changes neither j nor pods, which are those of the job.
func plan(j *job, pods []corev1.Pod, now time.Time) decision {
	var d decision
	s := j.status.clone()
	s.set(j.kind, created, j.text("is created."), now)
	switch {
	case s.finished():
	case j.invalid != nil:
		s.reject(j, j.invalid, now)
	case j.spec.RunPolicy.Suspend:
		suspend(j, &s, now)
		d.remove = pods
	default:
		d.advance(j, &s, pods, now)
	}
	if s.finished() {
		s.settle()
		d.create, d.remove = nil, nil
		d.clean(j, s, pods, now)
	}
	if !equality.Semantic.DeepEqual(s, j.status) {
		d.status = &s
	}
	return d
}

func suspend(j *job, s *status, now time.Time) {
	s.set(j.kind, suspended, j.text("is suspended."), now)
	s.drop(restarting)
	if s.is(running) {
		s.write(condition{Type: running, Status: corev1.ConditionFalse, Reason: j.kind + suspended, Message: j.text("is suspended.")}, now)
	}
	for name, r := range s.ReplicaStatuses {
		r.Active = 0
		s.ReplicaStatuses[name] = r
	}
}

// advance brings a job on that has not ended.
func (d *decision) advance(j *job, s *status, pods []corev1.Pod, now time.Time) {
	if s.is(suspended) {
		s.write(condition{Type: suspended, Status: corev1.ConditionFalse, Reason: j.kind + "Resumed", Message: j.text("is resumed.")}, now)
		s.StartTime = nil
	}
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: now}
	}
	t := count(j, pods)
	s.ReplicaStatuses = t.replicas
	for _, p := range t.again {
		d.remove = append(d.remove, p)
		if !disrupted(&p) {
			s.restarted(&p)
		}
	}
	d.remove, d.create = append(d.remove, t.excess...), t.missing
	d.anew = t.present == len(t.again)+len(t.excess)
	if !t.othersRun(j) {
		d.create = slices.DeleteFunc(d.create, func(s seat) bool { return s.replica == j.last })
	}
	switch {
	case t.succeeded(j):
		s.set(j.kind, succeeded, j.text("successfully completed."), now)
	case t.fatal != "":
		s.set(j.kind, failed, j.text("has failed because %d %s replica(s) failed.", t.of(t.fatal).Failed, t.fatal), now)
	case t.restarts(s) > 0 && t.restarts(s) >= j.backoffLimit():
		s.set(j.kind, failed, j.text("has failed because it has reached the specified backoff limit: its pods failed %d times.", t.restarts(s)), now)
	case d.isLate(j, s, now):
		s.set(j.kind, failed, j.text("has failed because it was active longer than specified deadline."), now)
	case len(t.again) > 0:
		s.set(j.kind, restarting, j.text("is restarting because %s failed or was disrupted.", t.again[0].Name), now)
	case t.runs(j):
		s.set(j.kind, running, j.text("is running."), now)
	}
}

func (d *decision) isLate(j *job, s *status, now time.Time) bool {
	limit := j.spec.RunPolicy.ActiveDeadlineSeconds
	if limit == nil {
		return false
	}
	// 68 years at most: a time.Duration ends at 292.
	left := s.StartTime.Add(time.Duration(min(*limit, math.MaxInt32)) * time.Second).Sub(now)
	d.wake(max(left, time.Millisecond))
	return left <= 0
}

// clean removes what a job that has ended leaves, so that its GPUs are free. What may
// last goes later; so do the workers of an elastic job, which ends with the first of
// them.
func (d *decision) clean(j *job, s status, pods []corev1.Pod, now time.Time) {
	d.after = 0
	ended := now
	if s.CompletionTime != nil {
		ended = s.CompletionTime.Time
	}
	policy := cmp.Or(j.spec.RunPolicy.CleanPodPolicy, j.spec.CleanPodPolicy, cleanRunning)
	for _, p := range pods {
		isOver := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp != nil || policy == cleanNone || policy == cleanRunning && isOver {
			continue
		}
		if wait := ended.Add(j.serverDelay()).Sub(now); wait > 0 && s.is(succeeded) && !isOver && j.lingers(&p) {
			d.wake(wait)
			continue
		}
		d.remove = append(d.remove, p)
	}
	if ttl := j.spec.RunPolicy.TTLSecondsAfterFinished; ttl != nil {
		left := ended.Add(time.Duration(*ttl) * time.Second).Sub(now)
		d.removeJob = left <= 0
		d.wake(max(left, time.Millisecond))
	}
}

func (j *job) lingers(p *corev1.Pod) bool {
	return j.spec.ElasticPolicy != nil || slices.ContainsFunc(j.lasting, func(t string) bool {
		return strings.EqualFold(t, p.Labels[labelReplicaType])
	})
}

// tally is what the pods of a job are doing.
type tally struct {
	replicas map[string]replicaStatus
	// first: the first worker has succeeded.
	first bool
	// missing pods are to be made, those in excess to be removed.
	missing []seat
	excess  []corev1.Pod
	// again are pods that ended and are to be made again; fatal is the type of one
	// whose failure is the job's.
	again []corev1.Pod
	fatal string
	// gone are the workers of a dynamic job that failed: they are not made again.
	gone int
	// containers is how often containers of pods that have not ended were restarted.
	containers int32
	// present is how many pods there are that are not being removed already.
	present int
}

func (t tally) of(replica string) replicaStatus { return t.replicas[replica] }

func count(j *job, pods []corev1.Pod) tally {
	t := tally{replicas: map[string]replicaStatus{}}
	byName := map[string]*corev1.Pod{}
	for i := range pods {
		byName[pods[i].Name] = &pods[i]
	}
	for _, r := range j.replicas {
		c := replicaStatus{Selector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: j.labels(r.name)})}
		for i := range r.count {
			p, ok := byName[j.podName(r.name, i)]
			delete(byName, j.podName(r.name, i))
			if !ok {
				t.missing = append(t.missing, seat{r.name, i})
				continue
			}
			t.add(j, &c, r, p)
			t.first = t.first || r.name == "Worker" && i == 0 && p.Status.Phase == corev1.PodSucceeded
		}
		t.replicas[r.name] = c
	}
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		t.present++
		if byName[p.Name] != nil {
			t.excess = append(t.excess, p)
		}
	}
	if j.leader() == nil && t.gone > 0 && t.gone == j.count("Worker") {
		t.fatal = "Worker" // some may fail, but not all
	}
	return t
}

// add counts one pod. One that is being removed counts as nothing, whatever it says:
// it is made again when it is gone.
func (t *tally) add(j *job, c *replicaStatus, r replica, p *corev1.Pod) {
	switch {
	case p.DeletionTimestamp != nil:
	case p.Status.Phase == corev1.PodPending:
		t.containers += restartsOf(p)
	case p.Status.Phase == corev1.PodRunning:
		c.Active++
		t.containers += restartsOf(p)
	case p.Status.Phase == corev1.PodSucceeded:
		c.Succeeded++
	case p.Status.Phase != corev1.PodFailed:
	case disrupted(p), r.restart == onFailure, r.restart == always, r.restart == exitCode && j.retryable(p):
		c.Failed++
		t.again = append(t.again, *p)
	default:
		c.Failed++
		if j.dynamic && j.spec.EnableDynamicWorker && r.name == "Worker" {
			t.gone++
		} else {
			t.fatal = r.name
		}
	}
}

// restartsOf counts how often the containers of a pod were restarted, those that begin
// it too, but not those that run beside the others: they may end and come again.
func restartsOf(p *corev1.Pod) (n int32) {
	beside := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		beside[c.Name] = c.RestartPolicy != nil
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if !beside[s.Name] {
			n += s.RestartCount
		}
	}
	return n
}

// retryable says whether a signal ended a pod: 128 and above, as a shell says it.
func (j *job) retryable(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if e := s.State.Terminated; e != nil && s.Name == j.main(&p.Spec).Name {
			return e.ExitCode >= 128
		}
	}
	return false
}

// disrupted says whether something else than its program ended a pod: a preemption, a
// drained node. The reason Evicted does not say so: pods that exceed a limit of their own
// have it too.
func disrupted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// restarted notes that a pod is made again. A pod knows how many there were before
// it, so that none is counted twice.
func (s *status) restarted(p *corev1.Pod) {
	if s.Restarts == nil {
		s.Restarts = map[string]int32{}
	}
	var before int32
	_, _ = fmt.Sscan(p.Annotations[annotationRestarts], &before)
	s.Restarts[p.Name] = max(s.Restarts[p.Name], before+1)
}

// restarts is how often pods failed and were started again, by us and on their node.
func (t tally) restarts(s *status) int32 {
	n := t.containers
	for _, r := range s.Restarts {
		n += r
	}
	return n
}

// succeeded says whether the job has: its leader, or enough of its workers.
func (t tally) succeeded(j *job) bool {
	if l := j.leader(); l != nil {
		return t.of(l.name).Succeeded >= l.count
	}
	return j.workersDone(j, t)
}

// runs says whether the job's leader runs, or without one all of its workers.
func (t tally) runs(j *job) bool {
	if l := j.leader(); l != nil {
		return t.of(l.name).Active > 0
	}
	w := t.of("Worker")
	return w.Active > 0 && (j.spec.ElasticPolicy != nil || w.Active+w.Succeeded+t.gone >= j.count("Worker"))
}

// othersRun says whether all pods run but the one that is made last. One whose program
// has ended already counts: it is not made again, so the last would wait for it forever.
func (t tally) othersRun(j *job) bool {
	return !slices.ContainsFunc(j.replicas, func(r replica) bool {
		c := t.of(r.name)
		return r.name != j.last && c.Active+c.Succeeded < r.count
	})
}
