package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/vernier-ml/vernier/local/shim"
)

// Config says what an agent is. The zero value of a field means its default.
type Config struct {
	// Kubeconfig is the path of a kubeconfig of an administrator of the cluster.
	// It is read when REST is nil.
	Kubeconfig string
	// REST reaches the API server.
	REST *rest.Config
	// NodeName is the name of the Node. Required.
	NodeName string
	// Root is the directory of all files of the agent; made with mode 0700.
	// Required, absolute.
	Root string
	// ShimBinary is the path of the shim. Default: "shim" beside the running
	// executable.
	ShimBinary string
	// Images maps image names to what stands for them; the first match counts.
	// Default: the host.
	Images []Image
	// CPU and Memory are what the node offers. Default: all of the machine.
	CPU    resource.Quantity
	Memory resource.Quantity
	// GPUs are the UUIDs of the GPUs to offer. Default, when nil: those found that
	// CUDA_VISIBLE_DEVICES, if set, names. An empty list offers none. A GPU that
	// another agent of this machine offers is left out.
	GPUs []string
	// StorageClass is the class whose claims the agent gives directories to.
	// Default: StorageClassName, which also serves claims without a class.
	StorageClass string
	// ListenAddress of the kubelet API, host:port. The host must be an address
	// of the machine that the API server reaches. Default: 127.0.0.1:0, any
	// free port.
	ListenAddress string
	// CertFile and KeyFile serve the kubelet API. Required.
	CertFile, KeyFile string
	// ClientCAFile verifies the callers of the kubelet API: the API server's
	// kubelet client certificate. Required.
	ClientCAFile string
	// Down, once closed, has Run end its pods as the node goes down, and return.
	// Nil: never.
	Down <-chan struct{}
	// Clock defaults to the real one.
	Clock clock.WithTicker
	// Log is where the agent logs. The zero value discards.
	Log logr.Logger
}

// kubeletVersion is the version of Kubernetes whose kubelet this node follows.
const kubeletVersion = "v1.36.3"

// Client-side limits of the agent: one machine's pods may start and end by the
// dozen a second.
const (
	clientQPS   = 500
	clientBurst = 1000
)

func (cfg *Config) complete() error {
	for name, value := range map[string]string{
		"NodeName": cfg.NodeName, "Root": cfg.Root, "CertFile": cfg.CertFile, "KeyFile": cfg.KeyFile, "ClientCAFile": cfg.ClientCAFile,
	} {
		if value == "" {
			return fmt.Errorf("agent config: %s is missing", name)
		}
	}
	if !filepath.IsAbs(cfg.Root) {
		return fmt.Errorf("agent config: Root %q is not an absolute path", cfg.Root)
	}
	if err := checkImages(cfg.Images); err != nil {
		return fmt.Errorf("agent config: %w", err)
	}
	if cfg.REST == nil {
		loaded, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		if err != nil {
			return fmt.Errorf("agent config: %w", err)
		}
		cfg.REST = loaded
	}
	if cfg.ListenAddress == "" {
		cfg.ListenAddress = "127.0.0.1:0"
	}
	if cfg.StorageClass == "" {
		cfg.StorageClass = StorageClassName
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.ShimBinary == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("agent config: finding the shim: %w", err)
		}
		cfg.ShimBinary = filepath.Join(filepath.Dir(self), "shim")
	}
	if _, err := os.Stat(cfg.ShimBinary); err != nil {
		return fmt.Errorf("agent config: the shim's binary: %w", err)
	}
	return nil
}

