package local

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vernier-ml/vernier/local/agent"
)

// Binaries is the folder of the programs that an instance is made of.
type Binaries string

// FindBinaries looks in dir, or, when dir is empty, beside the running program.
func FindBinaries(dir string) (Binaries, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			self = resolved
		}
		dir = filepath.Dir(self)
	}
	if missing := missingFrom(dir); len(missing) > 0 {
		return "", fmt.Errorf("not in %s: %s; %s", dir, strings.Join(missing, ", "), whereElse(dir))
	}
	return Binaries(dir), nil
}

func missingFrom(dir string) (missing []string) {
	for _, name := range []string{"controlplane", "manager", "collector", "shim", "vernier"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			missing = append(missing, name)
		}
	}
	return missing
}

// whereElse says where the programs may be that dir lacks. The Python package has only
// vernier, which comes before another one on the PATH of its environment.
func whereElse(dir string) string {
	const build = "build them with: make build (or name their folder with VERNIER_BIN_DIR)"
	if !strings.HasSuffix(dir, filepath.Join("vernier_hpo", "bin")) {
		return build
	}
	const alone = "this vernier is that of the Python package vernier-hpo, which can search but start no instance; "
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		other, err := filepath.EvalSymlinks(filepath.Join(folder, "vernier"))
		if err == nil && len(missingFrom(filepath.Dir(other))) == 0 {
			return alone + "use " + other
		}
	}
	return alone + build
}

func (b Binaries) path(name string) string { return filepath.Join(string(b), name) }

// The controllers of Kubernetes that an instance runs: those that trials need,
// and those that make ordinary objects work. There is no cloud, no autoscaler,
// no certificate request and no second node.
var kubernetesControllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller", "endpointslice-controller", "ephemeral-volume-controller",
	"garbage-collector-controller", "job-controller", "namespace-controller",
	"persistentvolume-binder-controller", "persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller", "replicaset-controller", "resourcequota-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "statefulset-controller",
	"ttl-after-finished-controller",
}

// The limits of the clients of the control plane. The defaults (20 requests a
// second) cap a tuner at three trials a second.
var clientLimits = []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}

// Images that stand for nothing but a name: the agent runs local programs.
const collectorImage = "vernier-collector"

func (s *supervisor) etcd() component {
	pki := s.home.pki()
	client, peer := "https://"+address(s.ports.EtcdClient), "https://"+address(s.ports.EtcdPeer)
	return component{
		name: "etcd", path: s.binaries.path("controlplane"), grace: 10 * time.Second,
		args: []string{
			"etcd", "--name=vernier", "--data-dir=" + s.home.path("etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=vernier=" + peer,
			"--client-cert-auth", "--trusted-ca-file=" + filepath.Join(pki, "ca.crt"),
			"--cert-file=" + filepath.Join(pki, "etcd.crt"), "--key-file=" + filepath.Join(pki, "etcd.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + filepath.Join(pki, "ca.crt"),
			"--peer-cert-file=" + filepath.Join(pki, "etcd.crt"), "--peer-key-file=" + filepath.Join(pki, "etcd.key"),
			"--quota-backend-bytes=8589934592", "--log-level=warn",
			// There is no other member: the default second of an election
			// would only delay each resume.
			"--heartbeat-interval=25", "--election-timeout=250",
		},
		ready: s.etcdReady,
	}
}

func (s *supervisor) apiServer() component {
	pki := func(name string) string { return filepath.Join(s.home.pki(), name) }
	return component{
		name: "kube-apiserver", path: s.binaries.path("controlplane"), grace: 10 * time.Second,
		args: []string{
			"kube-apiserver",
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.APIServer), "--advertise-address=127.0.0.1",
			// A loopback address may not be an endpoint of the Service kubernetes.
			"--endpoint-reconciler-type=none",
			"--etcd-servers=https://" + address(s.ports.EtcdClient),
			"--etcd-cafile=" + pki("ca.crt"), "--etcd-certfile=" + pki("etcd-client.crt"), "--etcd-keyfile=" + pki("etcd-client.key"),
			"--client-ca-file=" + pki("ca.crt"), "--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"), "--tls-min-version=VersionTLS12",
			"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"), "--kubelet-certificate-authority=" + pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file=" + pki("service-account.key"), "--service-account-key-file=" + pki("service-account.key"),
			// Nothing aggregates APIs here; the other components complain without end
			// when there is no such authority to be read.
			"--requestheader-client-ca-file=" + pki("ca.crt"), "--requestheader-allowed-names=front-proxy",
			"--service-cluster-ip-range=" + serviceNet,
			"--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--allow-privileged=true",
			// No controller here takes the taints of new nodes away again.
			"--disable-admission-plugins=TaintNodesByCondition",
			// One user, few clients: limits of concurrency, not queues.
			"--enable-priority-and-fairness=false", "--max-requests-inflight=800", "--max-mutating-requests-inflight=400",
			"--event-ttl=1h",
		},
		ready: s.apiServerReady,
	}
}

