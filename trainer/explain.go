package trainer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exit codes with a special meaning: those of POSIX shells, which collector exec
// uses too.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128
	signalKill        = 9
)

var signals = map[int32]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
}

// cause is one explanation; the lowest rank is the most informative.
type cause struct {
	rank int
	text string
}

// Explain says in one sentence why a job failed: which container of which pod,
// what happened to it, and what to do. It is "" if the pods show no reason, for
// example because they are gone.
func Explain(pods []corev1.Pod, primaryContainer string) string {
	var causes []cause
	for i := range pods {
		causes = append(causes, podCauses(&pods[i], primaryContainer)...)
	}
	if len(causes) == 0 {
		return Waiting(pods).Why
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(a.rank, b.rank) })
	return causes[0].text
}

// podCauses are the explanations from one pod: the primary container before the pod
// as a whole, before other containers. A program that was killed because its job had
// already failed comes last.
func podCauses(pod *corev1.Pod, primary string) []cause {
	var causes []cause
	add := func(rank int, text string) {
		if text != "" {
			causes = append(causes, cause{rank, text})
		}
	}
	if pod.Status.Reason == "Terminated" || pod.Status.Reason == "NodeShutdown" {
		// Its programs ended because they were told to.
		add(1, podCause(pod))
		return causes
	}
	for _, s := range pod.Status.ContainerStatuses {
		rank := 2
		if s.Name == primary {
			rank = 0
		}
		t := ended(s)
		if t != nil && signalOf(t) == 15 {
			rank = 4
		}
		add(rank, containerCause(pod, s.Name, t))
	}
	for _, s := range pod.Status.InitContainerStatuses {
		add(3, containerCause(pod, s.Name, ended(s)))
	}
	add(1, podCause(pod))
	return causes
}

// ended is how a container last ended badly, or nil.
func ended(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t != nil && (t.ExitCode != 0 || t.Signal != 0 || t.Reason == "OOMKilled") {
			return t
		}
	}
	return nil
}

func podCause(pod *corev1.Pod) string {
	message := quote(pod.Status.Message)
	switch pod.Status.Reason {
	case "":
		return ""
	case ReasonDirectoryHidden:
		return fmt.Sprintf("pod %s cannot run: %s", pod.Name, pod.Status.Message)
	case "DeadlineExceeded":
		limit := ""
		if s := pod.Spec.ActiveDeadlineSeconds; s != nil {
			limit = fmt.Sprintf(" of %d s", *s)
		}
		return fmt.Sprintf("pod %s ran longer than its activeDeadlineSeconds%s and was stopped: raise the deadline or train for fewer steps", pod.Name, limit)
	case "Evicted":
		return fmt.Sprintf("pod %s was evicted from its node%s: request what it uses (resources.requests), or give the node more room", pod.Name, message)
	case "NodeLost", "NodeShutdown", "Terminated":
		return fmt.Sprintf("pod %s lost its node (%s%s): the trial itself may be good, run it again", pod.Name, pod.Status.Reason, message)
	}
	return fmt.Sprintf("pod %s failed: %s%s", pod.Name, pod.Status.Reason, message)
}

func containerCause(pod *corev1.Pod, name string, t *corev1.ContainerStateTerminated) string {
	if t == nil {
		return ""
	}
	who := fmt.Sprintf("container %s of pod %s", name, pod.Name)
	message := quote(t.Message)
	signal := signalOf(t)
	switch {
	case t.Reason == "OOMKilled":
		return fmt.Sprintf("%s ran out of memory and was killed (OOMKilled)%s: raise resources.limits.memory, or make the model or batch smaller", who, memoryLimit(pod, name))
	case unstarted(t):
		return fmt.Sprintf("%s could not be started%s: check that its command exists in the image and may be executed", who, message)
	case t.Reason == "DeadlineExceeded":
		return fmt.Sprintf("%s was stopped because its deadline passed: raise activeDeadlineSeconds or train for fewer steps", who)
	case t.ExitCode == exitNotFound:
		return fmt.Sprintf("%s exited with code 127, command %snot found%s: check the command, and that the image or machine has the program%s", who, commandOf(pod, name), message, wrote(pod, name))
	case t.ExitCode == exitNotExecutable:
		return fmt.Sprintf("%s exited with code 126, the command cannot be executed%s: check its permissions%s", who, message, wrote(pod, name))
	case signal == signalKill:
		return fmt.Sprintf("%s was killed by signal 9 (SIGKILL)%s: often the machine ran out of memory, or something stopped the pod%s", who, message, wrote(pod, name))
	case signal > 0:
		return fmt.Sprintf("%s was ended by signal %d%s%s: see its last lines%s", who, signal, signalName(signal), message, wrote(pod, name))
	}
	return fmt.Sprintf("%s exited with code %d%s: see its last lines%s", who, t.ExitCode, message, wrote(pod, name))
}