// Run registers the node and runs its pods until ctx ends; it then returns nil
// and leaves the pods running, for the next agent of the same root to find. When
// cfg.Down closes, the pods are ended first (see drain.go).
// It returns an error when the node cannot be set up.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	listener, err := listenKubelet(cfg)
	if err != nil {
		return err
	}
	n, err := newNode(ctx, cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	host, port, err := splitAddress(listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	n.hostIP = host
	recorder, stopEvents := newRecorder(ctx, n.client, cfg.NodeName)
	defer stopEvents()
	n.recorder = recorder

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failures := make(chan error, 2)
	server := &kubeletServer{pods: n.pods, layout: n.layout, log: n.log}
	wg.Go(func() { failures <- server.Serve(ctx, listener) })

	keeper := &nodeKeeper{
		client: n.client, clock: n.clock, log: n.log, name: n.name, hostIP: host, port: port,
		capacity: n.capacity, version: kubeletVersion,
	}
	if err := keeper.Register(ctx); err != nil {
		return err
	}
	claims := &claims{client: n.client, layout: n.layout, class: cfg.StorageClass, log: n.log}
	if err := claims.ensureClass(ctx); err != nil {
		return err
	}
	wg.Go(func() { keeper.Keep(ctx) })
	wg.Go(func() { claims.Run(ctx) })
	wg.Go(func() {
		failures <- n.follow(ctx, func(live map[types.UID]bool) { n.sweep(ctx, live) })
	})
	n.log.Info("node is ready", "node", n.name, "address", listener.Addr().String())
	select {
	case <-ctx.Done():
		return nil
	case <-cfg.Down:
		n.drain(ctx)
		return nil
	case err := <-failures:
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// newNode gathers what the workers share.
func newNode(ctx context.Context, cfg Config) (*node, error) {
	restConfig := rest.CopyConfig(cfg.REST)
	restConfig.QPS, restConfig.Burst = clientQPS, clientBurst
	restConfig.ContentType = runtime.ContentTypeProtobuf
	restConfig.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	restConfig.UserAgent = "vernier-agent"
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	l := layout{cfg.Root}
	if err := os.MkdirAll(l.pods(), 0o700); err != nil {
		return nil, fmt.Errorf("making the agent's directory: %w", err)
	}
	gpus := cfg.GPUs
	if gpus == nil {
		gpus = findGPUs(ctx)
		if names, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
			gpus = visibleGPUs(gpus, names)
		}
	}
	gpus, locks := lockGPUs(os.TempDir(), gpus, cfg.Log)
	if len(gpus) > 0 {
		makeCUDADevices(ctx, cfg.Log)
	}
	book, err := openGPUBook(l.gpus(), gpus, cfg.Log)
	if err != nil {
		return nil, err
	}
	capacity, err := capacityOf(cfg, len(gpus))
	if err != nil {
		return nil, err
	}
	logs, err := openArchive(l.archive())
	if err != nil {
		return nil, err
	}
	mounts, err := shim.ProbeMounts(ctx, cfg.ShimBinary, cfg.Root)
	if err != nil {
		cfg.Log.Info("mount namespaces do not work here; mount paths will be rewritten", "reason", err.Error())
		mounts = shim.MountsNone
	}
	services, err := apiServerVariables(restConfig.Host)
	if err != nil {
		return nil, err
	}
	return &node{
		client: client, layout: l, clock: cfg.Clock, log: cfg.Log, gpuBook: book, archive: logs,
		cluster: &cluster{client: client},
		pods:    newPodSet(), name: cfg.NodeName, capacity: capacity, images: cfg.Images,
		getenv: os.Getenv, serviceEnv: services, shimBinary: cfg.ShimBinary, mounts: mounts, gpuLocks: locks,
	}, nil
}

func newRecorder(ctx context.Context, client kubernetes.Interface, nodeName string) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "vernier-agent", Host: nodeName}), broadcaster.Shutdown
}

func splitAddress(addr net.Addr) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return host, int32(n), err
}

// apiServerVariables are the variables by which programs in pods find the API
// server that the agent itself uses.
func apiServerVariables(server string) ([]corev1.EnvVar, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		// A bare host:port is allowed too.
		if u, err = url.Parse("https://" + server); err != nil {
			return nil, fmt.Errorf("address %q of the API server: %w", server, err)
		}
	}
	port := 443
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return nil, fmt.Errorf("address %q of the API server: %w", server, err)
		}
	}
	return serviceVariables(u.Hostname(), port), nil
}
