//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// trouble is what a cluster does to a trial: its pod does not come into being, or does
// not start.
type trouble struct {
	// besides is made before the experiment, and deleted after it.
	besides client.Object
	// enforce is the level of Pod Security in the namespace.
	enforce string
	change  change
	want    []string // parts of the trial's message
}

func troubles() map[string]trouble {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "trouble"}
	asks := func(resources map[string]any) change {
		return func(spec map[string]any) {
			container(spec)["resources"] = map[string]any{"requests": resources, "limits": resources}
		}
	}
	return map[string]trouble{
		"the image cannot be pulled": {
			change: func(spec map[string]any) { container(spec)["image"] = "vernier.test/absent:1" },
			want:   []string{"vernier.test/absent:1", "image"},
		},
		"the quota is used up": {
			besides: &corev1.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}},
			want:    []string{"exceeded quota", "trouble"},
		},
		"the LimitRange allows less": {
			besides: &corev1.LimitRange{ObjectMeta: meta, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			}}}},
			change: asks(map[string]any{"memory": "512Mi"}),
			want:   []string{"maximum memory usage per Container is 256Mi"},
		},
		"Pod Security refuses the program": {
			enforce: "restricted",
			want:    []string{"PodSecurity", "restricted", "training"},
		},
		"no node has what it asks for": {
			change: asks(map[string]any{"nvidia.com/gpu": "8"}),
			want:   []string{"Insufficient nvidia.com/gpu"},
		},
		"no node has the label": {
			change: func(spec map[string]any) { podSpec(spec)["nodeSelector"] = map[string]any{"gpu": "h200"} },
			want:   []string{"finds no node", "node affinity/selector"},
		},
		"its claim is not there": {
			change: func(spec map[string]any) {
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "absent"}}}
			},
			want: []string{"absent"},
		},
		"its claim is pending": {
			besides: &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Ti")}},
			}},
			change: func(spec map[string]any) {
				podSpec(spec)["volumes"] = []any{map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "trouble"}}}
			},
			want: []string{"PersistentVolumeClaim (trouble)"},
		},
		"its ConfigMap is not there": {
			change: func(spec map[string]any) {
				container(spec)["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "absent"}}}
			},
			want: []string{"configmap", "absent"},
		},
		"its program takes more memory than its limit": {
			change: func(spec map[string]any) {
				command("sh", "-c", "echo loss=${trialParameters.x}; tail /dev/zero")(spec)
				asks(map[string]any{"memory": "64Mi"})(spec)
			},
			want: []string{"OOMKilled", "its limit is 64Mi", "raise resources.limits.memory"},
		},
	}
}

// TestTrialsSayWhatHoldsThemUp holds that a trial whose pod does not start, or that the
// node kills, says within a minute what is wrong, in its condition and in vernier describe.
func TestTrialsSayWhatHoldsThemUp(t *testing.T) {
	i := cluster(t)
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) { i.checkTrouble(t, trouble) })
	}
}

