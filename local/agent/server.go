package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletServer serves the part of the kubelet's API that the API server calls
// for kubectl logs, exec and attach.
type kubeletServer struct {
	pods   *podSet
	layout layout
	log    logr.Logger
}

// listenKubelet opens the listener of the kubelet API: TLS, and only for
// callers with a certificate of the client authority.
func listenKubelet(cfg Config) (net.Listener, error) {
	cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate of the node: %w", err)
	}
	ca, err := os.ReadFile(cfg.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("loading the client authority of the node: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", cfg.ClientCAFile)
	}
	listener, err := net.Listen("tcp", cfg.ListenAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for the kubelet API: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
		// SPDY takes connections over, which HTTP/2 does not allow.
		NextProtos: []string{"http/1.1"},
	}), nil
}

// Serve answers until ctx ends.
func (s *kubeletServer) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		if err := server.Close(); err != nil {
			s.log.V(1).Info("closing the kubelet API", "error", err.Error())
		}
	})
	defer stop()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the kubelet API: %w", err)
}

func (s *kubeletServer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ok")
	})
	mux.HandleFunc("GET /pods", s.servePods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveLogs)
	// SPDY begins with POST, WebSocket with GET.
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.serveAttach)
	return mux
}

func (s *kubeletServer) servePods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: s.pods.list()}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(&list); err != nil {
		s.log.V(1).Info("writing the list of pods", "error", err.Error())
	}
}

// target is the container that a request names.
type target struct {
	pod       *corev1.Pod
	container *corev1.Container
}

// find resolves the container of a request, or answers with what is wrong.
func (s *kubeletServer) find(w http.ResponseWriter, r *http.Request) (target, bool) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.pods.find(namespace, name)
	if !ok {
		http.Error(w, fmt.Sprintf("pod %s/%s is not on this node", namespace, name), http.StatusNotFound)
		return target{}, false
	}
	c := findContainer(&pod.Spec, container)
	if c == nil {
		http.Error(w, fmt.Sprintf("container %q not found in pod %s/%s", container, namespace, name), http.StatusNotFound)
		return target{}, false
	}
	return target{pod, c}, true
}