func (s *supervisor) controllerManager() component {
	config := s.home.componentKubeconfig("controller-manager")
	return component{
		name: "kube-controller-manager", path: s.binaries.path("controlplane"), grace: 5 * time.Second,
		args: append([]string{
			"kube-controller-manager", "--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.ControllerManager),
			"--leader-elect=false", "--controllers=" + strings.Join(kubernetesControllers, ","),
			"--root-ca-file=" + filepath.Join(s.home.pki(), "ca.crt"),
			"--concurrent-job-syncs=20", "--concurrent-gc-syncs=20", "--concurrent-namespace-syncs=5",
			"--profiling=false",
		}, append(s.serving("controller-manager"), clientLimits...)...),
		ready: s.controllerManagerReady,
	}
}

// serving are the flags of the certificate that a component serves. Without it
// the component would make an RSA key at each start, which is slow.
func (s *supervisor) serving(name string) []string {
	file := filepath.Join(s.home.pki(), name)
	return []string{"--tls-cert-file=" + file + ".crt", "--tls-private-key-file=" + file + ".key", "--tls-min-version=VersionTLS12"}
}

func (s *supervisor) scheduler() component {
	config := s.home.componentKubeconfig("scheduler")
	return component{
		name: "kube-scheduler", path: s.binaries.path("controlplane"), grace: 5 * time.Second,
		args: append([]string{
			"kube-scheduler", "--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.Scheduler),
			"--leader-elect=false", "--profiling=false",
		}, append(s.serving("scheduler"), clientLimits...)...),
		ready: s.schedulerReady,
	}
}

func (s *supervisor) manager() component {
	return component{
		name: "manager", path: s.binaries.path("manager"), grace: 6 * time.Second,
		args: append([]string{
			"--kubeconfig=" + s.home.componentKubeconfig("manager"),
			"--metrics-bind-address=" + address(s.ports.Metrics), "--health-probe-bind-address=" + address(s.ports.Health),
			"--report-bind-address=" + address(s.ports.Report), "--report-url=http://" + address(s.ports.Report),
			"--report-key-file=" + s.home.path("pki", "report.key"), "--api-token-file=" + s.home.APIToken(),
			"--katib-bind-address=" + cmp.Or(s.home.DBManager(), "0"),
			"--store=sqlite:" + s.home.StorePath(),
			"--webhook-bind-address=" + address(s.ports.Webhook), "--webhook-cert-dir=" + s.home.path("pki", "webhook"),
			"--collector-image=" + collectorImage, "--collector-binary=" + s.binaries.path("collector"), "--namespace=" + systemNamespace, "--leader-elect=false", "--embedded",
			"--ended-logs=" + s.binaries.path("vernier"), "--ended-logs=--home", "--ended-logs=" + string(s.home),
			"--agent-root=" + s.home.AgentRoot(),
			// Programs of this user reach all that the manager does.
			"--alert-hosts=*,http://127.0.0.1:*,http://localhost:*", "--dashboard-url=http://" + address(s.ports.Report) + "/",
			"--operator", fmt.Sprintf("--operator-kubectl=%s --home %s kubectl", shellWord(s.binaries.path("vernier")), shellWord(string(s.home))),
		}, s.managerFlags...),
		ready: s.managerReady,
	}
}