// signalOf is the signal that ended a container, or 0.
func signalOf(t *corev1.ContainerStateTerminated) int32 {
	if t.Signal > 0 {
		return t.Signal
	}
	if s := t.ExitCode - exitSignal; signals[s] != "" {
		return s
	}
	return 0
}

func signalName(s int32) string {
	if n := signals[s]; n != "" {
		return " (" + n + ")"
	}
	return ""
}

// runners start another program and leave with 127 when that one is not found.
var runners = []string{
	"sh", "bash", "dash", "ash", "zsh",
	"env", "nice", "nohup", "setsid", "stdbuf", "timeout", "time", "ionice", "taskset", "numactl", "chrt", "xargs",
}

// commandOf is the program that a container was to run, quoted and followed by a
// space: what "collector exec" runs, or the command itself. It is empty for a shell,
// because that was found.
func commandOf(pod *corev1.Pod, container string) string {
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		argv := slices.Concat(c.Command, c.Args)
		if i := slices.Index(argv, "--"); i >= 0 && len(argv) > 1 && (argv[1] == "exec" || path.Base(argv[0]) == "collector") {
			argv = argv[i+1:]
		}
		if len(argv) > 0 && !slices.Contains(runners, path.Base(argv[0])) {
			return fmt.Sprintf("%q ", argv[0])
		}
	}
	return ""
}

// wrote says where to find the program's output. The pod of a trial is deleted when
// the trial ends, unless it is retained.
func wrote(pod *corev1.Pod, container string) string {
	if experiment, trial := pod.Labels[LabelExperiment], pod.Labels[LabelTrial]; experiment != "" && trial != "" {
		return fmt.Sprintf(" (vernier logs %s/%s; on a cluster, set trialTemplate.retain to keep the pod)", experiment, trial)
	}
	return fmt.Sprintf(" (kubectl logs -n %s %s -c %s)", pod.Namespace, pod.Name, container)
}

func memoryLimit(pod *corev1.Pod, name string) string {
	for _, c := range append(slices.Clone(pod.Spec.Containers), pod.Spec.InitContainers...) {
		if c.Name != name {
			continue
		}
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
			return fmt.Sprintf("; its limit is %s", limit.String())
		}
	}
	return "; it has no limit of its own, so the node ran out"
}

// Wait is what holds a trial up. Its zero value is that nothing does.
type Wait struct {
	// Why says it in one sentence, with what to do.
	Why string
	// For says what would end it.
	For Remedy
	// Since is when it began.
	Since time.Time
}

// Remedy is what ends a wait.
type Remedy int

// The remedies, the one that comes least by itself last.
const (
	// Retries: the program crashes and is started again, as often as its job allows.
	Retries Remedy = iota
	// Room: a node, a quota or a queue, which come without a change to the trial.
	Room
	// Repair: an image, a claim or a permission, which does not come by itself.
	Repair
)

// Waiting says what the pods of a trial wait for: a node, an image, a ConfigMap, the
// return of its node. A pod that is just starting is not held up. Of several pods, one
// that waits for what does not come by itself goes first.
func Waiting(pods []corev1.Pod) (most Wait) {
	for i := range pods {
		if w := waitOf(&pods[i]); most.Why == "" || w.Why != "" && w.For > most.For {
			most = w
		}
	}
	return most
}

func waitOf(pod *corev1.Pod) Wait {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return Wait{}
	}
	if since, lost := nodeIsLost(pod); lost {
		return Wait{fmt.Sprintf("the node %s of pod %s does not answer: another pod replaces it when the node is back, or was deleted (kubectl delete node %s)", pod.Spec.NodeName, pod.Name, pod.Spec.NodeName), Room, since}
	}
	for _, c := range pod.Status.Conditions {
		if disrupted(c) {
			return Wait{fmt.Sprintf("pod %s is being taken from its node%s: the job replaces it when it has ended, if its policy allows that", pod.Name, quote(c.Message)), Retries, c.LastTransitionTime.Time}
		}
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			advice, remedy := unschedulableAdvice(pod, c.Message)
			return Wait{fmt.Sprintf("pod %s finds no node%s: %s", pod.Name, quote(c.Message), advice), remedy, c.LastTransitionTime.Time}
		}
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return Wait{fmt.Sprintf("pod %s is not scheduled before its gates are open (%s): what has set them, such as Kueue, opens them", pod.Name, gatesOf(pod)), Room, startOf(pod)}
		}
	}
	if at := sidecarGone(pod); at != nil {
		return Wait{fmt.Sprintf("pod %s was ended by its node while it started, and Kubernetes does not start it again: delete it, and its job makes another (kubectl delete pod -n %s %s)", pod.Name, pod.Namespace, pod.Name), Repair, at.Time}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := backOff(pod, s); w != nil {
			if text := waitingCause(pod, s, w); text != "" {
				return Wait{text, remedyOf(w), dueSince(pod, s)}
			}
		}
	}
	return Wait{}
}

