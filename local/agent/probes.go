package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vernier-ml/vernier/local/shim"
)

// probeClient makes HTTP probes from within the pod: no shared connections, no
// redirects to other hosts to trust, any certificate, as the kubelet does it.
func probeClient(pod *shim.Client) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return pod.Dial(ctx, address) },
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 10 || req.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// probeKind is which of a container's probes is meant.
type probeKind string

const (
	startup   probeKind = "Startup"
	readiness probeKind = "Readiness"
	liveness  probeKind = "Liveness"
)

// syncProbes has the probes of each running container running.
func (w *worker) syncProbes(ctx context.Context) {
	for _, c := range allContainers(&w.v.Pod.Spec) {
		r, ok := w.v.running(c.Name)
		if !ok || w.probing[c.Name] != nil || w.shim == nil ||
			(c.StartupProbe == nil && c.ReadinessProbe == nil && c.LivenessProbe == nil) {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		w.probing[c.Name] = cancel
		p := &prober{worker: w, container: c, number: r.Run, client: w.shim, address: w.v.PodIP}
		go p.run(ctx)
	}
}

func (w *worker) stopProbe(name string) {
	if cancel := w.probing[name]; cancel != nil {
		cancel()
		delete(w.probing, name)
	}
}

// prober runs the probes of one run of one container.
type prober struct {
	worker    *worker
	container *corev1.Container
	number    int
	client    *shim.Client
	address   string // of the pod
}

// run runs the startup probe until it passes, then the two others side by side.
func (p *prober) run(ctx context.Context) {
	if p.container.StartupProbe != nil && !p.loop(ctx, startup, p.container.StartupProbe) {
		return
	}
	if p.container.LivenessProbe != nil {
		go p.loop(ctx, liveness, p.container.LivenessProbe)
	}
	if p.container.ReadinessProbe != nil {
		p.loop(ctx, readiness, p.container.ReadinessProbe)
	}
}

// loop repeats one probe. It returns true once a startup probe has passed, and
// false when the container is ending.
func (p *prober) loop(ctx context.Context, kind probeKind, probe *corev1.Probe) bool {
	delay := time.Duration(probe.InitialDelaySeconds) * time.Second
	passed, streak := false, int32(0) // the last result, and how often in a row it came
	for {
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		delay = time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
		err := p.once(ctx, probe)
		if ctx.Err() != nil {
			return false
		}
		if errors.Is(err, shim.ErrVersion) { // an older shim cannot probe: nothing is known
			continue
		}
		if err != nil {
			p.worker.post(ctx, func() {
				p.worker.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, err))
			})
		}
		ok, need := err == nil, probe.FailureThreshold
		if ok {
			need = probe.SuccessThreshold
		}
		if ok != passed {
			passed, streak = ok, 0
		}
		if streak++; streak < need {
			continue
		}
		p.worker.post(ctx, func() { p.report(kind, ok) })
		if kind == startup || kind == liveness && !ok {
			return ok
		}
	}
}