// shellWord is a text as a shell reads it as one word.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (s *supervisor) agent() component {
	pki := func(name string) string { return filepath.Join(s.home.pki(), name) }
	return component{
		// It ends the pods, for which it takes 12 s at most.
		name: "agent", path: s.binaries.path("vernier"), grace: 15 * time.Second,
		args: append([]string{
			"agent", "--kubeconfig=" + s.home.componentKubeconfig("agent"), "--node-name=" + s.nodeName,
			"--root=" + s.home.AgentRoot(), "--shim=" + s.binaries.path("shim"), "--bin-dir=" + string(s.binaries),
			"--listen=" + address(s.ports.Kubelet), fmt.Sprintf("--loopback-ports=%d", s.ports.Report),
			"--report-url=http://" + address(s.ports.Report), "--report-key-file=" + s.home.path("pki", "report.key"),
			"--cert=" + pki("kubelet.crt"), "--key=" + pki("kubelet.key"), "--client-ca=" + pki("ca.crt"),
		}, s.nodeFlags...),
		ready: s.nodeReady,
	}
}

// prober asks components whether they are ready.
type prober struct {
	http   *http.Client
	config *rest.Config
	client kubernetes.Interface
}

func newProber(h Home) (*prober, error) {
	config, err := clientcmd.BuildConfigFromFlags("", h.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pki := func(name string) string { return filepath.Join(h.pki(), name) }
	asker, err := rest.HTTPClientFor(&rest.Config{Timeout: 3 * time.Second, TLSClientConfig: rest.TLSClientConfig{
		CAFile: pki("ca.crt"), CertFile: pki("etcd-client.crt"), KeyFile: pki("etcd-client.key"),
	}})
	return &prober{http: asker, config: config, client: client}, err
}

// get asks an endpoint that answers 200 when all is well.
func (p *prober) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := p.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}

func (s *supervisor) etcdReady(ctx context.Context) error {
	return s.probe.get(ctx, "https://"+address(s.ports.EtcdClient)+"/health")
}

func (s *supervisor) apiServerReady(ctx context.Context) error {
	_, err := s.probe.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// managerReady holds when the manager says so and its webhook server listens,
// without which no Experiment can be created.
func (s *supervisor) managerReady(ctx context.Context) error {
	if err := s.probe.get(ctx, "http://"+address(s.ports.Health)+"/readyz"); err != nil {
		return err
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(s.ports.Webhook))
	if err != nil {
		return fmt.Errorf("webhook server: %w", err)
	}
	return connection.Close()
}

// nodeReady holds when the agent that runs now has said that the node is ready.
func (s *supervisor) nodeReady(ctx context.Context) error {
	// The times of the API have whole seconds.
	since := s.component("agent").Since.Truncate(time.Second)
	node, err := s.probe.client.CoreV1().Nodes().Get(ctx, s.nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == agent.ConditionPodNetwork {
			s.update(func(st *Status) { st.PodNetwork = c.Message })
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since) {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", s.nodeName)
}

// controllerManagerReady holds when pods can be created in the default
// namespace: its service account exists.
func (s *supervisor) controllerManagerReady(ctx context.Context) error {
	if err := s.probe.get(ctx, "https://"+address(s.ports.ControllerManager)+"/healthz"); err != nil {
		return err
	}
	_, err := s.probe.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
	return err
}

func (s *supervisor) schedulerReady(ctx context.Context) error {
	return s.probe.get(ctx, "https://"+address(s.ports.Scheduler)+"/healthz")
}
