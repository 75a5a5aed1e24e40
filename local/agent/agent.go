// Package agent is a Kubernetes node agent that runs pods as local processes.
//
// It registers one Node with an API server, watches the pods that the
// scheduler binds to it, and runs their containers with the rules of the
// kubelet: start order, restarts and back-off, phases and conditions,
// volumes, environment, termination with grace, logs and exec. No image is
// run; a mapping says which directories stand for an image, and by default
// that is the host.
//
// Each pod's containers are owned by a small process of their own (package
// shim), so the agent may die and find its pods again.
//
// What happens to a pod is decided by pure functions over a [view]: plan says
// what to do next, podStatus says what the pod's status is. A worker, one
// goroutine for each pod, gathers the view, acts, and publishes.
package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/vernier-ml/vernier/local/shim"
)

// Config says what an agent is.
type Config struct {
	// REST reaches the API server as an administrator.
	REST *rest.Config
	// NodeName is the name of the Node.
	NodeName string
	// Root is the absolute path of the directory of all files of the agent; made
	// with mode 0700.
	Root string
	// ShimBinary is the path of the shim.
	ShimBinary string
	// Path lists directories that come before PATH in every container.
	Path []string
	// CPU and Memory are what the node offers. Zero: all of the machine.
	CPU    resource.Quantity
	Memory resource.Quantity
	// GPUs are the UUIDs of the GPUs, and of MIG devices, to offer. Nil: those found that
	// CUDA_VISIBLE_DEVICES, if set, names. An empty list offers none. A GPU that
	// another agent of this machine offers is left out.
	GPUs []string
	// GPUSharing is how many pods may hold one GPU at a time. Nothing keeps them from
	// each other's memory and time. Default: 1.
	GPUSharing int
	// StorageClass is the class whose claims the agent gives directories to.
	// Default: StorageClassName.
	StorageClass string
	// LoopbackPorts are ports of the machine's 127.0.0.1 that pods with a network of
	// their own find at theirs, beside the API server's.
	LoopbackPorts []uint16
	// ListenAddress of the kubelet API, host:port. The host must be an address
	// of the machine that the API server reaches.
	ListenAddress string
	// CertFile and KeyFile serve the kubelet API.
	CertFile, KeyFile string
	// ClientCAFile verifies the callers of the kubelet API: the API server's
	// kubelet client certificate.
	ClientCAFile string
	// Reporting is how samples of what trials use are reported.
	Reporting Reporting
	// Down, once closed, has Run end its pods as the node goes down, and return.
	// Nil: never.
	Down <-chan struct{}
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

// Run registers the node and runs its pods until ctx ends; it then returns nil
// and leaves the pods running, for the next agent of the same root to find. When
// cfg.Down closes, the pods are ended first (see drain.go).
// It returns an error when the node cannot be set up.
func Run(ctx context.Context, cfg Config) error {
	n, err := newNode(ctx, cfg)
	if err != nil {
		return err
	}
	listener, err := n.listen(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: n.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	n.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "vernier-agent", Host: n.name})

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failures := make(chan error, 3)
	// Its library writes to the scheme that all clients of the process read, so it is
	// made before any request is served.
	claims, err := serveClaims(klog.NewContext(ctx, n.log), n.client, n.layout, cmp.Or(cfg.StorageClass, StorageClassName))
	if err != nil {
		return err
	}
	wg.Go(func() { failures <- n.serve(ctx, listener) })
	if err := n.register(ctx); err != nil {
		return err
	}
	wg.Go(func() { n.keep(ctx) })
	wg.Go(func() { claims(ctx) })
	if cfg.Reporting.URL != "" {
		wg.Go(func() { n.sample(ctx, cfg.Reporting) })
	}
	wg.Go(func() { failures <- n.network.follow(ctx) })
	wg.Go(func() {
		failures <- n.follow(ctx, func(live map[types.UID]bool) {
			n.network.listed.Store(true)
			n.sweep(ctx, live)
		})
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
	gpus, locks := offeredGPUs(ctx, cfg)
	book, err := openGPUBook(l.gpus(), gpus, cfg.GPUSharing, cfg.Log)
	if err != nil {
		return nil, err
	}
	capacity, err := capacityOf(cfg, book.Capacity())
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
	server, _, err := rest.DefaultServerUrlFor(restConfig)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	pods := &podSet{pods: map[types.UID]*podEntry{}}
	return &node{
		client: client, layout: l, log: cfg.Log, gpuBook: book, archive: logs, cluster: &cluster{client: client},
		pods: pods, name: cfg.NodeName, capacity: capacity, path: cfg.Path, serviceEnv: serviceVariables(server),
		shimBinary: cfg.ShimBinary, mounts: mounts, gpuLocks: locks,
		network: newNetwork(ctx, cfg, mounts, client, server, pods),
	}, nil
}

// serviceVariables lets programs in pods find the API server. There are no
// Service addresses on this node, so it is named by its own address.
func serviceVariables(server *url.URL) []corev1.EnvVar {
	port := cmp.Or(server.Port(), "443")
	return []corev1.EnvVar{
		{Name: "KUBERNETES_SERVICE_HOST", Value: server.Hostname()},
		{Name: "KUBERNETES_SERVICE_PORT", Value: port},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
	}
}

// layout names the files under the agent's root directory:
//
//	pods/<uid>/pod.json            whose directory this is
//	pods/<uid>/shim/               the shim's socket and state
//	pods/<uid>/volumes/<name>/     volumes that live as long as the pod
//	pods/<uid>/logs/<container>/   <run>.log in CRI format
//	pods/<uid>/termination/        termination messages
//	pods/<uid>/network/            files for names, of a pod with a network of its own
//	pods/<uid>/down.json           when the node went down with the pod; see drain.go
//	claims/<namespace>/<claim>-<uid>/   persistent volumes
//	archive/<uid>/                 logs of pods that are gone; see archive.go
//	network/                       of the pods' networks: the holder's socket
//	gpus.json                      which pod holds which GPU
type layout struct{ root string }

func (l layout) pods() string                { return filepath.Join(l.root, "pods") }
func (l layout) pod(uid types.UID) string    { return filepath.Join(l.pods(), string(uid)) }
func (l layout) shim(uid types.UID) string   { return filepath.Join(l.pod(uid), "shim") }
func (l layout) logs(uid types.UID) string   { return filepath.Join(l.pod(uid), "logs") }
func (l layout) network() string             { return filepath.Join(l.root, "network") }
func (l layout) names(uid types.UID) string  { return filepath.Join(l.pod(uid), "network") }
func (l layout) gpus() string                { return filepath.Join(l.root, "gpus.json") }
func (l layout) downFile(u types.UID) string { return filepath.Join(l.pod(u), "down.json") }
func (l layout) podFile(u types.UID) string  { return filepath.Join(l.pod(u), identityFile) }
func (l layout) archive() string             { return filepath.Join(l.root, "archive") }

func (l layout) volume(uid types.UID, name string) string {
	return filepath.Join(l.pod(uid), "volumes", name)
}

func (l layout) log(uid types.UID, container string, run int) string {
	return filepath.Join(l.logs(uid), container, fmt.Sprintf("%d.log", run))
}

func (l layout) termination(uid types.UID, container string) string {
	return filepath.Join(l.pod(uid), "termination", container)
}

// claim is the directory of a persistent volume. The UID keeps a new claim of
// an old name from seeing the old data.
func (l layout) claim(c *corev1.PersistentVolumeClaim) string {
	return filepath.Join(l.root, "claims", c.Namespace, c.Name+"-"+string(c.UID))
}
