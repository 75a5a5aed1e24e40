// Package tracing carries a trace from an experiment to the reports of its trials, in
// the form of W3C Trace Context.
package tracing

import (
	"context"
	"regexp"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Header is the name of the header in HTTP.
const Header = "Traceparent"

// Tracer starts spans. The zero value starts none that is exported.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer whose spans go to p.
func New(p trace.TracerProvider) Tracer { return Tracer{p.Tracer("github.com/vernier-ml/vernier")} }

// Start starts a span: a child of ctx's, or the first of a trace.
func (t Tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.tracer == nil {
		return noop.Tracer{}.Start(ctx, name)
	}
	return t.tracer.Start(ctx, name, o...)
}

// Continue starts a span in the trace of a traceparent. Without one that can be read it
// starts none.
func (t Tracer) Continue(ctx context.Context, traceparent, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	within := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	if !trace.SpanContextFromContext(within).IsValid() {
		return noop.Tracer{}.Start(ctx, name)
	}
	return t.Start(within, name, o...)
}

// Traceparent names the span of ctx to others; empty unless it is sampled.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

var form = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Valid says whether a text has the form of a traceparent.
func Valid(traceparent string) bool { return form.MatchString(traceparent) }

// Of are the attributes of a span about an experiment, and about one of its trials
// unless that is empty.
func Of(namespace, experiment, trial string) trace.SpanStartOption {
	attributes := []attribute.KeyValue{attribute.String("k8s.namespace.name", namespace), attribute.String("vernier.experiment", experiment)}
	if trial != "" {
		attributes = append(attributes, attribute.String("vernier.trial", trial))
	}
	return trace.WithAttributes(attributes...)
}

// End ends a span, as failed if there is an error.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