func (i *instance) checkTrouble(t *testing.T, trouble trouble) {
	t.Helper()
	if trouble.change == nil {
		trouble.change = func(map[string]any) {}
	}
	if trouble.besides != nil {
		if err := i.client.Create(t.Context(), trouble.besides); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.client.Delete(context.WithoutCancel(t.Context()), trouble.besides) })
	}
	if trouble.enforce != "" {
		i.enforce(t, trouble.enforce)
	}
	object := broken(t, "held-back", trouble.change)
	began := time.Now()
	if err := i.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.clear(t) })
	message := ""
	eventually(t, time.Minute, func(ctx context.Context) error {
		for _, trial := range i.trials(t, "held-back") {
			if c := trial.LastCondition(); c != nil {
				message = fmt.Sprintf("%s: %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		for _, word := range trouble.want {
			if !strings.Contains(message, word) {
				return fmt.Errorf("%q does not name %q", message, word)
			}
		}
		return nil
	})
	t.Logf("after %.0f s: %s", time.Since(began).Seconds(), message)
	described, err := i.vernier("describe", "held-back/0")
	if err != nil {
		t.Errorf("vernier describe: %v", err)
	}
	requireWords(t, described, trouble.want)
}

// enforce sets the namespace's level of Pod Security while the test runs.
func (i *instance) enforce(t *testing.T, level string) {
	t.Helper()
	label := func(ctx context.Context, value string) error {
		patch := fmt.Sprintf(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": %s}}}`, value)
		return i.client.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if err := label(t.Context(), `"`+level+`"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := label(context.WithoutCancel(t.Context()), "null"); err != nil {
			t.Error(err)
		}
	})
}

// TestRestrictedNamespaces runs an experiment with each kind of collector where Pod
// Security enforces the restricted profile: what is added to a pod that keeps it keeps
// it too.
func TestRestrictedNamespaces(t *testing.T) {
	i := cluster(t)
	i.enforce(t, "restricted")
	for name, experiment := range collectorKinds(testProgram(t)) {
		experiment.container = `securityContext: {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}`
		t.Run(name, func(t *testing.T) { i.checkCollector(t, experiment) })
	}
}

// disruptedExperiment has one trial that takes ten seconds.
func disruptedExperiment() jobExperiment {
	return jobExperiment{
		name: "disrupted", algorithm: "random", parallel: 1, max: 1, maxFailed: 0,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`,
		command:   `[sh, -c, "i=0; while [ $i -lt 10 ]; do i=$((i+1)); echo epoch=$i loss=${trialParameters.x}; sleep 1; done"]`,
		container: `resources: {requests: {cpu: 300m}}`,
	}
}

// TestDisruptionsAreNotFailures takes the pod of a running trial away, as a drain and
// as a pod of higher priority do: the trial goes on in another pod, and succeeds.
func TestDisruptionsAreNotFailures(t *testing.T) {
	i := cluster(t)
	for name, disrupt := range map[string]func(*testing.T, *corev1.Pod){
		"eviction":   i.evict,
		"preemption": i.preempt,
	} {
		t.Run(name, func(t *testing.T) { i.checkDisruption(t, disrupt) })
	}
}

func (i *instance) evict(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := i.client.SubResource("eviction").Create(t.Context(), pod, eviction); err != nil {
		t.Fatal(err)
	}
}

func (i *instance) checkDisruption(t *testing.T, disrupt func(*testing.T, *corev1.Pod)) {
	t.Helper()
	if err := i.client.Create(t.Context(), disruptedExperiment().object(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.clear(t) })
	first := i.awaitRunningPod(t, "")
	disrupt(t, first)
	i.awaitRunningPod(t, first.UID)
	i.awaitEnd(t, "disrupted")
	trials := i.trials(t, "disrupted")
	if len(trials) != 1 || !trials[0].IsSucceeded() {
		t.Fatalf("%d trials: %+v", len(trials), trials)
	}
	t.Logf("%s", trials[0].LastCondition().Message)
	if o := trials[0].Status.Observation; o == nil || o.Metrics[0].Latest != trials[0].Spec.ParameterAssignments[0].Value {
		t.Errorf("it observed %+v", o)
	}
}

// awaitRunningPod is a pod of the only trial whose program runs, but not the given one.
func (i *instance) awaitRunningPod(t *testing.T, not types.UID) *corev1.Pod {
	t.Helper()
	var found corev1.Pod
	eventually(t, time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := i.client.List(ctx, &pods, client.InNamespace("default"), client.HasLabels{v1beta1.LabelTrial}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			s := pod.Status.ContainerStatuses
			if pod.UID != not && pod.DeletionTimestamp == nil && len(s) == 1 && s[0].State.Running != nil {
				found = pod
				return nil
			}
		}
		return fmt.Errorf("%d pods, and the program of none runs", len(pods.Items))
	})
	return &found
}

// preempt makes a pod of a higher priority that leaves no CPU for the given one.
func (i *instance) preempt(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000000}
	var node corev1.Node
	if err := i.client.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &node); err != nil {
		t.Fatal(err)
	}
	cpu := node.Status.Allocatable.Cpu().DeepCopy()
	// Enough for what else runs (Vernier asks for 120m), but not for the trial beside it.
	cpu.Sub(resource.MustParse("200m"))
	urgent := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "urgent"},
		Spec: corev1.PodSpec{
			PriorityClassName: class.Name, RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector: map[string]string{corev1.LabelHostname: node.Name},
			Containers: []corev1.Container{{
				Name: "main", Image: trialImage(), Command: []string{"sleep", "5"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}},
			}},
		},
	}
	for _, o := range []client.Object{class, urgent} {
		if err := i.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.client.Delete(context.WithoutCancel(t.Context()), o) })
	}
}
