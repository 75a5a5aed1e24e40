package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/go-logr/logr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/tracing"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/operator"
)

// The API server of all tests in this package; nil when there is none.
var apiServer *rest.Config

const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv(actVariable) != "" {
		main()
		return 0
	}
	log.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run() // each test that needs a server says so
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	dir, err := os.MkdirTemp("", "vernier-authorizer")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = authorizer.listen(env, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "set up the authorizer:", err)
		return 1
	}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)
		return 1
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	apiServer = cfg
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
	}
	return code
}

// world is a namespace of the API server, a store, and a simulation of what
// runs jobs there.
type world struct {
	t         testing.TB
	client    client.Client
	namespace string
	store     collector.Store
	traces    tracing.Tracer
	registry  *prometheus.Registry
	// operator has the manager run jobs of the training operator's kinds.
	operator bool
	// as is the user that the manager acts as; empty means an admin.
	as rest.ImpersonationConfig
	// serviceAccount is one of vernier-system that the manager is, by a token of its own,
	// which may impersonate others; empty: see as.
	serviceAccount string
	// access are the options about who may call the API.
	access access
	// basePath is where browsers find the dashboard.
	basePath string
	// alerts are the options about alerts.
	alerts alerts
	// wrap sees the requests of the manager; nil: nothing does.
	wrap func(http.RoundTripper) http.RoundTripper
	// katib knows whether Katib is installed; nil: it is not.
	katib *katib.Presence
	// entrypoint says what an image runs; nil: that is not known.
	entrypoint func(context.Context, trainer.Image) (entrypoint, command []string, err error)
	// dial connects to the services of algorithms.
	dial func(ctx context.Context, namespace, service string, port int) (net.Conn, error)

	mu sync.Mutex
	// run says what the job of a trial does.
	run    func(name string) ending
	peak   int
	trials *trial.Controller
	// api is the URL of the programmatic API of the manager that was started last, and
	// apiToken the file with its token; empty: the API server knows its users.
	api, apiToken string
}

// ending is what a job does.
type ending struct {
	// never: it does not end.
	never bool
	// failed: it fails with this message.
	failed string
	// silent: the collector says nothing at all.
	silent bool
	// points are reported, one step each, under the metric loss.
	points []float64
	// other is reported under this name.
	other string
	// beside are reported, one value each, under their names.
	beside map[string]float64
}

