package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/local/shim"
)

// probeClient makes HTTP probes: no shared connections, no redirects to other
// hosts to trust, any certificate, as the kubelet does it.
var probeClient = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 10 || req.URL.Hostname() != via[0].URL.Hostname() {
			return http.ErrUseLastResponse
		}
		return nil
	},
}

// probeKind is which of a container's probes is meant.
type probeKind string

const (
	startup   probeKind = "Startup"
	readiness probeKind = "Readiness"
	liveness  probeKind = "Liveness"
)

// streak counts equal results of a probe in a row. The verdict changes when a
// threshold is reached.
type streak struct {
	ok    bool
	count int32
}

// add enters a result and returns the verdict, if the streak is long enough
// for one.
func (s *streak) add(ok bool, p *corev1.Probe) (verdict, decided bool) {
	if s.ok != ok {
		s.ok, s.count = ok, 0
	}
	s.count++
	need := p.FailureThreshold
	if ok {
		need = p.SuccessThreshold
	}
	return ok, s.count >= max(need, 1)
}

// syncProbes has the probes of each running container running.
func (w *worker) syncProbes(ctx context.Context) {
	for _, c := range allContainers(&w.v.Pod.Spec) {
		r, ok := w.v.last(c.Name)
		if !ok || !r.running() || w.probing[c.Name] != nil || w.shim == nil ||
			(c.StartupProbe == nil && c.ReadinessProbe == nil && c.LivenessProbe == nil) {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		w.probing[c.Name] = cancel
		p := &prober{worker: w, container: c, number: r.Number, client: w.shim}
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
	var s streak
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
		if err != nil {
			p.worker.post(ctx, func() {
				p.worker.event(corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, err))
			})
		}
		if ok, decided := s.add(err == nil, probe); decided {
			p.worker.post(ctx, func() { p.report(kind, ok) })
			if kind != readiness && !ok {
				return false
			}
			if kind == startup && ok {
				return true
			}
		}
	}
}

// report enters a probe's verdict. It runs in the worker's goroutine.
func (p *prober) report(kind probeKind, ok bool) {
	w, name := p.worker, p.container.Name
	if r, known := w.v.last(name); !known || r.Number != p.number || !r.running() {
		return
	}
	state := w.v.Probes[name]
	switch {
	case kind == readiness:
		state.Ready = ok
	case kind == startup && ok:
		state.Started = true
	case !ok:
		w.condemn(name, p.number, "Killing", fmt.Sprintf("Container %s failed %s probe, will be restarted", name, kind))
	}
	w.v.Probes[name] = state
}

// once runs a probe once.
func (p *prober) once(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	return runHandler(ctx, p.client, p.container, p.number, probe.ProbeHandler, p.worker.hostIP)
}
