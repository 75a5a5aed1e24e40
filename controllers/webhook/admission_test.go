package webhook_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

// warnings keeps what the API server warned of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text
	w.text = nil
	return text
}

// admitted is a client of a real API server with our CRDs and admission.
func admitted(t *testing.T) (client.Client, *warnings) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run the tests with `make test`, which builds the API server")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env := &envtest.Environment{
		Scheme:                scheme,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			Paths: []string{filepath.Join("..", "..", "config", "webhook", "manifests.yaml")},
		},
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	serve(t, config, scheme, env.WebhookInstallOptions)
	heard := &warnings{}
	config.WarningHandlerWithContext = heard
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, heard
}

// serve runs our admission until the test ends, and waits until it listens.
func serve(t *testing.T, config *rest.Config, scheme *runtime.Scheme, o envtest.WebhookInstallOptions) {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (webhook.Rules{Reader: mgr.GetAPIReader()}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	waitFor(t, func() error {
		conn, err := net.Dial("tcp", net.JoinHostPort(o.LocalServingHost, strconv.Itoa(o.LocalServingPort)))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// waitFor polls until try succeeds, or half a minute has passed.
func waitFor(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// fresh is an example under another name in the default namespace.
func fresh(t *testing.T, from, name string) *v1beta1.Experiment {
	t.Helper()
	exp := example(t, from)
	exp.Namespace, exp.Name = "default", name
	return exp
}

func TestAdmission(t *testing.T) {
	c, heard := admitted(t)
	t.Run("a good experiment gets its defaults", func(t *testing.T) { testDefaults(t, c, heard) })
	t.Run("all faults come back at once and nothing is left behind", func(t *testing.T) { testFaults(t, c) })
	t.Run("a doubtful experiment is created with a warning", func(t *testing.T) { testWarning(t, c, heard) })
	t.Run("updates", func(t *testing.T) { testUpdates(t, c) })
	t.Run("a template from a ConfigMap", func(t *testing.T) { testConfigMap(t, c) })
}

func testDefaults(t *testing.T, c client.Client, heard *warnings) {
	ctx := t.Context()
	exp := fresh(t, "random", "good")
	exp.Spec.Algorithm, exp.Spec.ParallelTrialCount = nil, nil
	if err := c.Create(ctx, exp); err != nil {
		t.Fatal(err)
	}
	got := &v1beta1.Experiment{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(exp), got); err != nil {
		t.Fatal(err)
	}
	s := got.Spec
	if s.Algorithm.AlgorithmName != "auto" || *s.ParallelTrialCount != 3 || s.ResumePolicy != "Never" ||
		s.TrialTemplate.SuccessCondition == "" || s.MetricsCollectorSpec.Collector.Kind != "StdOut" {
		t.Errorf("defaults are missing: %+v", s)
	}
	if w := heard.take(); len(w) > 0 {
		t.Errorf("warnings %q", w)
	}
}

func testFaults(t *testing.T, c client.Client) {
	ctx := t.Context()
	exp := fresh(t, "random", "bad")
	exp.Spec.Algorithm.AlgorithmName = "rnadom"
	exp.Spec.Parameters[0].FeasibleSpace.Min = "1"
	exp.Spec.TrialTemplate.PrimaryContainerName = "main"
	err := c.Create(ctx, exp)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("error %v, want that it is invalid", err)
	}
	var fields []string
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	want := []string{
		"spec.algorithm.algorithmName", "spec.parameters[0].feasibleSpace.min",
		"spec.trialTemplate.trialSpec.spec.template.spec.containers",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("fields %q, want %q: %v", fields, want, err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(exp), exp); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that it does not exist", err)
	}
}

func testWarning(t *testing.T, c client.Client, heard *warnings) {
	ctx := t.Context()
	heard.take()
	exp := fresh(t, "random", "doubtful")
	exp.Spec.MaxFailedTrialCount = ptr(int32(100))
	if err := c.Create(ctx, exp); err != nil {
		t.Fatal(err)
	}
	if w := heard.take(); len(w) != 1 || !strings.Contains(w[0], "spec.maxFailedTrialCount: 100 is above maxTrialCount") {
		t.Errorf("warnings %q", w)
	}
}

func testUpdates(t *testing.T, c client.Client) {
	ctx := t.Context()
	exp := fresh(t, "random", "updated")
	if err := c.Create(ctx, exp); err != nil {
		t.Fatal(err)
	}
	exp.Spec.MaxTrialCount = ptr(int32(30))
	if err := c.Update(ctx, exp); err != nil {
		t.Errorf("maxTrialCount may be raised: %v", err)
	}
	exp.Spec.Objective.ObjectiveMetricName = "other"
	if err := c.Update(ctx, exp); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.objective: Forbidden") {
		t.Errorf("error %v, want that the objective cannot be changed", err)
	}
}

func testConfigMap(t *testing.T, c client.Client) {
	ctx := t.Context()
	exp := fresh(t, "configmap-template", "from-configmap")
	exp.Spec.TrialTemplate.ConfigMap.ConfigMapNamespace = ""
	err := c.Create(ctx, exp)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.trialTemplate.configMap.configMapName: Not found") {
		t.Fatalf("error %v, want that the ConfigMap does not exist", err)
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "trial-templates"},
		Data:       map[string]string{"other": configMapTemplate},
	}
	if err := c.Create(ctx, cm); err != nil {
		t.Fatal(err)
	}
	err = c.Create(ctx, exp)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.trialTemplate.configMap.templatePath: Not found") {
		t.Fatalf("error %v, want that the entry does not exist", err)
	}
	cm.Data = map[string]string{"defaultTrialTemplate.yaml": strings.ReplaceAll(configMapTemplate, "  parallelism: ${trialParameters.workers}\n", "")}
	if err := c.Update(ctx, cm); err != nil {
		t.Fatal(err)
	}
	exp.ResourceVersion = ""
	if err := c.Create(ctx, exp); err != nil {
		t.Fatal(err)
	}
	tt := exp.Spec.TrialTemplate
	if tt.ConfigMap.ConfigMapNamespace != "default" || !strings.Contains(tt.SuccessCondition, "Complete") {
		t.Errorf("the template has no defaults: %+v", tt)
	}
	again := fresh(t, "configmap-template", "from-configmap")
	again.Spec.TrialTemplate.ConfigMap.ConfigMapNamespace = ""
	if same, err := webhook.SameSpec(again, exp); !same || err != nil {
		t.Errorf("the spec that was created is another one: %v", err)
	}
	again.ResourceVersion = exp.ResourceVersion
	again.Spec.MaxTrialCount = ptr(int32(30))
	if err := c.Update(ctx, again); err != nil {
		t.Errorf("its manifest with more trials is refused: %v", err)
	}
	if again.Spec.TrialTemplate.SuccessCondition != tt.SuccessCondition {
		t.Errorf("the template has lost its defaults: %+v", again.Spec.TrialTemplate)
	}
}
