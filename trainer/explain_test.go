package trainer_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/trainer"
)

// pod is a pod whose container main ended as t says.
func pod(name string, t *corev1.ContainerStateTerminated) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "train:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}},
		}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: t}}},
		},
	}
}

func waiting(reason, message string) corev1.Pod {
	p := pod("p", nil)
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return p
}

type terminated = corev1.ContainerStateTerminated

func TestExplain(t *testing.T) {
	deadline := int64(30)
	evicted := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}}
	late := pod("p", &terminated{ExitCode: 143, Reason: "Error"})
	late.Status.Reason, late.Spec.ActiveDeadlineSeconds = "DeadlineExceeded", &deadline
	unlimited := pod("p", &terminated{ExitCode: 137, Reason: "OOMKilled"})
	unlimited.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	initFailed := pod("p", nil)
	initFailed.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch", State: corev1.ContainerState{Terminated: &terminated{ExitCode: 3}}}}
	restarted := pod("p", nil)
	restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated = &terminated{ExitCode: 9}
	other := pod("other", &terminated{ExitCode: 5})
	other.Status.ContainerStatuses[0].Name = "helper"

	down := pod("p", &terminated{ExitCode: 137, Reason: "Error"})
	down.Status.Reason, down.Status.Message = "Terminated", "Pod was ended by vernier down"

	tests := map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"the node's end tells more than the signal that it sent": {
			[]corev1.Pod{down},
			"pod p lost its node (Terminated (Pod was ended by vernier down)): the trial itself may be good, run it again",
		},
		"nothing is known":      {nil, ""},
		"a pod that ended well": {[]corev1.Pod{pod("p", &terminated{Reason: "Completed"})}, ""},
		"an exit code": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 1, Message: "ValueError: lr\nmust be positive\n"})},
			"container main of pod p exited with code 1 (ValueError: lr must be positive): see its last lines (kubectl logs -n team p -c main)",
		},
		"out of memory": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 137, Reason: "OOMKilled"})},
			"container main of pod p ran out of memory and was killed (OOMKilled); its limit is 512Mi: raise resources.limits.memory, or make the model or batch smaller",
		},
		"out of memory without a limit": {
			[]corev1.Pod{unlimited},
			"container main of pod p ran out of memory and was killed (OOMKilled); it has no limit of its own, so the node ran out: raise resources.limits.memory, or make the model or batch smaller",
		},
		"command not found by the runtime": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 128, Reason: "StartError", Message: `exec: "trian": not found`})},
			`container main of pod p could not be started (exec: "trian": not found): check that its command exists in the image and may be executed`,
		},
		"command not found by the wrapper": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 127, Reason: "Error"})},
			"container main of pod p exited with code 127, command not found: check the command, and that the image or machine has the program (kubectl logs -n team p -c main)",
		},
		"a summary of the collector in the place of the program's message": {
			[]corev1.Pod{trialPod(pod("p", &terminated{ExitCode: 127, Message: `{"vernier":1,"attempt":"u/0","final":false}`}), "/c/collector", "run", "--dir=/d", "--", "trian")},
			`container main of pod p exited with code 127, command "trian" not found: check the command, and that the image or machine has the program (vernier logs exp/exp-0001; on a cluster, set trialTemplate.retain to keep the pod)`,
		},
		"command not found by the wrapper, which names it": {
			[]corev1.Pod{trialPod(pod("p", &terminated{ExitCode: 127, Message: "no such file"}), "collector", "exec", "--dir=/d", "--", "trian", "--x")},
			`container main of pod p exited with code 127, command "trian" not found (no such file): check the command, and that the image or machine has the program (vernier logs exp/exp-0001; on a cluster, set trialTemplate.retain to keep the pod)`,
		},
		"command not found by a shell": {
			[]corev1.Pod{trialPod(pod("p", &terminated{ExitCode: 127}), "sh", "-c", "trian")},
			`container main of pod p exited with code 127, command not found: check the command, and that the image or machine has the program (vernier logs exp/exp-0001; on a cluster, set trialTemplate.retain to keep the pod)`,
		},
		"command not found by nice": {
			[]corev1.Pod{trialPod(pod("p", &terminated{ExitCode: 127, Message: "nice: 'pyhton': No such file or directory"}), "collector", "exec", "--dir=/d", "--", "nice", "-n", "5", "pyhton", "train.py")},
			`container main of pod p exited with code 127, command not found (nice: 'pyhton': No such file or directory): check the command, and that the image or machine has the program (vernier logs exp/exp-0001; on a cluster, set trialTemplate.retain to keep the pod)`,
		},
		"not executable": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 126})},
			"container main of pod p exited with code 126, the command cannot be executed: check its permissions (kubectl logs -n team p -c main)",
		},
		"a signal in the exit code": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 139})},
			"container main of pod p was ended by signal 11 (SIGSEGV): see its last lines (kubectl logs -n team p -c main)",
		},
		"a signal of its own": {
			[]corev1.Pod{pod("p", &terminated{Signal: 6})},
			"container main of pod p was ended by signal 6 (SIGABRT): see its last lines (kubectl logs -n team p -c main)",
		},
		"killed": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 137})},
			"container main of pod p was killed by signal 9 (SIGKILL): often the machine ran out of memory, or something stopped the pod (kubectl logs -n team p -c main)",
		},
		"an exit code above 128 that is no signal": {
			[]corev1.Pod{pod("p", &terminated{ExitCode: 255})},
			"container main of pod p exited with code 255: see its last lines (kubectl logs -n team p -c main)",
		},
		"the deadline tells more than the signal that it sent": {
			[]corev1.Pod{late},
			"pod p ran longer than its activeDeadlineSeconds of 30 s and was stopped: raise the deadline or train for fewer steps",
		},
		"evicted": {
			[]corev1.Pod{evicted},
			"pod p was evicted from its node (The node was low on resource: memory.): request what it uses (resources.requests), or give the node more room",
		},
		"an init container": {
			[]corev1.Pod{initFailed},
			"container fetch of pod p exited with code 3: see its last lines (kubectl logs -n team p -c fetch)",
		},
		"the end before a restart": {
			[]corev1.Pod{restarted},
			"container main of pod p exited with code 9: see its last lines (kubectl logs -n team p -c main)",
		},
		"the primary container comes first": {
			[]corev1.Pod{other, pod("p", &terminated{ExitCode: 2})},
			"container main of pod p exited with code 2: see its last lines (kubectl logs -n team p -c main)",
		},
		"the pod that failed comes before the one that was stopped for it": {
			[]corev1.Pod{pod("a", &terminated{ExitCode: 143}), other},
			"container helper of pod other exited with code 5: see its last lines (kubectl logs -n team other -c helper)",
		},
		"a pod that never started": {
			[]corev1.Pod{waiting("ImagePullBackOff", "")},
			"container main of pod p cannot get its image train:1, ImagePullBackOff: check the name and tag, and the pull secret",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := trainer.Explain(tc.pods, "main"); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestExplainQuotesTheExceptionOfATracebackFirst(t *testing.T) {
	const begin = "epoch 1\nTraceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    main(lr)\n"
	const last = "  File \"train.py\", line 3, in main\n    raise ValueError(lr)\n           ^^^^^\n"
	tests := map[string]struct{ message, want string }{
		"a traceback":            {begin + last + "ValueError: 0.1\n", `(ValueError: 0.1, at File "train.py", line 3, in main raise ValueError(lr))`},
		"without its beginning":  {"n <module>\n" + last + "ValueError: 0.1\n", `(ValueError: 0.1, at File "train.py", line 3, in main raise ValueError(lr))`},
		"one while another":      {begin + "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n" + begin + last + "ValueError: 0.1\n", `(ValueError: 0.1, at File "train.py", line 3`},
		"an exception of lines":  {begin + "RuntimeError: these differ:\n\ta\n\tb\n", `(RuntimeError: these differ: a b, at File "train.py", line 9, in <module> main(lr))`},
		"an exception too long":  {begin + "ValueError: " + strings.Repeat("x", 500), "(ValueError: " + strings.Repeat("x", 138) + " ... " + strings.Repeat("x", 150) + ")"},
		"one that was handled":   {begin + "ConnectionError: retrying\n" + strings.Repeat("epoch 2 loss 0.5\n", 40) + "error: disk quota exceeded\n", "error: disk quota exceeded)"},
		"a traceback without it": {begin + last, `(epoch 1 Traceback (most recent call last): File "train.py", line 9, in <module> main(lr) File "train.py", line 3, in main`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := trainer.Explain([]corev1.Pod{pod("p", &terminated{ExitCode: 1, Message: tc.message})}, "main")
			if !strings.Contains(got, tc.want) || strings.Count(got, "ValueError: 0.1") > 1 {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestExplainQuotesTheEndOfALongMessage(t *testing.T) {
	message := strings.Repeat("ä", 10_000) + "the end"
	got := trainer.Explain([]corev1.Pod{pod("p", &terminated{ExitCode: 1, Message: message})}, "main")
	if !strings.Contains(got, "ääthe end)") || len(got) > 1000 {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

func TestWaiting(t *testing.T) {
	unschedulable := waiting("", "")
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}
	noClaim := waiting("", "")
	noClaim.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: `0/1 nodes are available: persistentvolumeclaim "data" not found.`}}
	unbound := waiting("", "")
	unbound.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cifar"}}}}
	unbound.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}}
	crash := waiting("CrashLoopBackOff", "back-off 10s")
	crash.Status.ContainerStatuses[0].RestartCount = 4
	crash.Status.ContainerStatuses[0].LastTerminationState.Terminated = &terminated{ExitCode: 1}
	beside := *crash.DeepCopy() // a sidecar
	beside.Status.Phase, beside.Status.ContainerStatuses[0].State = corev1.PodRunning, corev1.ContainerState{Terminated: &terminated{ExitCode: 1}}
	never := *beside.DeepCopy()
	never.Spec.RestartPolicy = corev1.RestartPolicyNever
	ended := waiting("ImagePullBackOff", "")
	ended.Status.Phase = corev1.PodFailed
	withConditions := func(conditions ...corev1.PodCondition) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: conditions},
		}
	}
	notReady := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	containersReady := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	disrupted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: "Eviction API: evicting"}
	gated := withConditions(notReady, containersReady)
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
	held := waiting("", "")
	held.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	held.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	always := corev1.ContainerRestartPolicyAlways
	dead := waiting("", "")
	dead.Spec.RestartPolicy = corev1.RestartPolicyNever
	dead.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: &always}}
	dead.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar", State: corev1.ContainerState{Terminated: &terminated{ExitCode: 255}}}}
	restarts := *dead.DeepCopy()
	restarts.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	const lost = "the node n of pod p does not answer: another pod replaces it when the node is back, or was deleted (kubectl delete node n)"
	tests := map[string]struct {
		pod    corev1.Pod
		remedy trainer.Remedy
		want   string
	}{
		"a lost node":           {withConditions(notReady, containersReady), trainer.Room, lost},
		"evicted from it":       {withConditions(disrupted, notReady, containersReady), trainer.Room, lost},
		"a container not ready": {withConditions(notReady, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}), trainer.Retries, ""},
		"a dead sandbox":        {dead, trainer.Repair, "pod p was ended by its node while it started, and Kubernetes does not start it again: delete it, and its job makes another (kubectl delete pod -n team p)"},
		"a dead sandbox of a pod that is restarted": {restarts, trainer.Retries, ""},
		"a gate that is not open":                   {gated, trainer.Retries, ""},
		"a drain":                                   {withConditions(disrupted), trainer.Retries, "pod p is being taken from its node (Eviction API: evicting): the job replaces it when it has ended, if its policy allows that"},
		"a pod that just starts":                    {waiting("ContainerCreating", ""), trainer.Retries, ""},
		"a pod that has ended":                      {ended, trainer.Retries, ""},
		"no node":                                   {unschedulable, trainer.Room, "pod p finds no node (0/1 nodes are available: 1 Insufficient cpu.): request less, run fewer trials at once, or add nodes"},
		"a queue of pods":                           {held, trainer.Room, "pod p is not scheduled before its gates are open (kueue.x-k8s.io/admission): what has set them, such as Kueue, opens them"},
		"no image":                                  {waiting("ErrImagePull", "not found"), trainer.Repair, "container main of pod p cannot get its image train:1, ErrImagePull (not found): check the name and tag, and the pull secret"},
		"no claim":                                  {noClaim, trainer.Repair, `pod p finds no node (0/1 nodes are available: persistentvolumeclaim "data" not found.): create the PersistentVolumeClaim, or correct its name in the template`},
		"no volume":                                 {unbound, trainer.Repair, "pod p finds no node (0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.): a PersistentVolumeClaim (cifar) has no volume: create one, or name a StorageClass that does"},
		"no ConfigMap":                              {waiting("CreateContainerConfigError", `configmap "data" not found`), trainer.Repair, `container main of pod p cannot be configured (configmap "data" not found): create the ConfigMap, Secret or key that it names`},
		"cannot be created":                         {waiting("CreateContainerError", "x"), trainer.Repair, "container main of pod p cannot be started, CreateContainerError (x): check its command, mounts and security context"},
		"it keeps crashing":                         {crash, trainer.Retries, "container main of pod p exited with code 1: see its last lines (kubectl logs -n team p -c main); it was restarted 4 times"},
		"it keeps crashing beside a sidecar":        {beside, trainer.Retries, "container main of pod p exited with code 1: see its last lines (kubectl logs -n team p -c main); it was restarted 4 times"},
		"it has crashed for good":                   {never, trainer.Retries, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := trainer.Waiting([]corev1.Pod{tc.pod})
			if got.Why != tc.want || got.For != tc.remedy {
				t.Errorf("\n got %d, %s\nwant %d, %s", got.For, got.Why, tc.remedy, tc.want)
			}
		})
	}
}

