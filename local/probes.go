package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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
	authority, err := os.ReadFile(filepath.Join(h.pki(), "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(h.pki(), "etcd-client.crt"), filepath.Join(h.pki(), "etcd-client.key"))
	if err != nil {
		return nil, err
	}
	return &prober{
		http: &http.Client{
			Timeout: 3 * time.Second,
			Transport: &http.Transport{
				DisableKeepAlives: true,
				TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
			},
		},
		config: config,
		client: client,
	}, nil
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
