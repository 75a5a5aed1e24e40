package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/local/shim"
)

// act carries actions out. It reports whether one changed the view at once.
func (w *worker) act(ctx context.Context, actions []action) bool {
	changed := false
	for _, a := range actions {
		switch a.Verb {
		case verbStart:
			if w.v.SandboxReady && w.shim != nil {
				w.start(ctx, a)
				changed = true
			}
		case verbHook:
			w.runPreStop(ctx, a)
		case verbTerm, verbKill:
			w.signal(ctx, a)
		}
	}
	return changed
}

// start starts one run of a container, or notes why that cannot be done yet.
func (w *worker) start(ctx context.Context, a action) {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := findContainer(&w.v.Pod.Spec, a.Container)
	spec, err := w.containerSpec(callCtx, c, a.Run)
	if err != nil {
		w.startFailed(c, "CreateContainerConfigError", err)
		return
	}
	r, err := w.shim.Start(callCtx, spec)
	if err != nil {
		w.startFailed(c, "RunContainerError", err)
		return
	}
	delete(w.failures, c.Name)
	if err := w.layout.trimLogs(w.v.Pod.UID, c.Name, a.Run); err != nil {
		w.log.Error(err, "cannot remove the logs of earlier runs", "container", c.Name)
	}
	w.enter(c, r)
	if now, ok := w.v.last(c.Name); ok && now.Reason == shim.ReasonStartError {
		w.event(corev1.EventTypeWarning, "Failed", fmt.Sprintf("container %s could not be started: %s", c.Name, now.Message))
		return
	}
	if a.Run > 0 {
		w.event(corev1.EventTypeNormal, "Started", fmt.Sprintf("Container %s started again (restart %d)", c.Name, a.Run))
	}
	w.warnStandIns(c, r)
	w.runPostStart(ctx, c, r.Run)
}

// warnStandIns tells of directories that the container does not see change. Every
// pod of an ordinary user has some for its termination message and its token.
func (w *worker) warnStandIns(c *corev1.Container, r shim.Run) {
	dirs := slices.DeleteFunc(strings.Split(r.StandIns, ", "), func(dir string) bool {
		return dir == "" || dir == "/dev" || below(dir, "/run") || dir == "/run" || below(dir, "/var")
	})
	if len(dirs) > 0 {
		w.event(corev1.EventTypeWarning, "MountPointMissing", fmt.Sprintf(
			"container %s mounts volumes at paths that do not exist and may not be made here; it sees %s as it was at its start", c.Name, strings.Join(dirs, ", ")))
	}
}

func (w *worker) startFailed(c *corev1.Container, reason string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if w.failures[c.Name] == nil {
		w.failures[c.Name] = newBackoff()
		w.event(corev1.EventTypeWarning, "Failed", fmt.Sprintf("container %s: %s: %v", c.Name, reason, err))
	}
	now := w.v.container(c.Name)
	now.Wait, now.WaitUntil = &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}, time.Now().Add(w.failures[c.Name].Step())
}

// containerSpec says to the shim what a run of a container is.
func (w *worker) containerSpec(ctx context.Context, c *corev1.Container, number int) (shim.ContainerSpec, error) {
	pod := w.v.Pod
	hostname := corev1.EnvVar{Name: "HOSTNAME", Value: hostnameOf(pod)}
	base := slices.Concat(hostEnv(w.path, os.Getenv), w.serviceEnv, []corev1.EnvVar{hostname})
	env, err := makeEnv(ctx, envRequest{
		Pod: pod, Container: c, Facts: w.facts(), Base: base, Over: w.gpuBook.gpuEnv(w.gpus[c.Name]),
	}, w.cluster)
	if err != nil {
		return shim.ContainerSpec{}, err
	}
	argv, err := makeArgv(c, env)
	if err != nil {
		return shim.ContainerSpec{}, err
	}
	mounts, err := mountPoints(pod, c, w.volumes.Dirs, env)
	if err != nil {
		return shim.ContainerSpec{}, err
	}
	if w.hasNetwork(pod.UID) {
		mounts = append(mounts, nameMounts(w.layout.names(pod.UID), mounts)...)
	}
	spec := shim.ContainerSpec{
		Name: c.Name, Run: number, Argv: argv, Env: env.list(), Dir: c.WorkingDir, Mounts: keepPrograms(mounts, w.path),
		LogPath:              w.layout.log(pod.UID, c.Name, number),
		TerminationPath:      w.layout.termination(pod.UID, c.Name),
		TerminationMountPath: c.TerminationMessagePath,
		MemoryLimitBytes:     c.Resources.Limits.Memory().Value(),
		StopGrace:            min(gracePeriod(pod), downGrace),
		TTY:                  c.TTY, Stdin: c.Stdin,
	}
	secure(pod, c, &spec)
	return spec, nil
}

