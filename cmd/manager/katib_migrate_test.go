package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
)

// katibCluster is a world in which Katib runs.
type katibCluster struct {
	*world
	client client.WithWatch
}

func newKatibCluster(t *testing.T) *katibCluster {
	t.Helper()
	w := newWorld(t, never)
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(w.client.Scheme()); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(apiServer, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	k := &katibCluster{w, c}
	labels := map[string]string{"katib.kubeflow.org/component": "controller"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "katib-controller", Image: "katib-controller"}}}
	deployment := func(name string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": name, "katib.kubeflow.org/component": "controller"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": name, "katib.kubeflow.org/component": "controller"}}, Spec: pod},
			},
		}
	}
	algorithm := deployment("live-random", nil)
	algorithm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1beta1", Kind: "Suggestion", Name: "live", UID: "u", Controller: ptr.To(true)}}
	for _, o := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "vernier-webhook"}},
		deployment("katib-controller", labels), deployment("katib-ui", map[string]string{"katib.kubeflow.org/component": "ui"}), algorithm,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "katib-controller-x", Labels: map[string]string{"x": "katib-controller", "katib.kubeflow.org/component": "controller"}}, Spec: pod},
	} {
		k.make(o)
		t.Cleanup(func() { _ = c.Delete(context.Background(), o, client.GracePeriodSeconds(0)) })
	}
	return k
}

func (k *katibCluster) make(o client.Object) {
	k.t.Helper()
	if err := k.client.Create(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

// ofKatib is an experiment as Katib's controller leaves it, with trials that have these losses;
// one whose loss is "" runs, and its job is there.
func (k *katibCluster) ofKatib(name string, mark func(*v1beta1.Experiment), losses ...string) *v1beta1.Experiment {
	k.t.Helper()
	now := metav1.Now()
	e := k.experiment(name, func(e *v1beta1.Experiment) { e.Finalizers = []string{"update-prometheus-metrics"} })
	v1beta1.SetDefaults(e)
	k.make(e)
	e.MarkCreated("Experiment is created", now)
	e.MarkRunning("Experiment is running", now)
	e.Status.StartTime, e.Status.Trials = &now, int32(len(losses))
	mark(e)
	if err := k.client.Status().Update(k.t.Context(), e); err != nil {
		k.t.Fatal(err)
	}
	for i, loss := range losses {
		k.ofKatibs(e, fmt.Sprintf("%s-%s", name, []string{"zzbcdfgh", "mmbcdfgh", "bbbcdfgh"}[i]), fmt.Sprintf("0.0%d", i+1), loss)
	}
	return e
}

func (k *katibCluster) ofKatibs(e *v1beta1.Experiment, name, lr, loss string) {
	k.t.Helper()
	now := metav1.Now()
	job := strings.Replace(strings.Replace(jobTemplate, "${trialParameters.lr}", lr, 1), `"spec"`, fmt.Sprintf(`"metadata": {"name": %q, "namespace": %q}, "spec"`, name, k.namespace), 1)
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: name, Finalizers: []string{"clean-metrics-in-db"}, Labels: map[string]string{v1beta1.LabelExperiment: e.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))},
		},
		Spec: v1beta1.TrialSpec{
			Objective: e.Spec.Objective, ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "lr", Value: lr}},
			RunSpec: &runtime.RawExtension{Raw: []byte(job)}, MetricsCollector: *e.Spec.MetricsCollectorSpec, PrimaryContainerName: "main",
			SuccessCondition: e.Spec.TrialTemplate.SuccessCondition, FailureCondition: e.Spec.TrialTemplate.FailureCondition,
		},
	}
	k.make(t)
	t.MarkCreated("Trial is created", now)
	t.MarkRunning("Trial is running", now)
	t.Status.StartTime = &now
	if loss != "" {
		t.MarkSucceeded("Trial has succeeded", now)
		t.Status.CompletionTime = &now
		t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: loss, Max: loss, Latest: loss}}}
	} else {
		k.make(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: map[string]string{"made-by": "katib"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t, v1beta1.GroupVersion.WithKind("Trial"))}},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "train"}}}}},
		})
	}
	if err := k.client.Status().Update(k.t.Context(), t); err != nil {
		k.t.Fatal(err)
	}
}

