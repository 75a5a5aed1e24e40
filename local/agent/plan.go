package agent

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sidecarMinGrace is the least time that a sidecar gets between SIGTERM and
// SIGKILL, even when the containers before it have used up the pod's grace.
const sidecarMinGrace = 2 * time.Second

// verb is what a worker does to a container.
type verb string

const (
	verbStart verb = "start"
	verbHook  verb = "preStop"
	verbTerm  verb = "SIGTERM"
	verbKill  verb = "SIGKILL"
)

// action is one thing to do now.
type action struct {
	Verb      verb
	Container string
	// Run is the number of the run to start.
	Run int
	// Grace is the time that a preStop hook has.
	Grace time.Duration
}

// decision is what follows from a view at one time.
type decision struct {
	Actions []action
	// Wake is when time alone will change the decision; zero for never.
	Wake time.Time
	// Settled is set when nothing runs and nothing will be started again.
	Settled bool
}

func (d *decision) act(a action) { d.Actions = append(d.Actions, a) }

func (d *decision) wakeAt(t time.Time) {
	if d.Wake.IsZero() || t.Before(d.Wake) {
		d.Wake = t
	}
}

// plan decides what to do with a pod now. It is pure: equal views and times
// give equal decisions, so a worker that starts over goes on where it was.
func plan(v *view, now time.Time) decision {
	var d decision
	if s, stopping := podStop(v, now); stopping {
		planStop(v, s, now, &d)
		d.Settled = !v.anyRunning()
		return d
	}
	if deadline, ok := activeDeadline(v); ok {
		d.wakeAt(deadline)
	}
	planCondemned(v, now, &d)
	if v.mainStarted() {
		planRunning(v, now, &d)
		return d
	}
	planInit(v, now, &d)
	return d
}

// stop is the end of a pod as a whole.
type stop struct {
	Since    time.Time
	Deadline time.Time
	// Verdict is set where the stop itself makes the pod fail.
	Verdict *verdict
	// Deleted is set when the object asks for it.
	Deleted bool
}

// podStop reports whether the pod as a whole is to end, and since when. All
// of it follows from the object and the runs.
func podStop(v *view, now time.Time) (s stop, stopping bool) {
	add := func(other stop) {
		if !stopping {
			s, stopping = other, true
			return
		}
		if other.Since.Before(s.Since) {
			s.Since = other.Since
		}
		if other.Deadline.Before(s.Deadline) {
			s.Deadline = other.Deadline
		}
		s.Deleted = s.Deleted || other.Deleted
		if s.Verdict == nil {
			s.Verdict = other.Verdict
		}
	}
	grace := gracePeriod(v.Pod)
	if v.Gone {
		add(stop{Since: now, Deadline: now, Deleted: true})
	}
	if t := v.Pod.DeletionTimestamp; t != nil {
		since := t.Time
		if g := v.Pod.DeletionGracePeriodSeconds; g != nil {
			since = since.Add(-time.Duration(*g) * time.Second)
		}
		add(stop{Since: since, Deadline: t.Time, Deleted: true})
	}
	if down, ok := downStop(v); ok {
		add(down)
	}
	if v.Rejected != nil {
		add(stop{Since: now, Deadline: now.Add(grace), Verdict: v.Rejected})
	}
	end, ended := naturalEnd(v)
	if deadline, ok := activeDeadline(v); ok && !now.Before(deadline) && (!ended || deadline.Before(end)) {
		add(stop{Since: deadline, Deadline: deadline.Add(grace), Verdict: &verdict{
			Reason:  "DeadlineExceeded",
			Message: "Pod was active on the node longer than the specified deadline",
		}})
	}
	if ended {
		add(stop{Since: end, Deadline: end.Add(grace)})
	}
	return s, stopping
}

// activeDeadline is when the pod has been active for too long.
func activeDeadline(v *view) (time.Time, bool) {
	s := v.Pod.Spec.ActiveDeadlineSeconds
	if s == nil || v.StartTime.IsZero() {
		return time.Time{}, false
	}
	return v.StartTime.Add(time.Duration(*s) * time.Second), true
}

// naturalEnd reports that no main will run again, because all have ended for
// good or because initialization has failed for good, and since when.
func naturalEnd(v *view) (time.Time, bool) {
	spec := &v.Pod.Spec
	for _, c := range pointers(spec.InitContainers) {
		if isSidecar(c) {
			continue
		}
		if r, ok := v.last(c.Name); ok && !r.Running() && r.ExitCode != 0 && !v.restarts(c, r) {
			return r.FinishedAt, true
		}
	}
	var end time.Time
	for _, c := range pointers(spec.Containers) {
		r, ok := v.last(c.Name)
		if !ok || r.Running() || v.restarts(c, r) {
			return time.Time{}, false
		}
		end = latest(end, r.FinishedAt)
	}
	return end, true
}

