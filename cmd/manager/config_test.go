package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/pki"
)

// install applies what config/default renders, but no webhooks (they would
// refuse the other tests' experiments) and no definitions (they are there).
func install(t *testing.T, c client.Client) {
	t.Helper()
	for _, u := range manifests(t) {
		var opts []client.CreateOption
		switch u.GetKind() {
		case "CustomResourceDefinition":
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			opts = append(opts, client.DryRunAll)
		}
		if err := c.Create(t.Context(), u, opts...); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// manifests are what config/default renders, namespaces first, as kubectl does.
func manifests(t *testing.T) []*unstructured.Unstructured { return rendered(t, "default") }

// rendered is what a folder of config renders.
func rendered(t *testing.T, folder string) (objects []*unstructured.Unstructured) {
	t.Helper()
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionLegacy
	result, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "config", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Resources() {
		raw, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	return objects
}

func TestNoRoleHasAWildcard(t *testing.T) {
	roles := 0
	for _, u := range append(manifests(t), rendered(t, "operator")...) {
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

// The rights in config/rbac are all that the manager needs.
func TestRightsSuffice(t *testing.T) {
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

// With these rights the manager says why a job has no pods, sees whether Katib is
// installed, and lets go what an uninstalled Katib has left behind.
func TestRightsSufficeOnAClusterThatHadKatib(t *testing.T) {
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
	// No controller aggregates roles here.
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-kinds"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vernier-kind-job"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "vernier-system", Name: "vernier-manager"}},
	}
	if err := client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), binding)); err != nil {
		w.t.Fatal(err)
	}
	w.as = account("vernier-manager")
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

func TestIdentityInSecret(t *testing.T) {
	w := newWorld(t, never)
	o := options{namespace: w.namespace, reportURL: "https://here:1", webhookAddress: ":8443"}
	first, err := loadIdentity(t.Context(), w.client, o, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadIdentity(t.Context(), w.client, o, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.reportKey) != string(second.reportKey) || string(first.ca) != string(second.ca) {
		t.Error("a second start has another key or authority")
	}
	cert, err := second.certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.ca)
	for _, host := range []string{"vernier-manager." + w.namespace + ".svc", "vernier-webhook." + w.namespace + ".svc"} {
		if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	secret := &corev1.Secret{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: secretName}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data[keyEntry] = []byte("short")
	if err := w.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(t.Context(), w.client, o, time.Now); err == nil || !strings.Contains(err.Error(), "delete the secret") {
		t.Errorf("a short key: %v", err)
	}
}

func TestCertificateIsRenewed(t *testing.T) {
	now := time.Now()
	ca, key, err := pki.NewAuthority("vernier", now, caValidity)
	if err != nil {
		t.Fatal(err)
	}
	clock := now
	issued := 0
	get := renewed(func() (*tls.Certificate, error) {
		issued++
		return leaf(ca, key, "ns", clock)
	}, func() time.Time { return clock })
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {leafValidity / 3, 1}, {leafValidity * 3 / 4, 2}} {
		clock = now.Add(step.after)
		if _, err := get(nil); err != nil {
			t.Fatal(err)
		}
		if issued != step.want {
			t.Errorf("after %s %d certificates were made, want %d", step.after, issued, step.want)
		}
	}
}

func TestKeyInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "report.key")
	first, err := keyFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := keyFromFile(path)
	if err != nil || string(first) != string(second) || len(first) != keySize {
		t.Errorf("the key is not kept: %x %x %v", first, second, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keyFromFile(path); err == nil {
		t.Error("a short key is taken")
	}
}

// The webhook's authority is written into both configurations, with the rights of the
// webhook's account.
func TestAnnounce(t *testing.T) {
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
