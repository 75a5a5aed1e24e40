package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/restore"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/trainer/operator"
)

const (
	// A tuner writes in bursts; client-go's default of 5 requests a second
	// would be its speed limit.
	clientQPS   = 500
	clientBurst = 1000
	// drain is how long running reconciles and calls may take to end.
	drain = 5 * time.Second
	// linger is how long admission is still served after SIGTERM: the nodes learn later
	// than the pod that its Service has one endpoint less.
	linger = 5 * time.Second
)

// run runs the manager until ctx ends.
func run(ctx context.Context, o options) (err error) {
	cfg, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	id, err := loadIdentity(ctx, direct, o, time.Now)
	if err != nil {
		return err
	}
	mo, err := managerOptions(scheme, o, id)
	if err != nil {
		return err
	}
	mgr, err := manager.New(cfg, mo)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	present, err := addKatibsPresence(ctx, mgr, o, direct)
	if err != nil {
		return err
	}
	rules := webhook.Rules{Reader: mgr.GetAPIReader(), Binary: o.collectorBinary, Commands: o.commands, Entrypoints: o.resolvesImages(), Katib: present}
	if err := addWebhooks(mgr, o, id, direct, rules); err != nil {
		return err
	}
	if err := addProbes(mgr, o); err != nil {
		return err
	}
	if !o.admissionOnly {
		points, failure := openStore(ctx, o)
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, points.Close()) }()
		if err := addMain(ctx, mgr, o, id, direct, points, rules); err != nil {
			return err
		}
	}
	registerMetrics(metrics.Registry, o, id)
	if o.admissionOnly {
		ctx = endLater(ctx, linger)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// endLater is a context that ends some time after ctx.
func endLater(ctx context.Context, by time.Duration) context.Context {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return later
}

// addMain adds all but the admission webhook: the controllers, the API, the report
// service and Katib's.
func addMain(ctx context.Context, mgr manager.Manager, o options, id identity, direct client.Client, points collector.Store, rules webhook.Rules) error {
	traces, err := openTraces(ctx, mgr, os.Getenv)
	if err != nil {
		return err
	}
	running, err := addControllers(ctx, mgr, wiring{
		store: points, retention: o.retention, metrics: o.metrics(metrics.Registry),
		reporting: reporting(o, id, direct), rules: rules, limits: o.limits, together: o.embedded, traces: traces, dial: dialer(o, mgr), now: time.Now,
		alerts: o.alerts,
	})
	if err != nil {
		return err
	}
	if o.operator {
		if err := operator.Register(ctx, mgr, o.kubectl, time.Now); err != nil {
			return err
		}
	}
	reported := trial.OnlyReporters(points, mgr.GetClient())
	mux := http.NewServeMux()
	onPoints, onUsage, err := mountAPI(ctx, mux, mgr, o, direct, points, running)
	if err != nil {
		return err
	}
	listening, err := addReportService(ctx, mgr, o, id, mux, server.ReportConfig{
		Store: reported, Keys: func() [][]byte { return [][]byte{id.reportKey} },
		OnPoints: onPoints, OnUsage: onUsage, Metrics: metrics.Registry, Traces: traces,
	})
	if err != nil {
		return err
	}
	if err := addKatib(ctx, mgr, o, reported, onPoints); err != nil {
		return err
	}
	return addReadiness(mgr, listening)
}

func openStore(ctx context.Context, o options) (*server.LimitedStore, error) {
	points, err := store.Open(ctx, o.store)
	if err != nil {
		return nil, err
	}
	measured, err := server.MeasureStore(points, metrics.Registry)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register metrics: %w", err), points.Close())
	}
	limited, err := server.LimitStore(measured, o.quota, metrics.Registry)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register metrics: %w", err), points.Close())
	}
	return limited, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	var cfg *rest.Config
	var err error
	if kubeconfig == "" {
		cfg, err = rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New("this is not a pod: give --kubeconfig")
		}
	} else {
		cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.UserAgent = "vernier-manager/" + version
	return cfg, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, admissionv1.AddToScheme, metav1.AddMetaToScheme, v1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

func managerOptions(scheme *runtime.Scheme, o options, id identity) (manager.Options, error) {
	cached, err := cacheOptions()
	if err != nil {
		return manager.Options{}, err
	}
	webhooks, err := webhookServer(o, id)
	if err != nil {
		return manager.Options{}, err
	}
	return manager.Options{
		Scheme: scheme,
		Cache:  cached,
		// Jobs are read as they are, whatever their kind, and from the cache.
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                       metricsOptions(o, id),
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect && !o.admissionOnly,
		LeaderElectionID:              restore.ManagerLease,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(drain),
		Controller:                    config.Controller{RecoverPanic: ptr.To(true)},
		WebhookServer:                 webhooks,
	}, nil
}

// cacheOptions keep only what concerns trials: pods and jobs of any kind carry
// the trial's label.
func cacheOptions() (cache.Options, error) {
	ofTrials, err := labels.NewRequirement(v1beta1.LabelTrial, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select by label %s: %w", v1beta1.LabelTrial, err)
	}
	all := cache.ByObject{Label: labels.Everything()}
	return cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*ofTrials),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.Experiment{}: all,
			&v1beta1.Trial{}:      {Label: labels.Everything(), Transform: slimTrial},
			&v1beta1.Suggestion{}: all,
			&corev1.Namespace{}:   all, // their metadata only
		},
	}, nil
}