func gatesOf(pod *corev1.Pod) string {
	var names []string
	for _, g := range pod.Spec.SchedulingGates {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

// backOff is what a container waits for. A kubelet leaves the state of one that it will
// start again as it ended, where the pod has sidecars.
func backOff(pod *corev1.Pod, s corev1.ContainerStatus) *corev1.ContainerStateWaiting {
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 && s.RestartCount > 0 && pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	return s.State.Waiting
}

func remedyOf(w *corev1.ContainerStateWaiting) Remedy {
	if w.Reason == "CrashLoopBackOff" {
		return Retries
	}
	return Repair
}

// startOf is when a pod got its node, or was made.
func startOf(pod *corev1.Pod) time.Time {
	if s := pod.Status.StartTime; s != nil {
		return s.Time
	}
	return pod.CreationTimestamp.Time
}

// dueSince is since when a container that waits could have run: its pod has its node, the
// init containers have ended, and so has what it ran before. A program that could not be
// started has not run.
func dueSince(pod *corev1.Pod, s corev1.ContainerStatus) time.Time {
	since, before := startOf(pod), []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated}
	for _, i := range pod.Status.InitContainerStatuses {
		before = append(before, i.State.Terminated)
	}
	for _, t := range before {
		if t != nil && !unstarted(t) && t.FinishedAt.After(since) {
			since = t.FinishedAt.Time
		}
	}
	return since
}

// nodeIsLost reports that Kubernetes has marked a pod for its node, which does not
// answer, and since when: then it alone takes the condition Ready, which a kubelet takes
// together with that of the containers.
func nodeIsLost(pod *corev1.Pod) (since time.Time, lost bool) {
	conditions := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		conditions[c.Type] = c
	}
	ready, containers := conditions[corev1.PodReady], conditions[corev1.ContainersReady]
	lost = ready.Status == corev1.ConditionFalse && containers.Status == corev1.ConditionTrue && len(pod.Spec.ReadinessGates) == 0
	return ready.LastTransitionTime.Time, lost
}

// sidecarGone is when the sidecar of a pod that has not started its program ended for
// good. A kubelet starts a sidecar again, but not a pod of the restart policy Never whose
// sandbox has died.
func sidecarGone(pod *corev1.Pod) *metav1.Time {
	if pod.Status.Phase != corev1.PodPending || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return nil
	}
	for _, s := range pod.Status.InitContainerStatuses {
		sidecar := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == s.Name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
		if t := s.State.Terminated; t != nil && sidecar {
			return &t.FinishedAt
		}
	}
	return nil
}

func waitingCause(pod *corev1.Pod, s corev1.ContainerStatus, w *corev1.ContainerStateWaiting) string {
	who := fmt.Sprintf("container %s of pod %s", s.Name, pod.Name)
	message := quote(w.Message)
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable":
		return fmt.Sprintf("%s cannot get its image %s, %s%s: check the name and tag, and the pull secret", who, imageOf(pod, s), w.Reason, message)
	case "CreateContainerConfigError":
		return fmt.Sprintf("%s cannot be configured%s: create the ConfigMap, Secret or key that it names", who, message)
	case "CreateContainerError", "RunContainerError":
		return fmt.Sprintf("%s cannot be started, %s%s: check its command, mounts and security context", who, w.Reason, message)
	case "CrashLoopBackOff":
		why := containerCause(pod, s.Name, ended(s))
		if why == "" {
			why = who + " keeps ending"
		}
		if s.RestartCount == 1 {
			return why + "; it was restarted once"
		}
		return fmt.Sprintf("%s; it was restarted %d times", why, s.RestartCount)
	}
	return ""
}

func imageOf(pod *corev1.Pod, s corev1.ContainerStatus) string {
	for _, c := range append(slices.Clone(pod.Spec.Containers), pod.Spec.InitContainers...) {
		if c.Name == s.Name && c.Image != "" {
			return c.Image
		}
	}
	return s.Image
}