func newWorld(t testing.TB, run func(name string) ending) *world {
	t.Helper()
	if apiServer == nil {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run the tests with make test")
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(apiServer, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, run: run, namespace: newNamespace(t, c)}
	if w.store, err = store.Open(t.Context(), "memory:"); err != nil {
		t.Fatal(err)
	}
	w.simulate(w.namespace)
	return w
}

func newNamespace(t testing.TB, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The next test's manager finds nothing left to do.
		for _, o := range []client.Object{&v1beta1.Experiment{}, &v1beta1.Trial{}, &batchv1.Job{}} {
			_ = c.DeleteAllOf(context.Background(), o, client.InNamespace(ns.Name), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	})
	return ns.Name
}

// start runs a manager until the test ends or stop is called.
func (w *world) start(change ...func(*manager.Options)) (stop func()) {
	w.t.Helper()
	scheme, err := newScheme()
	if err != nil {
		w.t.Fatal(err)
	}
	mo, err := managerOptions(scheme, options{metricsAddress: "0", healthAddress: "0"}, identity{})
	if err != nil {
		w.t.Fatal(err)
	}
	mo.Controller.SkipNameValidation = ptr.To(true)
	for _, f := range change {
		f(&mo)
	}
	cfg := rest.CopyConfig(apiServer)
	if w.serviceAccount != "" {
		cfg = rest.AnonymousClientConfig(cfg)
		cfg.BearerToken = w.tokenOf("vernier-system", w.serviceAccount)
	}
	cfg.Impersonate, cfg.WrapTransport = w.as, w.wrap
	mgr, err := manager.New(cfg, mo)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.katib != nil {
		if err := mgr.Add(w.katib); err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	w.registry = prometheus.NewRegistry()
	running, err := addControllers(ctx, mgr, wiring{
		store: w.store, metrics: metrics.Options{Registry: w.registry, Katib: true, Experiments: 10}, now: time.Now, traces: w.traces, dial: w.dial, alerts: w.alerts,
		rules: webhook.Rules{Reader: mgr.GetAPIReader(), Katib: w.katib, Entrypoints: w.entrypoint != nil},
		reporting: trial.Reporting{
			Image: "collector", URL: "http://127.0.0.1:1",
			Token:      func(id collector.TrialID) (string, error) { return "token-of-" + id.UID, nil },
			Entrypoint: w.entrypoint,
		},
	})
	if err == nil && w.operator {
		err = operator.Register(ctx, mgr, "kubectl", time.Now)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	served := w.serve(ctx, mgr, running)
	done := make(chan error, 1)
	syncing, ended := context.WithCancel(ctx)
	go func() {
		done <- mgr.Start(ctx)
		ended()
	}()
	if !mgr.GetCache().WaitForCacheSync(syncing) { // until then the API answers Unavailable
		w.t.Fatal("the manager ended before its cache was filled:", <-done)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-served; err != nil {
				w.t.Error("the API:", err)
			}
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				w.t.Error("the manager:", err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// serve serves the API of a manager until ctx ends; how that ended comes through served.
func (w *world) serve(ctx context.Context, mgr manager.Manager, running controllers) (served chan error) {
	w.t.Helper()
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	if _, _, err := mountAPI(ctx, mux, mgr, options{apiTokenFile: w.apiToken, access: w.access, basePath: cmp.Or(w.basePath, "/")}, direct, w.store, running); err != nil {
		w.t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	served = make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener, mux, nil) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trials, w.api = running.trials, "http://"+listener.Addr().String()
	return served
}

// simulate ends jobs as the Job controller and the collectors would.
func (w *world) simulate(namespace string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.endJobs(ctx, namespace)
			}
		}
	}()
}

func (w *world) endJobs(ctx context.Context, namespace string) {
	var jobs batchv1.JobList
	if err := w.client.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return
	}
	active := 0
	for i := range jobs.Items {
		if len(jobs.Items[i].Status.Conditions) == 0 && jobs.Items[i].DeletionTimestamp == nil {
			active++
		}
	}
	w.mu.Lock()
	w.peak = max(w.peak, active)
	run := w.run
	w.mu.Unlock()
	for i := range jobs.Items {
		if j := &jobs.Items[i]; len(j.Status.Conditions) == 0 && j.DeletionTimestamp == nil {
			if e := run(j.Name); !e.never {
				w.end(ctx, j, e)
			}
		}
	}
}

func (w *world) end(ctx context.Context, j *batchv1.Job, e ending) {
	owner := metav1.GetControllerOf(j)
	if owner == nil {
		return
	}
	id := collector.TrialID{Namespace: j.Namespace, Name: owner.Name, UID: string(owner.UID)}
	if !e.silent {
		w.report(ctx, id, string(j.UID), e)
	}
	now := metav1.Now()
	condition := func(kind batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: now}
	}
	j.Status.StartTime = &j.CreationTimestamp
	if e.failed != "" {
		j.Status.Failed = 1
		j.Status.Conditions = []batchv1.JobCondition{
			condition(batchv1.JobFailureTarget, "BackoffLimitExceeded", e.failed),
			condition(batchv1.JobFailed, "BackoffLimitExceeded", e.failed),
		}
	} else {
		j.Status.Succeeded, j.Status.CompletionTime = 1, &now
		j.Status.Conditions = []batchv1.JobCondition{
			condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached", ""),
			condition(batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods"),
		}
	}
	if err := w.client.Status().Update(ctx, j); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		w.t.Logf("end job %s: %v", j.Name, err)
	}
}

// behave changes what jobs do from now on.
func (w *world) behave(run func(name string) ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run = run
}

// eventually waits until check returns "".
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within %s: %s", what, patience, problem)
		}
		<-tick.C
	}
}
