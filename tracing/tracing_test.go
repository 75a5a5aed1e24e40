package tracing_test

import (
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/vernier-ml/vernier/tracing"
)

func TestContinueStartsASpanOnlyInATraceThatThereIs(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	cases := map[string]struct {
		traceparent string
		want        int
	}{
		"a trace":               {parent, 1},
		"one that is not taken": {strings.TrimSuffix(parent, "1") + "0", 0},
		"none":                  {"", 0},
		"a trace of zeros":      {"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", 0},
		"no traceparent":        {parent + "\r\nAuthorization: x", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			_, span := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))).Continue(t.Context(), tc.traceparent, "x")
			span.End()
			if got := spans.GetSpans(); len(got) != tc.want || len(got) == 1 && got[0].SpanContext.TraceID().String() != parent[3:35] {
				t.Errorf("spans %v, want %d in the trace", got, tc.want)
			}
		})
	}
}

func TestWithoutATracerNothingIsNamed(t *testing.T) {
	ctx, span := tracing.Tracer{}.Start(t.Context(), "x")
	defer span.End()
	if got := tracing.Traceparent(ctx); got != "" {
		t.Errorf("a span that is not exported is named %s", got)
	}
}