// What is said of the pods of a distributed job, and so how long they are waited for,
// does not depend on which of them comes first.
func TestOfSeveralPodsOneThatNeedsARepairIsNamed(t *testing.T) {
	image, full, fine := waiting("ErrImagePull", ""), waiting("", ""), waiting("ContainerCreating", "")
	full.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
	for name, pods := range map[string][]corev1.Pod{"last": {fine, full, image}, "first": {image, full, fine}} {
		if got := trainer.Waiting(pods); got.For != trainer.Repair {
			t.Errorf("the image %s: %d, %s", name, got.For, got.Why)
		}
	}
}

// A pod that waits for its image does so since it has a node, its init containers have
// ended and its program too, if it is started again; one without a node since the
// scheduler said so.
func TestWaitsSince(t *testing.T) {
	made := metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := metav1.NewTime(made.Add(time.Hour))
	image := waiting("ErrImagePull", "")
	image.CreationTimestamp = made
	started := image
	started.Status.StartTime = &later
	unschedulable := image
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: later}}
	last := metav1.NewTime(later.Add(time.Hour))
	again, prepared := *started.DeepCopy(), *started.DeepCopy()
	again.Status.ContainerStatuses[0].LastTerminationState.Terminated = &terminated{ExitCode: 1, FinishedAt: last}
	prepared.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "download", State: corev1.ContainerState{Terminated: &terminated{FinishedAt: last}}}}
	unstartable := *started.DeepCopy()
	unstartable.Status.ContainerStatuses[0].State.Waiting.Reason = "RunContainerError"
	unstartable.Status.ContainerStatuses[0].LastTerminationState.Terminated = &terminated{ExitCode: 128, Reason: "StartError", FinishedAt: last}
	gated := *image.DeepCopy()
	gated.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want metav1.Time
	}{
		"made": {image, made}, "behind gates": {gated, made}, "on a node": {started, later}, "without a node": {unschedulable, later},
		"that never ran": {unstartable, later}, "after it has run": {again, last}, "after an init container": {prepared, last},
	} {
		if got := trainer.Waiting([]corev1.Pod{tc.pod}); !got.Since.Equal(tc.want.Time) {
			t.Errorf("%s: since %s, want %s", name, got.Since, tc.want)
		}
	}
}

// trialPod gives a pod the labels of a trial, and its main container a command.
func trialPod(p corev1.Pod, command ...string) corev1.Pod {
	p.Labels = map[string]string{trainer.LabelExperiment: "exp", trainer.LabelTrial: "exp-0001"}
	p.Spec.Containers = []corev1.Container{{Name: "main", Command: command}}
	return p
}

func TestAdviceFollowsWhatTheSchedulerSays(t *testing.T) {
	for message, want := range map[string]string{
		"0/1 nodes are available: 1 Insufficient nvidia.com/gpu.":                                                                                                  "request less",
		"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.":                                                                            "nodeSelector",
		"0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) didn't match Pod's node affinity/selector.": "nodeSelector",
		"0/2 nodes are available: 2 node(s) had untolerated taint {nvidia.com/gpu: present}.":                                                                      "tolerations",
		"0/3 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, 2 Insufficient cpu.":                                                  "request less",
	} {
		p := waiting("", "")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
		if got := trainer.Waiting([]corev1.Pod{p}); !strings.Contains(got.Why, want) || got.For != trainer.Room {
			t.Errorf("%s\ngives %q, want %q", message, got.Why, want)
		}
	}
}