// slimTrial leaves of the job of a trial that has ended its kind only: it is not made
// again, and with a script in its arguments it is most of what a trial takes. (A write
// of the status does not change the spec.)
func slimTrial(o any) (any, error) {
	t, ok := o.(*v1beta1.Trial)
	if !ok {
		return o, nil
	}
	t.ManagedFields = nil
	if t.Spec.RunSpec == nil || !t.IsCompleted() {
		return t, nil
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(t.Spec.RunSpec.Raw, &head); err != nil {
		return t, nil //nolint:nilerr // the trial controller says what is wrong with it
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("shorten the job of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	t.Spec.RunSpec = &runtime.RawExtension{Raw: raw}
	return t, nil
}

// addReportService adds the report service to what is served on its port. The result
// says whether it listens.
func addReportService(ctx context.Context, mgr manager.Manager, o options, id identity, mux *http.ServeMux, cfg server.ReportConfig) (*atomic.Bool, error) {
	path, handler, err := server.NewReportHandler(cfg)
	if err != nil {
		return nil, err
	}
	mux.Handle(path, handler)
	var tlsConfig *tls.Config
	if o.reportTLS() {
		tlsConfig = &tls.Config{GetCertificate: id.certificate, MinVersion: tls.VersionTLS12}
		o.access.askCertificates(tlsConfig)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.reportAddress)
	if err != nil {
		return nil, fmt.Errorf("listen for reports on %s: %w", o.reportAddress, err)
	}
	listening := new(atomic.Bool)
	return listening, mgr.Add(everyReplica(func(ctx context.Context) error {
		listening.Store(true)
		defer listening.Store(false)
		return server.Serve(ctx, listener, mux, tlsConfig)
	}))
}

// everyReplica runs on each manager, and not on the leader alone: a manager that
// stands by serves admission and takes reports.
type everyReplica func(context.Context) error

func (f everyReplica) Start(ctx context.Context) error { return f(ctx) }

func (everyReplica) NeedLeaderElection() bool { return false }

// addProbes adds /healthz and /readyz. Ready is a manager whose webhook answers.
func addProbes(mgr manager.Manager, o options) error {
	err := mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil })
	if err == nil && o.webhookAddress != "" {
		err = mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker())
	}
	if err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	return nil
}

// addReadiness makes a manager ready only once its caches are filled and it takes
// reports.
func addReadiness(mgr manager.Manager, listening *atomic.Bool) error {
	synced := new(atomic.Bool)
	if err := mgr.Add(everyReplica(func(ctx context.Context) error {
		synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	})); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	err := mgr.AddReadyzCheck("controllers", func(*http.Request) error {
		switch {
		case !synced.Load():
			return errors.New("the caches are not filled yet")
		case !listening.Load():
			return errors.New("the report service does not listen yet")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	return nil
}