// signal sends SIGTERM or SIGKILL to the newest run of a container.
func (w *worker) signal(ctx context.Context, a action) {
	r, ok := w.v.last(a.Container)
	if !ok || w.shim == nil {
		return
	}
	c := w.v.container(a.Container)
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	done := c.Stop
	var err error
	if a.Verb == verbTerm {
		done.Terminated = time.Now()
		err = w.shim.Signal(ctx, a.Container, r.Run, syscall.SIGTERM)
		if w.v.Pod.DeletionTimestamp != nil || !c.Condemned.IsZero() {
			w.event(corev1.EventTypeNormal, "Killing", "Stopping container "+a.Container)
		}
	} else {
		done.Killed = true
		err = w.shim.Signal(ctx, a.Container, r.Run, syscall.SIGKILL)
	}
	if err != nil {
		// A shim that is gone is noticed by its watch.
		w.log.Error(err, "cannot signal a container", "container", a.Container, "signal", string(a.Verb))
		if a.Verb == verbKill && errors.Is(err, context.DeadlineExceeded) {
			// It hangs; its containers end with it, and the next shim records that.
			if err := shim.KillShim(w.layout.shim(w.v.Pod.UID)); err != nil {
				w.log.Error(err, "cannot kill a shim that hangs")
			}
		}
		return
	}
	c.Stop = done
}

// merge enters what a shim says of all runs.
func (w *worker) merge(state shim.State) {
	if !state.Terminating.IsZero() && w.v.Down.IsZero() {
		w.goDown(state.Terminating)
	}
	for _, r := range state.Runs {
		if c := findContainer(&w.v.Pod.Spec, r.Name); c != nil {
			w.enter(c, r)
		}
	}
}

// enter enters one run. A new run of a container starts with a clean slate.
func (w *worker) enter(c *corev1.Container, r shim.Run) {
	before, had := w.v.last(c.Name)
	runs, changed := mergeRun(w.v.container(c.Name).Runs, complete(r, c, w.layout.log(w.v.Pod.UID, c.Name, r.Run)))
	if !changed {
		return
	}
	w.v.container(c.Name).Runs = runs
	if !had || before.Run < r.Run {
		w.v.Containers[c.Name] = &containerView{Runs: runs}
		w.stopProbe(c.Name)
	}
	if newest, _ := w.v.last(c.Name); newest.Run == r.Run && !newest.Running() {
		w.stopProbe(c.Name)
		if delay := restartDelay(runs); delay > 0 && w.v.restarts(c, newest) && w.v.Pod.DeletionTimestamp == nil {
			w.event(corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off %s restarting failed container %s", delay, c.Name))
		}
	}
}

// condemn stops one container on its own; its restart policy says what then.
func (w *worker) condemn(container string, number int, reason, message string) {
	r, ok := w.v.running(container)
	if c := w.v.container(container); ok && r.Run == number && c.Condemned.IsZero() {
		c.Condemned = time.Now()
		w.event(corev1.EventTypeWarning, reason, message)
	}
}

// event tells of something that happened to the pod. A pod that starts and
// ends well causes none: writes to the API are for what a person must read.
func (w *worker) event(kind, reason, message string) {
	const most = 1000 // the API allows 1024 bytes
	if len(message) > most {
		message = message[:most] + "..."
	}
	w.recorder.Event(podReference(w.v.Pod), kind, reason, message)
}

func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
}
