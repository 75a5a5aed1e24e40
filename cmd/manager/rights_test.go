package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/pki"
)

func TestNoRoleHasAWildcard(t *testing.T) {
	roles := 0
	for _, u := range append(append(manifests(t), rendered(t, "operator")...), optional(t)...) {
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		roles++
		rules, _, err := unstructured.NestedSlice(u.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			for field, values := range rule.(map[string]any) {
				if slices.Contains(values.([]any), any("*")) {
					t.Errorf("%s %s has a wildcard in %s", u.GetKind(), u.GetName(), field)
				}
			}
		}
	}
	if roles < 8 {
		t.Errorf("%d roles were read, want all", roles)
	}
}

// The rights in config/rbac are all that the manager and its admission need, and no more
// than they use: the API server is asked for each of them.
func TestRights(t *testing.T) {
	for name, uses := range map[string]func(*testing.T){
		"an experiment":            rightsOfAnExperiment,
		"a cluster that had Katib": rightsOnAClusterThatHadKatib,
		"names that are taken":     rightsWhereNamesAreTaken,
		"jobs that go":             rightsWhereJobsGo,
		"an algorithm's service":   TestAnAlgorithmsService,
		"training jobs":            TestOperatorRunsAJobWithTheRightsOfItsRole,
		"gangs":                    TestOperatorMakesPodGroups,
		"names of pods":            TestOperatorSaysWhyThereAreNoPods,
		"an MPIJob":                rightsOfAnMPIJob,
		"the webhook's authority":  rightsToAnnounce,
		"callers of the API":       rightsOfCallers,
		"users from elsewhere":     rightsOfUsersFromElsewhere,
		"alerts":                   rightsOfAlerts,
		"admission":                rightsOfAdmission,
		"the manager's process":    rightsOfAReplica,
	} {
		t.Run(name, uses)
	}
	if t.Failed() {
		return
	}
	asked := authorizer.asked()
	for _, g := range granted(t) {
		if !slices.ContainsFunc(asked, g.covers) {
			t.Errorf("nothing uses %+v: take it away, or let this test use it", g)
		}
	}
}

func rightsOfAnExperiment(t *testing.T) {
	w := newWorld(t, func(name string) ending {
		if name == "exp-0000" {
			return ending{points: []float64{0}}
		}
		return ending{never: true}
	})
	w.actAsInstalled()
	w.start()
	goal := 0.5
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.Objective.Goal, e.Spec.ResumePolicy = &goal, v1beta1.FromVolume
		e.Spec.TrialTemplate.TrialSource = w.templateInConfigMap()
	})
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentGoalReached)
	w.noJobs()
	w.eventually("the suggestion is written", func() string {
		var s v1beta1.Suggestion
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), &s); err != nil {
			return err.Error()
		}
		if !s.IsSucceeded() {
			return "it has not ended"
		}
		return ""
	})
	var claim corev1.PersistentVolumeClaim
	key := client.ObjectKey{Namespace: e.Namespace, Name: "exp-" + e.Spec.Algorithm.AlgorithmName}
	if err := w.client.Get(t.Context(), key, &claim); err != nil || !metav1.IsControlledBy(&claim, e) {
		t.Errorf("the volume claim of the suggestion: %v, %+v", err, claim.OwnerReferences)
	}
}

func rightsWhereNamesAreTaken(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.actAsInstalled()
	w.start()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "job-0000"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "trial-0000"}}
	for _, o := range []client.Object{job, trial} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"job":   v1beta1.ReasonExperimentMaxTrialsReached, // the first trial fails
		"trial": v1beta1.ReasonExperimentFailed,
	} {
		e := w.experiment(name)
		w.create(e)
		w.ends(e, want)
	}
}

// A job that goes again and again is made again, and the event is counted.
func rightsWhereJobsGo(t *testing.T) {
	w := newWorld(t, never)
	w.actAsInstalled()
	w.start()
	w.create(w.experiment("exp", budget(1)))
	var gone types.UID
	for range 3 {
		job := &batchv1.Job{}
		w.eventually("there is a job", func() string {
			err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, job)
			if err == nil && job.UID == gone {
				return "it is the one that was deleted"
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
		gone = job.UID
		if err := w.client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the event is counted", func() string {
		var list corev1.EventList
		if err := w.client.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			if e.Reason == "JobRecreated" && e.Series != nil {
				return ""
			}
		}
		return fmt.Sprintf("%d events, none is a series", len(list.Items))
	})
}

