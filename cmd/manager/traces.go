package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/tracing"
)

// flushTraces is how long the last spans may take on their way.
const flushTraces = 3 * time.Second

// openTraces sends spans by OTLP over HTTP to where OpenTelemetry's variables of the
// environment say, for as long as mgr runs; without them nowhere.
func openTraces(ctx context.Context, mgr manager.Manager, env func(string) string) (tracing.Tracer, error) {
	if env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return tracing.Tracer{}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return tracing.Tracer{}, fmt.Errorf("send traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "vernier-manager"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return tracing.Tracer{}, fmt.Errorf("describe this process for traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return tracing.New(provider), mgr.Add(everyReplica(func(ctx context.Context) error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTraces)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			slog.Warn("the last traces were not sent", "error", err)
		}
		return nil
	}))
}
