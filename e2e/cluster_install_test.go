//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/trainer"
)

// changeOf is a command of the suite that changes what is installed.
func changeOf(t *testing.T, variable string) func() {
	t.Helper()
	command := os.Getenv(variable)
	if command == "" {
		t.Skipf("it needs %s: run make e2e-cluster", variable)
	}
	return func() {
		t.Helper()
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// whileTrialsRun starts an experiment, changes what is installed when a few of its trials
// have ended, and holds that all end as if nothing had been.
func (i *instance) whileTrialsRun(t *testing.T, name string, change func()) {
	t.Helper()
	stamps := t.TempDir()
	if err := os.Chmod(stamps, 0o777); err != nil {
		t.Fatal(err)
	}
	const trials = 40
	experiment := killExperiment(t, name, "/stamps")
	forAKilledNode(t, experiment, stamps, "/stamps")
	experiment.Spec.MaxTrialCount, experiment.Spec.ParallelTrialCount = ptr.To[int32](trials), ptr.To[int32](4)
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	i.awaitFinishedTrials(t, name, 6)
	change()
	i.awaitFinishedTrials(t, name, trials)
	i.awaitEnd(t, name)
	i.checkKilled(t, name, stamps, trials, nil)
}

// TestUpgrade upgrades from the chart and the images of an earlier commit while trials run.
func TestUpgrade(t *testing.T) {
	upgrade := changeOf(t, "VERNIER_E2E_UPGRADE")
	i := cluster(t)
	before := i.managerImage(t)
	i.whileTrialsRun(t, "upgraded", upgrade)
	if after := i.managerImage(t); after == before {
		t.Errorf("nothing was upgraded: the manager is still %s", after)
	} else {
		t.Logf("%s became %s", before, after)
	}
}

func (i *instance) managerImage(t *testing.T) string {
	t.Helper()
	var d appsv1.Deployment
	if err := i.client.Get(t.Context(), client.ObjectKey{Namespace: "vernier-system", Name: "vernier-manager"}, &d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// TestUninstallKeepsData uninstalls the chart while trials run: the definitions, all
// experiments and the curves stay, and when it is installed again the experiment goes on.
func TestUninstallKeepsData(t *testing.T) {
	uninstall, install := changeOf(t, "VERNIER_E2E_UNINSTALL"), changeOf(t, "VERNIER_E2E_INSTALL")
	i := cluster(t)
	t.Cleanup(install) // for the tests after this one
	i.whileTrialsRun(t, "kept", func() {
		uninstall()
		eventually(t, time.Minute, func(context.Context) error {
			if left := i.podsOfVernier(t); len(left) > 0 {
				return fmt.Errorf("pods are left: %v", left)
			}
			return nil
		})
		i.checkCurves(t, "kept")
		install()
	})
}

// checkCurves reads the curves of trials that have succeeded where the manager, which
// does not run, has kept them.
func (i *instance) checkCurves(t *testing.T, experiment string) {
	t.Helper()
	s := i.openStore(t)
	defer func() { _ = s.Close() }()
	read := 0
	for _, trial := range i.trials(t, experiment) {
		if !trial.IsSucceeded() {
			continue
		}
		series, err := collector.ReadSeries(t.Context(), s, string(trial.UID), "loss")
		if err != nil || len(series) != 1 || len(series[0].Points) != killPoints {
			t.Errorf("trial %s has the curves %+v, %v", trial.Name, series, err)
		}
		read++
	}
	if read < 6 {
		t.Errorf("%d trials have succeeded, want 6 or more", read)
	}
}

// openStore opens the store of the cluster's manager, which is on a volume of this machine.
func (i *instance) openStore(t *testing.T) collector.Store {
	t.Helper()
	var claim corev1.PersistentVolumeClaim
	if err := i.client.Get(t.Context(), client.ObjectKey{Namespace: "vernier-system", Name: "vernier-store"}, &claim); err != nil {
		t.Fatal(err)
	}
	var volume corev1.PersistentVolume
	if err := i.client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(volume.Spec.HostPath.Path, "points.db"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestADeadManagerBlocksNoPods creates pods, a Job and a Deployment of a user's while
// nothing of Vernier runs. One of the pods is marked for our webhook.
func TestADeadManagerBlocksNoPods(t *testing.T) {
	i := cluster(t)
	i.scaleVernier(t, 0)
	meta := metav1.ObjectMeta{Namespace: "bystander", Name: "bystander"}
	if err := i.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = i.client.Delete(context.WithoutCancel(t.Context()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}})
	})
	program := func(restart corev1.RestartPolicy, words ...string) corev1.PodSpec {
		return corev1.PodSpec{
			RestartPolicy: restart, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: trialImage(), Command: words}},
		}
	}
	labels := map[string]string{"app": "bystander"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: program(corev1.RestartPolicyAlways, "sleep", "1000")}
	pod.Labels = map[string]string{trainer.LabelInject: trainer.InjectAtPod} // our webhook would be asked about it
	job := &batchv1.Job{ObjectMeta: meta}
	job.Spec.Template.Spec = program(corev1.RestartPolicyNever, "true")
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}
	for _, o := range []client.Object{pod, job, deployment} {
		eventually(t, 20*time.Second, func(ctx context.Context) error { // until the namespace has its service account
			if err := i.client.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		for _, o := range []client.Object{pod, job, deployment} {
			if err := i.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
		}
		if pod.Status.Phase != corev1.PodRunning || job.Status.Succeeded != 1 || deployment.Status.ReadyReplicas != 1 {
			return fmt.Errorf("the pod is %s, the job %+v, the deployment %+v", pod.Status.Phase, job.Status, deployment.Status)
		}
		return nil
	})
	if err := i.client.Create(t.Context(), broken(t, "unanswered", func(map[string]any) {})); err == nil {
		t.Error("an experiment was admitted: something of Vernier still runs")
	}
}

// scaleVernier gives Vernier's deployments so many replicas, and their own number when
// the test ends.
func (i *instance) scaleVernier(t *testing.T, replicas int32) {
	t.Helper()
	scale := func(ctx context.Context, name string, replicas int32) error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "vernier-system", Name: name}}
		return i.client.Patch(ctx, d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)))
	}
	var deployments appsv1.DeploymentList
	if err := i.client.List(t.Context(), &deployments, client.InNamespace("vernier-system")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		for _, d := range deployments.Items {
			if err := scale(ctx, d.Name, *d.Spec.Replicas); err != nil {
				t.Error(err)
			}
		}
		for i.client.Create(ctx, broken(t, "admitted", func(map[string]any) {}), client.DryRunAll) != nil && ctx.Err() == nil {
			<-time.After(200 * time.Millisecond)
		}
	})
	for _, d := range deployments.Items {
		if err := scale(t.Context(), d.Name, replicas); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, time.Minute, func(context.Context) error {
		if left := i.podsOfVernier(t); len(left) != int(replicas)*len(deployments.Items) {
			return fmt.Errorf("its pods are %v", left)
		}
		return nil
	})
}

// TestRemovedWithItsData removes Vernier as docs/install.md says, with its data: nothing
// of it is left.
func TestRemovedWithItsData(t *testing.T) {
	if clusterConfig() == "" {
		t.Skip("it needs a cluster: run make e2e-cluster")
	}
	remove := changeOf(t, "VERNIER_E2E_REMOVE")
	record(t, "cluster")
	i := &instance{home: filepath.Dir(clusterConfig()), kubeconfig: clusterConfig()}
	i.connect(t, clusterConfig())
	if err := i.client.Create(t.Context(), disruptedExperiment().object(t)); err != nil {
		t.Fatal(err)
	}
	i.awaitRunningPod(t, "")
	remove()
	kinds := "crd,clusterrole,clusterrolebinding,mutatingwebhookconfiguration,validatingwebhookconfiguration,namespace,apiservice"
	out, err := i.vernier("kubectl", "get", kinds, "-o", "name")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range strings.Fields(out) {
		if strings.Contains(name, "vernier") || strings.Contains(name, "kubeflow") {
			t.Errorf("%s is left", name)
		}
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := i.client.List(ctx, &pods, client.InNamespace("default"), client.HasLabels{v1beta1.LabelTrial}); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d pods of trials are left", n)
		}
		return nil
	})
}