// migrate runs one life of the migration: it dies after n writes. Katib's pod ends once
// its Deployment has no replicas.
func (k *katibCluster) migrate(n int) error {
	k.t.Helper()
	funcs, _ := dyingWrites(n)
	m := katib.Migration{
		Client: interceptor.NewClient(k.client, funcs), Restart: true,
		Refuses: func(*v1beta1.Experiment) error { return nil },
		Say: func(text string) {
			if strings.HasPrefix(text, "Wait") {
				k.endPod()
			}
		},
	}
	return m.Run(k.t.Context())
}

func (k *katibCluster) endPod() {
	k.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "katib-controller-x"}}
	if err := k.client.Delete(k.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		k.t.Error(err)
	}
}

// oneOwner holds that Vernier is not let at anything while Katib's controller runs or
// a job of its making does.
func (k *katibCluster) oneOwner() {
	k.t.Helper()
	s, err := katib.Inspect(k.t.Context(), k.client)
	if err != nil {
		k.t.Fatal(err)
	}
	var jobs batchv1.JobList
	if err := k.client.List(k.t.Context(), &jobs, client.InNamespace(k.namespace), client.MatchingLabels{"made-by": "katib"}); err != nil {
		k.t.Fatal(err)
	}
	if !s.Validating && (len(s.Pods) > 0 || len(jobs.Items) > 0) {
		k.t.Errorf("Vernier acts while Katib has the pods %v and %d jobs", s.Pods, len(jobs.Items))
	}
}

func TestMigrationFromKatib(t *testing.T) {
	for _, writes := range []int{1, 1000} {
		t.Run(fmt.Sprintf("broken off after %d writes", writes), func(t *testing.T) { migrateWithBreaks(t, writes) })
	}
}

func migrateWithBreaks(t *testing.T, writes int) {
	k := newKatibCluster(t)
	succeeded := func(e *v1beta1.Experiment) {
		e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "Experiment has succeeded because max trial count has reached", metav1.Now())
		e.Status.CompletionTime = ptr.To(metav1.Now())
		e.Status.CurrentOptimalTrial.BestTrialName = "done-mmbcdfgh"
	}
	unmarked := func(*v1beta1.Experiment) {}
	done, live, going := k.ofKatib("done", succeeded, "0.5", "0.25", ""), k.ofKatib("live", unmarked, "0.5", "0.001", ""), k.ofKatib("going", unmarked, "0.5")
	for _, o := range []client.Object{going, &k.trialsOf(going)[0]} {
		if err := k.client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if k.katib, err = katib.Look(t.Context(), k.client); err != nil {
		t.Fatal(err)
	}
	k.start()
	k.leftAlone(live)
	for lives := 1; ; lives++ {
		err := k.migrate(writes)
		k.oneOwner()
		if err == nil && (writes > 100) != (lives == 1) {
			t.Errorf("done in %d lives: the test tests nothing", lives)
		}
		if err == nil {
			break
		}
		if lives > 60 || !strings.Contains(err.Error(), "the manager is dead") {
			t.Fatal(err)
		}
	}
	if err := k.migrate(0); err != nil {
		t.Errorf("once more: %v", err)
	}
	k.behave(func(name string) ending { return ending{points: []float64{0.3}} })
	k.afterwards(done, live, going)
}

// leftAlone waits until Vernier says that it leaves an experiment to Katib.
func (k *katibCluster) leftAlone(e *v1beta1.Experiment) {
	k.t.Helper()
	k.eventually("an event says why Vernier does nothing", func() string {
		var events corev1.EventList
		if err := k.client.List(k.t.Context(), &events, client.InNamespace(k.namespace)); err != nil {
			return err.Error()
		}
		if slices.ContainsFunc(events.Items, func(v corev1.Event) bool {
			return v.InvolvedObject.Name == e.Name && v.Reason == "LeftToKatib" && strings.Contains(v.Message, "vernier migrate katib")
		}) {
			return ""
		}
		return "there is none"
	})
	if got := k.read(e); got.ResourceVersion != e.ResourceVersion {
		k.t.Errorf("Vernier wrote to an experiment of Katib's: %+v", got)
	}
}

