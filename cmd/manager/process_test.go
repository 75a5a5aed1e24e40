package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	admission "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/trainer"
)

// writeKubeconfig writes how to reach the tests' API server as an account.
func writeKubeconfig(t testing.TB, as rest.ImpersonationConfig) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "test",
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: apiServer.Host, CertificateAuthorityData: apiServer.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: apiServer.CertData, ClientKeyData: apiServer.KeyData, Impersonate: as.UserName, ImpersonateGroups: as.Groups,
		}},
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// installed is a manager in a process of its own, with the rights of an account.
type installed struct {
	*world
	health, webhook, metrics string
}

// startManager waits until it is ready.
func (w *world) startManager(as string, args ...string) installed {
	w.t.Helper()
	free := freeAddresses(w.t, 3)
	r := installed{world: w, health: free[0], webhook: free[1], metrics: free[2]}
	program, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.t.Context(), program, append([]string{
		"--kubeconfig=" + writeKubeconfig(w.t, account(as)), "--namespace=vernier-system", "--leader-elect",
		"--health-probe-bind-address=" + r.health, "--webhook-bind-address=" + r.webhook, "--metrics-bind-address=" + r.metrics,
	}, args...)...)
	// As with an API server that cannot stream lists.
	cmd.Env = append(os.Environ(), actVariable+"=1", "KUBE_FEATURE_WatchListClient=false")
	cmd.Stdout, cmd.Stderr = w.t.Output(), w.t.Output()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			w.t.Error("the manager:", err)
		}
	})
	w.eventually("it is ready", func() string { return answer(w.t, "http://"+r.health+"/readyz") })
	if problem := answer(w.t, "http://"+r.health+"/healthz"); problem != "" {
		w.t.Error("it is not healthy:", problem)
	}
	return r
}

// forgetIdentity lets the next manager make the Secret.
func (w *world) forgetIdentity() {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vernier-system", Name: secretName}}
	if err := client.IgnoreNotFound(w.client.Delete(w.t.Context(), secret)); err != nil {
		w.t.Fatal(err)
	}
}

// token is that of a service account with a role, or with none.
func (w *world) token(name, role string) string {
	w.t.Helper()
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.client.Create(w.t.Context(), reader); err != nil {
		w.t.Fatal(err)
	}
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}},
		}
		if err := w.client.Create(w.t.Context(), binding); err != nil {
			w.t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := w.client.SubResource("token").Create(w.t.Context(), reader, request); err != nil {
		w.t.Fatal(err)
	}
	return request.Status.Token
}

// readers are who may read the metrics, the profiles, or neither. The certificate is that
// of a Service.
func (r installed) readers(service string, profiles bool) {
	t := r.t
	t.Helper()
	secret := &corev1.Secret{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "vernier-system", Name: secretName}, secret); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data[caEntry])
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: service + ".vernier-system.svc"}}}
	get := func(path, token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.metrics+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	// Without --pprof there is nothing to ask for.
	heap := map[bool][2]int{true: {http.StatusOK, http.StatusForbidden}, false: {http.StatusNotFound, http.StatusNotFound}}
	nobody, prometheus, profiler := r.token("nobody", ""), r.token("prometheus", "vernier-metrics-reader"), r.token("profiler", "vernier-profiler")
	for _, tc := range []struct {
		who, path, token string
		want             int
	}{
		{"without a token", "/metrics", "", http.StatusUnauthorized},
		{"with a wrong token", "/metrics", "x", http.StatusInternalServerError}, // so controller-runtime answers
		{"without a role", "/metrics", nobody, http.StatusForbidden},
		{"who reads metrics", "/metrics", prometheus, http.StatusOK},
		{"who reads profiles", "/metrics", profiler, http.StatusForbidden},
		{"who reads profiles", "/debug/pprof/heap", profiler, heap[profiles][0]},
		{"who reads metrics", "/debug/pprof/heap", prometheus, heap[profiles][1]},
	} {
		if got := get(tc.path, tc.token); got != tc.want {
			t.Errorf("one %s gets %d for %s, want %d", tc.who, got, tc.path, tc.want)
		}
	}
}