// report enters a probe's verdict. It runs in the worker's goroutine.
func (p *prober) report(kind probeKind, ok bool) {
	w, name := p.worker, p.container.Name
	if r, ok := w.v.running(name); !ok || r.Run != p.number {
		return
	}
	state := w.v.container(name)
	switch {
	case kind == readiness:
		state.Ready = ok
	case kind == startup && ok:
		state.Passed = true
	case !ok:
		w.condemn(name, p.number, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", name, kind))
	}
}

// once runs a probe once.
func (p *prober) once(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	return runHandler(ctx, p.client, p.container, p.number, probe.ProbeHandler, p.address)
}

// runPreStop runs a preStop hook beside the worker. SIGTERM follows when it is
// through, however it ended.
func (w *worker) runPreStop(ctx context.Context, a action) {
	r, ok := w.v.last(a.Container)
	if !ok {
		return
	}
	w.v.container(a.Container).Stop.Hook = hookRunning
	c, client, address := findContainer(&w.v.Pod.Spec, a.Container), w.shim, w.v.PodIP
	go func() {
		hookCtx, cancel := context.WithTimeout(ctx, a.Grace)
		defer cancel()
		err := runHook(hookCtx, client, c, r.Run, c.Lifecycle.PreStop, address)
		w.post(ctx, func() {
			if err != nil {
				w.event(corev1.EventTypeWarning, "FailedPreStopHook", fmt.Sprintf("preStop hook of container %s: %v", a.Container, err))
			}
			if newest, ok := w.v.last(a.Container); ok && newest.Run == r.Run {
				w.v.container(a.Container).Stop.Hook = hookDone
			}
		})
	}()
}

// runPostStart runs a postStart hook; a container whose hook fails is stopped.
func (w *worker) runPostStart(ctx context.Context, c *corev1.Container, number int) {
	if !hasPostStart(c) {
		return
	}
	client, address := w.shim, w.v.PodIP
	w.v.container(c.Name).Starting = true
	go func() {
		err := runHook(ctx, client, c, number, c.Lifecycle.PostStart, address)
		w.post(ctx, func() {
			if newest, ok := w.v.last(c.Name); ok && newest.Run == number {
				w.v.container(c.Name).Starting = false
			}
			if err != nil {
				w.condemn(c.Name, number, "FailedPostStartHook", fmt.Sprintf("postStart hook of container %s: %v", c.Name, err))
			}
		})
	}()
}

// runHook runs a lifecycle hook of a running container.
func runHook(ctx context.Context, client *shim.Client, c *corev1.Container, number int, h *corev1.LifecycleHandler, host string) error {
	if h.Sleep == nil {
		return runHandler(ctx, client, c, number, corev1.ProbeHandler{Exec: h.Exec, HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}, host)
	}
	select {
	case <-time.After(time.Duration(h.Sleep.Seconds) * time.Second):
	case <-ctx.Done():
	}
	return nil
}

// runHandler does what a hook or a probe asks for.
func runHandler(ctx context.Context, client *shim.Client, c *corev1.Container, number int, h corev1.ProbeHandler, host string) error {
	if client == nil {
		return errors.New("the pod's shim is gone")
	}
	switch {
	case h.Exec != nil:
		return runInContainer(ctx, client, c.Name, number, h.Exec.Command)
	case h.HTTPGet != nil:
		return httpGet(ctx, client, c, h.HTTPGet, host)
	case h.TCPSocket != nil:
		return tcpConnect(ctx, client, c, h.TCPSocket, host)
	case h.GRPC != nil:
		return errors.New("gRPC probes are not supported on this node; use exec, httpGet or tcpSocket")
	}
	return nil
}

// maxOutput is how much of the output of a probe or hook is kept, in bytes.
const maxOutput = 4096

// limitedBuffer keeps the first max bytes that are written to it.
type limitedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
	max  int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := b.max - b.text.Len(); room > 0 {
		b.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// runInContainer runs a command beside a container and waits for it. When ctx
// ends, the command's whole process group is killed.
func runInContainer(ctx context.Context, client *shim.Client, name string, number int, argv []string) error {
	out := &limitedBuffer{max: maxOutput}
	code, err := runPlain(ctx, client, shim.Run{Name: name, Run: number}, argv, nil, out, out)
	if ctx.Err() != nil {
		return fmt.Errorf("command %q: %w", argv, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("command %q: %w", argv, err)
	}
	if code != 0 {
		return fmt.Errorf("command %q: exit status %d: %s", argv, code, strings.TrimSpace(out.text.String()))
	}
	return nil
}

func httpGet(ctx context.Context, client *shim.Client, c *corev1.Container, h *corev1.HTTPGetAction, host string) error {
	address, err := probeAddress(c, h.Port, cmp.Or(h.Host, host))
	if err != nil {
		return err
	}
	url := fmt.Sprintf("%s://%s/%s", strings.ToLower(cmp.Or(string(h.Scheme), "http")), address, strings.TrimPrefix(h.Path, "/"))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.36")
	for _, header := range h.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			req.Host = header.Value
			continue
		}
		req.Header.Add(header.Name, header.Value)
	}
	resp, err := probeClient(client).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d: %s", resp.StatusCode, strings.TrimSpace(string(body)))
	}
	return nil
}

func tcpConnect(ctx context.Context, client *shim.Client, c *corev1.Container, h *corev1.TCPSocketAction, host string) error {
	address, err := probeAddress(c, h.Port, cmp.Or(h.Host, host))
	if err != nil {
		return err
	}
	conn, err := client.Dial(ctx, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// probeAddress is host:port; the container may name the port.
func probeAddress(c *corev1.Container, port intstr.IntOrString, host string) (string, error) {
	for _, p := range c.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			port = intstr.FromInt32(p.ContainerPort)
		}
	}
	number := port.IntValue() // 0 for a name
	if number == 0 {
		return "", fmt.Errorf("container %s has no port %q", c.Name, port.String())
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}