// planInit starts the next init container, or the mains when all are through.
func planInit(v *view, now time.Time, d *decision) {
	spec := &v.Pod.Spec
	for _, c := range pointers(spec.InitContainers) {
		r, ok := v.last(c.Name)
		switch {
		case !ok:
			planStart(v, c, now, d)
			return
		case isSidecar(c):
			if !r.Running() {
				planStart(v, c, now, d)
			}
			if !v.started(c) {
				return
			}
		case r.Running():
			return
		case r.ExitCode != 0:
			planStart(v, c, now, d)
			return
		}
	}
	planMains(v, now, d)
}

// planMains starts the mains that have not run or are to run again. The next one
// waits for the postStart hook of the one before.
func planMains(v *view, now time.Time, d *decision) {
	for _, c := range pointers(v.Pod.Spec.Containers) {
		r, ok := v.last(c.Name)
		if !ok || (!r.Running() && v.restarts(c, r)) {
			planStart(v, c, now, d)
		}
		if v.container(c.Name).Starting || !ok && hasPostStart(c) {
			return
		}
	}
}

func hasPostStart(c *corev1.Container) bool {
	return c.Lifecycle != nil && c.Lifecycle.PostStart != nil
}

// planRunning starts again what has ended and is to be restarted.
func planRunning(v *view, now time.Time, d *decision) {
	for _, c := range pointers(v.Pod.Spec.InitContainers) {
		if isSidecar(c) && !v.isRunning(c.Name) {
			planStart(v, c, now, d)
		}
	}
	planMains(v, now, d)
}

// planStart starts a container that does not run, as soon as it may.
func planStart(v *view, c *corev1.Container, now time.Time, d *decision) {
	at, number := startTime(v, c.Name)
	if now.Before(at) {
		d.wakeAt(at)
		return
	}
	d.act(action{Verb: verbStart, Container: c.Name, Run: number})
}

// startTime is when a container that does not run may start next, and the
// number that this run gets.
func startTime(v *view, name string) (time.Time, int) {
	at, number := time.Time{}, 0
	if r, ok := v.last(name); ok {
		at, number = r.FinishedAt.Add(restartDelay(v.container(name).Runs)), r.Run+1
	}
	return latest(at, v.container(name).WaitUntil), number
}

// planCondemned stops the containers that are to end on their own.
func planCondemned(v *view, now time.Time, d *decision) {
	for _, c := range allContainers(&v.Pod.Spec) {
		if since := v.container(c.Name).Condemned; !since.IsZero() && v.isRunning(c.Name) {
			planEnd(v, c, since.Add(gracePeriod(v.Pod)), now, d)
		}
	}
}

// planStop ends the whole pod: mains and regular init containers at once,
// then the sidecars one by one in the reverse of their start order.
func planStop(v *view, s stop, now time.Time, d *decision) {
	from, busy := s.Since, false // from: when the next sidecar may be asked to end
	first, sidecars := pointers(v.Pod.Spec.Containers), []*corev1.Container(nil)
	for _, c := range pointers(v.Pod.Spec.InitContainers) {
		if isSidecar(c) {
			sidecars = append(sidecars, c)
		} else {
			first = append(first, c)
		}
	}
	for _, c := range first {
		r, ok := v.last(c.Name)
		switch {
		case !ok:
		case r.Running():
			busy = true
			planEnd(v, c, s.Deadline, now, d)
		default:
			from = latest(from, r.FinishedAt)
		}
	}
	for _, c := range slices.Backward(sidecars) {
		r, ok := v.last(c.Name)
		switch {
		case !ok:
		case r.Running() && busy:
			// It waits for those before it, up to its own last moment.
			hard := sidecarDeadline(v, s, s.Deadline)
			if now.Before(hard) {
				d.wakeAt(hard)
			} else {
				planEnd(v, c, hard, now, d)
			}
		case r.Running():
			busy = true
			planEnd(v, c, sidecarDeadline(v, s, from), now, d)
		default:
			from = latest(from, r.FinishedAt)
		}
	}
}

func sidecarDeadline(v *view, s stop, from time.Time) time.Time {
	if v.Gone {
		return s.Deadline
	}
	return latest(s.Deadline, from.Add(sidecarMinGrace))
}

// planEnd takes one running container one step towards its end: preStop hook,
// SIGTERM, and SIGKILL at the deadline.
func planEnd(v *view, c *corev1.Container, deadline, now time.Time, d *decision) {
	done := v.container(c.Name).Stop
	if !now.Before(deadline) {
		if !done.Killed {
			d.act(action{Verb: verbKill, Container: c.Name})
		}
		return
	}
	d.wakeAt(deadline)
	switch {
	case !done.Terminated.IsZero() || done.Hook == hookRunning:
	case done.Hook == hookNotRun && hasPreStop(c):
		d.act(action{Verb: verbHook, Container: c.Name, Grace: deadline.Sub(now)})
	default:
		d.act(action{Verb: verbTerm, Container: c.Name})
	}
}

func hasPreStop(c *corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// allContainers lists init containers and mains in start order.
func allContainers(spec *corev1.PodSpec) []*corev1.Container {
	return append(pointers(spec.InitContainers), pointers(spec.Containers)...)
}

func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