// With these rights the manager says why a job has no pods, sees whether Katib is
// installed, and lets go what an uninstalled Katib has left behind.
func rightsOnAClusterThatHadKatib(t *testing.T) {
	w := newWorld(t, never)
	w.actAsInstalled()
	w.start()
	e := w.experiment("exp", budget(1), func(e *v1beta1.Experiment) { e.Finalizers = []string{"update-prometheus-metrics"} })
	w.create(e)
	refused := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: w.namespace, Name: "refused"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: w.namespace, Name: "exp-0000"},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", Message: `Error creating: pods "exp-0000-x7k2p" is forbidden: exceeded quota: small`,
		LastTimestamp: metav1.NewTime(time.Now().Add(time.Minute)),
	}
	if err := w.client.Create(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	w.eventually("the trial says why its job has no pods", func() string {
		trials := w.trialsOf(e)
		if len(trials) == 0 {
			return "no trial"
		}
		if c := trials[0].LastCondition(); c == nil || !strings.Contains(c.Message, "Its job has no pods since ") || !strings.Contains(c.Message, "because a pod is forbidden: exceeded quota: small") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	cfg := rest.CopyConfig(apiServer)
	cfg.Impersonate = w.as
	c, err := client.New(cfg, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := katib.Look(t.Context(), c); err != nil || p.Installed() {
		t.Errorf("Katib is installed: %v, %v", p.Installed(), err)
	}
	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.eventually("the experiment goes", func() string {
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), &v1beta1.Experiment{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint("it is there: ", err)
	})
}

// actAsInstalled lets the manager do what the rights in config/rbac allow.
func (w *world) actAsInstalled() {
	w.t.Helper()
	install(w.t, w.client)
	w.bind("vernier-kind-job", "vernier-manager")
	w.as = account("vernier-manager")
}

// bind gives a role to an account that has it by aggregation: no controller aggregates
// roles here.
func (w *world) bind(role, account string) {
	w.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "vernier-system", Name: account}},
	}
	if err := client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), binding)); err != nil {
		w.t.Fatal(err)
	}
}

// account is one of the service accounts in config/rbac.
func account(name string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:vernier-system:" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:vernier-system", "system:authenticated"},
	}
}

// A kind that the manager may not read holds up its own trials only, and they
// say what is missing.
func TestKindWithoutRightsWaits(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.actAsInstalled()
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.ParallelTrialCount, e.Spec.MaxTrialCount = ptr.To[int32](20), ptr.To[int32](20)
		e.Spec.TrialTemplate.SuccessCondition = `status.ok`
		e.Spec.TrialTemplate.FailureCondition = `status.bad`
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.Replace(strings.Replace(jobTemplate, `"batch/v1"`, `"apps/v1"`, 1), `"Job"`, `"StatefulSet"`, 1))
	})
	w.create(e)
	w.eventually("all trials say what is missing", func() string {
		trials := w.trialsOf(e)
		for _, tr := range trials {
			if c := tr.LastCondition(); c == nil || !strings.Contains(c.Message, "vernier.ml/aggregate-to-manager") {
				return fmt.Sprintf("%s: %+v", tr.Name, c)
			}
		}
		if len(trials) < 20 {
			return fmt.Sprintf("%d trials", len(trials))
		}
		return ""
	})
	other := w.experiment("other")
	w.create(other)
	w.ends(other, v1beta1.ReasonExperimentMaxTrialsReached)
}

// The webhook's authority is written into both configurations, with the rights of the
// webhook's account.
func rightsToAnnounce(t *testing.T) {
	w := newWorld(t, never)
	install(t, w.client)
	cfg := rest.CopyConfig(apiServer)
	cfg.Impersonate = account("vernier-webhook")
	webhooks, err := client.New(cfg, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	url := "https://127.0.0.1:1/x"
	none := admissionv1.SideEffectClassNone
	ignore := admissionv1.Ignore
	// They select nothing, so that other tests do not meet them.
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"nobody": "has-this"}}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{"kubeflow.org"}, APIVersions: []string{"v1beta1"}, Resources: []string{"experiments"}},
	}}
	mutating := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookConfiguration},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "a.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &ignore,
			ObjectSelector: selector, Rules: rules, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
		}},
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookConfiguration},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "a.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &ignore,
			ObjectSelector: selector, Rules: rules, ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
		}},
	}
	for _, o := range []client.Object{mutating, validating} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	ca, _, err := pki.NewAuthority("vernier", time.Now(), caValidity)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := announce(t.Context(), webhooks, ca); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{mutating, validating} {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	if string(mutating.Webhooks[0].ClientConfig.CABundle) != string(ca) || string(validating.Webhooks[0].ClientConfig.CABundle) != string(ca) {
		t.Error("the authority is not announced")
	}
	if mutating.Generation > 2 || validating.Generation > 2 {
		t.Errorf("written again although nothing changed: generations %d, %d", mutating.Generation, validating.Generation)
	}
}