func (k *katibCluster) afterwards(done, live, going *v1beta1.Experiment) {
	t := k.t
	t.Helper()
	got := k.ends(live, v1beta1.ReasonExperimentMaxTrialsReached)
	if got.Status.Trials != 6 || got.Status.TrialsSucceeded != 6 || got.Status.CurrentOptimalTrial.BestTrialName != "live-mmbcdfgh" {
		t.Errorf("the experiment that went on: %+v", got.Status)
	}
	var numbers []string
	for _, tr := range k.trialsOf(live) {
		numbers = append(numbers, tr.Labels[v1beta1.LabelTrialNumber])
		if len(tr.Finalizers) > 0 || !tr.IsSucceeded() {
			t.Errorf("trial %s: %v %+v", tr.Name, tr.Finalizers, tr.Status.Conditions)
		}
		if lr := tr.Spec.ParameterAssignments[0].Value; tr.Name == "live-bbbcdfgh" && (lr != "0.03" || tr.Status.Observation.Metrics[0].Latest != "0.3") {
			t.Errorf("the trial that began again: lr=%s, %+v", lr, tr.Status.Observation)
		}
	}
	slices.Sort(numbers)
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5"}, numbers); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	k.eventually("the ended experiment's trial that still ran is killed", func() string {
		e, trials := k.read(done), k.trialsOf(done)
		if e.Status.CurrentOptimalTrial.BestTrialName != "done-mmbcdfgh" || e.LastCondition().Reason != v1beta1.ReasonExperimentMaxTrialsReached || len(e.Finalizers) > 0 || len(trials) != 3 {
			t.Fatalf("the ended experiment has changed: %+v", e)
		}
		if i := slices.IndexFunc(trials, func(tr v1beta1.Trial) bool { return tr.Name == "done-bbbcdfgh" }); !trials[i].IsKilled() {
			return fmt.Sprintf("%+v", trials[i].Status.Conditions)
		}
		return ""
	})
	for _, o := range []client.Object{going, &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "going-zzbcdfgh"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "live-random"}}} {
		if err := k.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is there: %v", o, o.GetName(), err)
		}
	}
	if err := k.client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "katib-ui"}, &appsv1.Deployment{}); err != nil {
		t.Errorf("what the user is to delete is gone: %v", err)
	}
}

// Without being told what becomes of them, nothing is begun while experiments run.
func TestMigrationAsksAboutExperimentsThatRun(t *testing.T) {
	k := newKatibCluster(t)
	e := k.ofKatib("live", func(*v1beta1.Experiment) {}, "0.5")
	unable := errors.New("there is no algorithm hyperdrive")
	controller := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "katib-controller"}}
	scale := func(n int) {
		if err := k.client.Patch(t.Context(), controller, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(name, want string, m katib.Migration) {
		t.Helper()
		funcs, _ := dyingWrites(0)
		m.Client, m.Say = interceptor.NewClient(k.client, funcs), func(string) {}
		if err := m.Run(t.Context()); !errors.Is(err, katib.ErrRunning) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	refused("by default", "--restart-running", katib.Migration{})
	refused("one that cannot go on", unable.Error(), katib.Migration{Restart: true, Refuses: func(*v1beta1.Experiment) error { return unable }})
	k.endPod()
	scale(0)
	refused("waiting for a controller that was stopped", "they never will", katib.Migration{Wait: true})
	scale(1)

	var said []string
	waits := katib.Migration{Client: k.client, Wait: true, Say: func(text string) {
		if said = append(said, text); len(said) == 1 { // Katib brings it to its end
			e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.Now())
			if err := k.client.Status().Update(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
	}}
	if err := waits.Run(t.Context()); err != nil || !strings.HasPrefix(said[0], "Wait for the ends of 1 ") || !strings.HasPrefix(said[1], "Scale ") {
		t.Errorf("%v: %q", err, said)
	}
	if err := k.client.Delete(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "vernier-webhook"}}); err != nil {
		t.Fatal(err)
	}
	s, err := katib.Inspect(t.Context(), k.client)
	if err == nil {
		err = waits.Check(s)
	}
	if err == nil || !strings.Contains(err.Error(), "install it first") {
		t.Errorf("without Vernier: %v", err)
	}
}
