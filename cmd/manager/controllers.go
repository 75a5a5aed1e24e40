package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/entrypoint"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/controllers/index"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/suggestion"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/tracing"
)

// tokenValidity is how long a trial can report. It bounds what a stolen token is
// worth; a trial may run for weeks.
const tokenValidity = 60 * 24 * time.Hour

type wiring struct {
	store     collector.Store
	retention store.Retention
	metrics   metrics.Options
	reporting trial.Reporting
	rules     webhook.Rules
	limits    trial.Limits
	together  bool
	traces    tracing.Tracer
	// dial connects to an algorithm's service; nil: by its name.
	dial   func(ctx context.Context, namespace, service string, port int) (net.Conn, error)
	now    func() time.Time
	alerts alerts
}

// controllers are those that services use.
type controllers struct {
	experiments *experiment.Controller
	trials      *trial.Controller
	index       *index.Trials
}

func addControllers(ctx context.Context, mgr manager.Manager, w wiring) (controllers, error) {
	trialsOf, err := index.Follow(ctx, mgr.GetCache())
	if err != nil {
		return controllers{}, err
	}
	experiments := experiment.New(experiment.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder("experiment-controller"), Metrics: experiment.NewMetrics(w.metrics, mgr.GetCache(), w.now), Now: w.now,
		Rules: w.rules, Scan: w.store.Scan, Katib: w.rules.Katib, Traces: w.traces,
		Version: version + " " + runtime.GOARCH,
	})
	if err := experiments.Register(mgr, trialsOf); err != nil {
		return controllers{}, fmt.Errorf("set up the experiment controller: %w", err)
	}
	trials := trial.New(trial.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Cache: mgr.GetCache(), Mapper: mgr.GetRESTMapper(),
		Recorder: mgr.GetEventRecorder("trial-controller"), Metrics: trial.NewMetrics(w.metrics, mgr.GetCache()),
		Store: w.store, Retention: w.retention, Reporting: w.reporting, Limits: w.limits, Katib: w.rules.Katib, Traces: w.traces, Now: w.now,
		Together: w.together,
	})
	if err := trials.Register(ctx, mgr); err != nil {
		return controllers{}, fmt.Errorf("set up the trial controller: %w", err)
	}
	if err := addAlerts(mgr, w, trialsOf); err != nil {
		return controllers{}, err
	}
	suggestions := suggestion.New(suggestion.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Dial: w.dial, Katib: w.rules.Katib, Now: w.now})
	return controllers{experiments, trials, trialsOf}, suggestions.Register(mgr, trialsOf)
}

func reporting(o options, id identity, direct client.Reader) trial.Reporting {
	r := trial.Reporting{
		RerunDisrupted: true,
		Image:          o.collectorImage, Binary: o.collectorBinary, Rate: o.collectorRate, URL: o.reportURL, Commands: o.commands,
		Token: func(t collector.TrialID) (string, error) {
			return report.Sign(id.reportKey, report.Claims{Trial: t, Expires: time.Now().Add(tokenValidity)})
		},
	}
	switch o.collectorMount {
	case "auto":
		r.Mount = trial.MountImages(direct, time.Now)
	case "always":
		r.Mount = func(context.Context) bool { return true }
	}
	if o.resolvesImages() {
		r.Entrypoint = entrypoint.New(direct).Of
	}
	if o.reportTLS() {
		r.CA = string(id.ca)
	}
	if !o.embedded {
		r.Resources = corev1.ResourceRequirements{
			// All four, because a ResourceQuota may demand them of every container.
			Requests: corev1.ResourceList{corev1.ResourceCPU: o.collectorCPURequest.Quantity, corev1.ResourceMemory: o.collectorMemoryRequest.Quantity},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: o.collectorCPU.Quantity, corev1.ResourceMemory: o.collectorMemory.Quantity},
		}
	}
	return r
}
