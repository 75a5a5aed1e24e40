package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vernier-ml/vernier/local/shim"
)

// runPreStop runs a preStop hook beside the worker. SIGTERM follows when it is
// through, however it ended.
func (w *worker) runPreStop(ctx context.Context, a action) {
	r, ok := w.v.last(a.Container)
	if !ok {
		return
	}
	done := w.v.Stops[a.Container]
	done.Hook = hookRunning
	w.v.Stops[a.Container] = done
	c, client := findContainer(&w.v.Pod.Spec, a.Container), w.shim
	go func() {
		hookCtx, cancel := context.WithTimeout(ctx, a.Grace)
		defer cancel()
		err := runHook(hookCtx, client, c, r.Number, c.Lifecycle.PreStop, w.hostIP)
		w.post(ctx, func() {
			if err != nil {
				w.event(corev1.EventTypeWarning, "FailedPreStopHook", fmt.Sprintf("preStop hook of container %s: %v", a.Container, err))
			}
			if newest, ok := w.v.last(a.Container); ok && newest.Number == r.Number {
				done := w.v.Stops[a.Container]
				done.Hook = hookDone
				w.v.Stops[a.Container] = done
			}
		})
	}()
}

// runPostStart runs a postStart hook; a container whose hook fails is stopped.
func (w *worker) runPostStart(ctx context.Context, c *corev1.Container, number int) {
	if !hasPostStart(c) {
		return
	}
	client := w.shim
	w.v.Starting[c.Name] = true
	go func() {
		err := runHook(ctx, client, c, number, c.Lifecycle.PostStart, w.hostIP)
		w.post(ctx, func() {
			if newest, ok := w.v.last(c.Name); ok && newest.Number == number {
				delete(w.v.Starting, c.Name)
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
	switch {
	case h.Exec != nil:
		return runInContainer(ctx, client, c.Name, number, h.Exec.Command)
	case h.HTTPGet != nil:
		return httpGet(ctx, c, h.HTTPGet, host)
	case h.TCPSocket != nil:
		return tcpConnect(ctx, c, h.TCPSocket, host)
	case h.GRPC != nil:
		return errors.New("gRPC probes are not supported on this node; use exec, httpGet or tcpSocket")
	}
	return nil
}

// maxOutput is how much of the output of a probe or hook is kept, in bytes.
const maxOutput = 4096

// limitedBuffer keeps the first max bytes that are written to it.
type limitedBuffer struct {
	text strings.Builder
	max  int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := b.max - b.text.Len(); room > 0 {
		b.text.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// runInContainer runs a command beside a container and waits for it. When ctx
// ends, the command's whole process group is killed.
func runInContainer(ctx context.Context, client *shim.Client, name string, number int, argv []string) error {
	if client == nil {
		return errors.New("the pod's shim is gone")
	}
	cmd, err := client.Command(ctx, name, number, argv)
	if err != nil {
		return err
	}
	out := &limitedBuffer{max: maxOutput}
	cmd.WaitDelay = time.Second
	err = runPlain(ctx, cmd, nil, out, out)
	if ctx.Err() != nil {
		return fmt.Errorf("command %q: %w", argv, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("command %q: %w: %s", argv, err, strings.TrimSpace(out.text.String()))
	}
	return nil
}

// killGroup kills a command that leads a process group.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil && cmd.Process.Pid > 0 {
		// An error means that nothing is left to kill.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

func httpGet(ctx context.Context, c *corev1.Container, h *corev1.HTTPGetAction, host string) error {
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
	resp, err := probeClient.Do(req)
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

func tcpConnect(ctx context.Context, c *corev1.Container, h *corev1.TCPSocketAction, host string) error {
	address, err := probeAddress(c, h.Port, cmp.Or(h.Host, host))
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
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
