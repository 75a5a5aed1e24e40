package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	runtimeapi "k8s.io/cri-api/pkg/apis"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/vernier-ml/vernier/local/shim"
)

// listen opens the listener of the kubelet API, of which the node serves the part
// that the API server calls for kubectl logs, exec, attach and port-forward: TLS, and only for
// callers with a certificate of the client authority.
func (n *node) listen(cfg Config) (net.Listener, error) {
	cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate of the node: %w", err)
	}
	clients, err := certutil.NewPool(cfg.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("loading the client authority of the node: %w", err)
	}
	listener, err := net.Listen("tcp", cfg.ListenAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for the kubelet API: %w", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	n.hostIP, n.port = address.IP.String(), int32(address.Port)
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
		// SPDY takes connections over, which HTTP/2 does not allow.
		NextProtos: []string{"http/1.1"},
	}), nil
}

// serve answers until ctx ends.
func (n *node) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           n.routes(),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		if err := server.Close(); err != nil {
			n.log.V(1).Info("closing the kubelet API", "error", err.Error())
		}
	})
	defer stop()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the kubelet API: %w", err)
}

func (n *node) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ok")
	})
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	// SPDY begins with POST, WebSocket with GET.
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.servePortForward)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", n.serveAttach)
	return mux
}

// find resolves the container that a request names, or answers with what is wrong.
func (n *node) find(w http.ResponseWriter, r *http.Request) (pod *corev1.Pod, c *corev1.Container) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	if pod = n.pods.find(namespace, name); pod == nil {
		http.Error(w, fmt.Sprintf("pod %s/%s is not on this node", namespace, name), http.StatusNotFound)
		return nil, nil
	}
	if c = findContainer(&pod.Spec, container); c == nil {
		http.Error(w, fmt.Sprintf("container %q not found in pod %s/%s", container, namespace, name), http.StatusNotFound)
	}
	return pod, c
}

// parseLogOptions reads the parameters of a request for logs, which the API server
// makes of PodLogOptions that it has validated.
func parseLogOptions(q url.Values) (*corev1.PodLogOptions, error) {
	fields := map[string]any{}
	for name := range q {
		fields[name] = q.Get(name)
		if value := []byte(q.Get(name)); json.Valid(value) {
			fields[name] = json.RawMessage(value)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	options := &corev1.PodLogOptions{}
	return options, json.Unmarshal(data, options)
}

// shimState asks a pod's shim, or reads what it left behind.
func shimState(ctx context.Context, dir string) (shim.State, error) {
	if _, state, err := shim.Attach(ctx, dir); err == nil {
		return state, nil
	}
	return shim.ReadState(dir)
}

func (n *node) serveLogs(w http.ResponseWriter, r *http.Request) {
	pod, c := n.find(w, r)
	if c == nil {
		return
	}
	query, err := parseLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, err := n.logRun(r.Context(), pod, c.Name, query.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := n.layout.log(pod.UID, c.Name, number)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			// It has written nothing, or its program could not be started.
			w.WriteHeader(http.StatusOK)
			return
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	options := crilogs.LogOptions{TailLines: query.TailLines, LimitBytes: query.LimitBytes, Follow: query.Follow, Timestamp: query.Timestamps}
	if query.SinceSeconds != nil {
		options.Since = time.Now().Add(-time.Duration(*query.SinceSeconds) * time.Second)
	} else if query.SinceTime != nil {
		options.Since = query.SinceTime.Time
	}
	w.Header().Set("Content-Type", "text/plain")
	out := &flushWriter{w: w, flusher: http.NewResponseController(w), now: query.Follow}
	running := runProbe{dir: n.layout.shim(pod.UID), container: c.Name, run: number}
	if err := crilogs.ReadLogs(r.Context(), path, "", &options, running, out, out); err != nil && r.Context().Err() == nil {
		n.log.Error(err, "cannot read a log", "path", path)
	}
}

// logRun is the run whose log is meant: the newest, or the one before it.
func (n *node) logRun(ctx context.Context, pod *corev1.Pod, container string, previous bool) (int, error) {
	state, err := shimState(ctx, n.layout.shim(pod.UID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, shim.ErrNotRunning) {
		return 0, err
	}
	newest, ok := state.Latest(container)
	switch {
	case !ok:
		return 0, fmt.Errorf("container %q in pod %q is waiting to start", container, pod.Name)
	case previous && newest.Run == 0:
		return 0, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return newest.Run - 1, nil
	}
	return newest.Run, nil
}

// runProbe tells the log reader whether the run still goes on. It answers for
// the one call that the reader makes.
type runProbe struct {
	runtimeapi.RuntimeService
	dir       string
	container string
	run       int
}

func (p runProbe) ContainerStatus(ctx context.Context, _ string, _ bool) (*criv1.ContainerStatusResponse, error) {
	status := &criv1.ContainerStatus{State: criv1.ContainerState_CONTAINER_EXITED}
	state, err := shimState(ctx, p.dir)
	if r, ok := state.Find(p.container, p.run); err == nil && ok && r.Phase != shim.Exited {
		status.State = criv1.ContainerState_CONTAINER_RUNNING
	}
	return &criv1.ContainerStatusResponse{Status: status}, nil
}

// flushWriter sends each write on at once when the log is followed.
type flushWriter struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	now     bool
}

func (f *flushWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil && f.now {
		err = f.flusher.Flush()
	}
	return n, err
}