func rightsOfAReplica(t *testing.T) {
	w := newWorld(t, never)
	w.actAsInstalled()
	w.installOperator()
	w.forgetIdentity()
	r := w.startManager("vernier-manager", "--operator", "--webhook-bind-address=0", "--katib-bind-address=0", "--report-bind-address=127.0.0.1:0",
		"--store=sqlite:"+filepath.Join(t.TempDir(), "points.db"), "--pprof")
	r.readers("vernier-manager", true)
	lists := right{account: "vernier-manager", verb: "list", group: "kubeflow.org", resource: "jobs"}
	w.eventually("it lists training jobs", func() string {
		return problemIf(!slices.ContainsFunc(authorizer.asked(), lists.covers), "nothing asked")
	})
}

// Admission needs no store.
func rightsOfAdmission(t *testing.T) {
	w := newWorld(t, never)
	install(t, w.client)
	w.bind("vernier-owners", "vernier-webhook")
	w.forgetIdentity()
	r := w.startManager("vernier-webhook", "--admission-only", "--store=sqlite:/proc/no/points.db")
	r.readers("vernier-webhook", false)
	e := w.experiment("exp", func(e *v1beta1.Experiment) { e.Spec.TrialTemplate.TrialSource = w.templateInConfigMap() })
	e.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "Experiment"}
	if problem := r.review(e); problem != "" {
		t.Error("the experiment is refused:", problem)
	}
	e.Spec.TrialTemplate.ConfigMap.TemplatePath = "other"
	if problem := r.review(e); !strings.Contains(problem, "templatePath") {
		t.Errorf("an entry that is not in the ConfigMap: %q", problem)
	}
	r.injects()
}

// injects lets the webhook find the trial of a pod by what controls it.
func (r installed) injects() {
	t := r.t
	t.Helper()
	tr := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "exp-0000", Labels: map[string]string{v1beta1.LabelExperiment: "exp"}}}
	tr.Spec.PrimaryContainerName = "node"
	tr.Spec.RunSpec = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}`)}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "exp-0000-node-0"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "node", Image: "train", Command: []string{"train"}}}}
	if err := r.client.Create(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tr, v1beta1.GroupVersion.WithKind("Trial"))}
	if err := r.client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "exp-0000-node-0-0"}, Spec: job.Spec.Template.Spec}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	answer := r.ask(trial.PodPath, pod, metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionResource{Version: "v1", Resource: "pods"})
	if !answer.Allowed || !strings.Contains(string(answer.Patch), trainer.SidecarLogger) {
		t.Errorf("the pod of the trial: %+v, patch %s", answer, answer.Patch)
	}
}

// review asks the webhook about an experiment, and returns why it is refused.
func (r installed) review(e *v1beta1.Experiment) string {
	r.t.Helper()
	answer := r.ask("/validate-kubeflow-org-v1beta1-experiment", e, metav1.GroupVersionKind{Group: "kubeflow.org", Version: "v1beta1", Kind: "Experiment"},
		metav1.GroupVersionResource{Group: "kubeflow.org", Version: "v1beta1", Resource: "experiments"})
	if answer.Allowed {
		return ""
	}
	return answer.Result.Message
}

// ask asks the webhook about an object that is to be created.
func (r installed) ask(path string, o client.Object, kind metav1.GroupVersionKind, resource metav1.GroupVersionResource) *admission.AdmissionResponse {
	t := r.t
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admission.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admission.AdmissionRequest{
			UID: "1", Operation: admission.Create, Name: o.GetName(), Namespace: r.namespace, Object: runtime.RawExtension{Raw: raw},
			Kind: kind, Resource: resource,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+r.webhook+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer admission.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Response == nil {
		t.Fatal(response.Status, err)
	}
	return answer.Response
}
