package main

import (
	"context"
	"net"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/tracing"
)

// A trial, its job, what its sidecar reports and its end are in the trace of the question
// to the algorithm from which it came.
func TestOneTraceFromTheExperimentToTheReport(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	w := newWorld(t, byNumber(0))
	w.traces = tracing.New(provider)
	w.start()
	e := w.experiment("exp", budget(1), func(e *v1beta1.Experiment) { e.Spec.TrialTemplate.Retain = true })
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)

	var job batchv1.Job
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, &job); err != nil {
		t.Fatal(err)
	}
	dial := report.DialConfig{}
	for _, v := range job.Spec.Template.Spec.InitContainers[0].Env {
		if v.Name == contract.EnvTraceparent {
			dial.Traceparent = v.Value
		}
	}
	w.reportBy(dial)

	parents := map[string]string{"experiment.grow": "", "suggest": "experiment.grow", "trial.create": "experiment.grow",
		"job.create": "trial.create", "trial": "trial.create", "report.Report": "trial.create"}
	byName, byID := map[string]tracetest.SpanStub{}, map[string]string{}
	for _, s := range spans.GetSpans() {
		byName[s.Name], byID[s.SpanContext.SpanID().String()] = s, s.Name
	}
	root := byName["experiment.grow"].SpanContext.TraceID()
	for name, parent := range parents {
		s, ok := byName[name]
		if !ok || s.SpanContext.TraceID() != root || byID[s.Parent.SpanID().String()] != parent {
			t.Errorf("span %s: there %v, in trace %s under %q; want %s under %q", name, ok, s.SpanContext.TraceID(), byID[s.Parent.SpanID().String()], root, parent)
		}
	}
	if len(byName) != len(parents) {
		t.Errorf("spans: %v", byID)
	}
}

// reportBy sends an empty report, as the sidecar of a trial would.
func (w *world) reportBy(dial report.DialConfig) {
	w.t.Helper()
	key := []byte("a key that is long enough for this")
	_, handler, err := server.NewReportHandler(server.ReportConfig{Store: w.store, Keys: func() [][]byte { return [][]byte{key} }, Traces: w.traces})
	if err != nil {
		w.t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, listener, handler, nil) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			w.t.Error(err)
		}
	}()
	dial.URL = "http://" + listener.Addr().String()
	if dial.Token, err = report.Sign(key, report.Claims{Trial: collector.TrialID{Namespace: w.namespace, Name: "exp-0000", Experiment: "exp", UID: "uid"}, Expires: time.Now().Add(time.Hour)}); err != nil {
		w.t.Fatal(err)
	}
	c, err := report.Dial(dial)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = c.Report(w.t.Context(), &vernierv1.ReportRequest{Attempt: &vernierv1.Attempt{Id: "pod/0"}})
	if err != nil {
		w.t.Fatal(err)
	}
}
