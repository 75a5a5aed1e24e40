package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// lockedBuffer may be written to by several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.buf.String()), "\n")
}

// All that is logged of experiments and trials, at the finest level, with a write that
// fails, is JSON with the same keys, and has no token.
func TestLogsAreJSONWithTheSameKeysAndNoTokens(t *testing.T) {
	w := newWorld(t, byNumber(1))
	var out lockedBuffer
	failed := map[string]*atomic.Bool{"*v1beta1.Trial": {}, "*v1beta1.Experiment": {}}
	w.start(func(mo *manager.Options) {
		mo.Logger = logr.FromSlogHandler(logHandler(&out, options{level: slog.LevelDebug}))
		mo.NewClient = func(cfg *rest.Config, o client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(cfg, o)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					if first := failed[fmt.Sprintf("%T", obj)]; first != nil && !first.Swap(true) {
						return errors.New("a test refuses this write")
					}
					return c.SubResource(sub).Update(ctx, obj, opts...)
				},
			}), nil
		}
	})
	e := w.experiment("exp")
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	about := map[string]bool{}
	for _, line := range out.lines() {
		var entry struct{ Msg, Namespace, Experiment, Trial, Error string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if strings.Contains(line, "token-of-") {
			t.Errorf("a token is logged: %s", line)
		}
		if entry.Namespace == w.namespace && entry.Error != "" {
			about["experiment"] = about["experiment"] || entry.Experiment == "exp"
			about["trial"] = about["trial"] || strings.HasPrefix(entry.Trial, "exp-")
		}
	}
	if !about["experiment"] || !about["trial"] {
		t.Errorf("errors about %v are logged, want exp and a trial of it with their namespace", about)
	}
}

func TestLogFormat(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"JSON on a cluster":           {nil, `{"level":"INFO","msg":"m","trial":"t"}`},
		"text beside a control plane": {[]string{"--embedded", "--report-key-file=k"}, "level=INFO msg=m trial=t"},
		"as is asked for":             {[]string{"--log-format=text"}, "level=INFO msg=m trial=t"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(tc.args, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			slog.New(logHandler(&out, o)).Info("m", "trial", "t")
			line := out.String()
			for _, cut := range []string{"time=", `"time":`} {
				if before, after, ok := strings.Cut(line, cut); ok {
					_, rest, _ := strings.Cut(after, map[bool]string{true: " ", false: ","}[cut == "time="])
					line = strings.TrimSuffix(before+rest, "\n")
				}
			}
			if line != tc.want {
				t.Errorf("%q, want %q", line, tc.want)
			}
		})
	}
	// client-go logs the bodies of requests, with tokens in them, from DEBUG-4 down.
	for _, arg := range []string{"--log-format=xml", "--log-level=DEBUG-4"} {
		if _, err := parseFlags([]string{arg}, &bytes.Buffer{}); err == nil {
			t.Errorf("%s is taken", arg)
		}
	}
}
