package probe_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
)

func TestProbeInput(t *testing.T) {
	text := "step=1 loss=3 other=1\nstep=2 loss=2"
	in := &probe.Input{From: strings.NewReader(text), Path: "-"}
	r, err := probe.Run(t.Context(), in, []string{"loss"})
	if err != nil {
		t.Fatal(err)
	}
	want := brief{Kind: "StdOut", Format: "TEXT", Found: []string{"loss: 2, 3 to 2, in [2, 3], steps 1 to 2"}, Seen: []string{"other"}}
	if d := cmp.Diff(want, inShort(r)); d != "" || r.Bytes != int64(len(text)) || r.Interrupted {
		t.Errorf("%d bytes of %d, interrupted %v (-want +got)\n%s", r.Bytes, len(text), r.Interrupted, d)
	}
}

func TestProbeInputIsInterrupted(t *testing.T) {
	for name, metrics := range map[string][]string{"one metric": {"loss"}, "all": nil} {
		t.Run(name, func(t *testing.T) {
			reader, writer := io.Pipe()
			signals := make(chan os.Signal, 1)
			go func() {
				_, _ = io.WriteString(writer, "loss=3\n") // the reader takes it
				signals <- os.Interrupt
			}()
			r, err := probe.Run(t.Context(), &probe.Input{From: reader, Path: "-", Interrupts: signals}, metrics)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Interrupted {
				t.Error("it does not say that it was interrupted")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reader, _ := io.Pipe()
	if _, err := probe.Run(ctx, &probe.Input{From: reader}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestProbeOfAProgramSaysWhereItsValuesStood(t *testing.T) {
	c := &probe.Command{Argv: []string{"sh", "-c", "echo loss=1,5; echo loss=1"}, Stdout: io.Discard, Stderr: io.Discard}
	r, err := probe.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Metrics) != 1 || len(r.Troubles) != 1 || r.Troubles[0].Line != 1 || r.Path != "sh -c echo loss=1,5; echo loss=1" {
		t.Fatalf("%+v", r)
	}
	if d := cmp.Diff([]string{"stdout"}, r.Metrics[0].Sources); d != "" {
		t.Errorf("sources (-want +got)\n%s", d)
	}
}
