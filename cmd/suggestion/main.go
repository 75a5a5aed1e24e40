// Command suggestion serves Vernier's algorithms by Katib's protocol: the images
// suggestion and earlystopping, which katib-config can name.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/server"
	"github.com/vernier-ml/vernier/server/suggestion"
)

// Set by the linker: the version, and where the images are published.
var (
	version  = "dev"
	registry = "ghcr.io/vernier-ml"
)

// namespaceFile tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	listen := flag.String("listen", ":6789", "`address` of Katib's services Suggestion and EarlyStopping, without TLS; Katib calls the latter at port 6788")
	show := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *show {
		fmt.Println(version, registry+"/suggestion")
		return
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "suggestion: unexpected argument %q: there are only flags, see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *listen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suggestion:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string) error {
	stopTrial, err := stopper()
	if err != nil {
		return err
	}
	handler, err := suggestion.NewHandler(suggestion.Config{
		StopTrial: stopTrial,
		Suffix:    func() string { return strings.ToLower(rand.Text()[:8]) },
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	slog.Info("serving Katib's Suggestion and EarlyStopping", "address", listener.Addr().String(), "version", version)
	return server.Serve(ctx, listener, handler, nil)
}

// stopper marks trials in the pod's namespace as stopped early; nil outside of pods.
func stopper() (func(context.Context, string) error, error) {
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("read the pod's namespace: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return func(ctx context.Context, name string) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			t := &v1beta1.Trial{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: strings.TrimSpace(string(namespace)), Name: name}, t); err != nil {
				return fmt.Errorf("read trial %s: %w", name, err)
			}
			if t.IsCompleted() {
				return nil
			}
			before := t.DeepCopy()
			t.MarkEarlyStopped("Trial is early stopped", metav1.Now())
			return c.Status().Patch(ctx, t, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		})
	}, nil
}
