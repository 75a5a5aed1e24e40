package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
)

// actVariable makes the test binary act as the command.
const actVariable = "VERNIER_TEST_ACT"

// sharedStores make stores that several managers open. Those with a server need the
// tag e2e.
var sharedStores = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "points.db") },
}

// Both of two managers take reports, and what the standby takes is seen by the leader.
// A leader that is killed, or ends as it is asked to, loses nothing.
func TestReplicas(t *testing.T) {
	for name, make := range sharedStores {
		t.Run(name, func(t *testing.T) { testReplicas(t, make(t)) })
	}
}

func testReplicas(t *testing.T, address string) {
	const trials = 6
	w := newWorld(t, never)
	r := newReplicas(w, address)
	first := r.start()
	w.eventually("the first manager leads", func() string { return problemIf(r.holder() == "", "no replica leads") })
	second := r.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = ptr.To[int32](trials), ptr.To[int32](trials)
	})
	w.create(e)
	var reporters []*reporter
	w.eventually("all trials run", func() string {
		all := w.trialsOf(e)
		reporters = nil
		for i := range all {
			if all[i].IsRunning() {
				reporters = append(reporters, r.reporter(&all[i]))
			}
		}
		return problemIf(len(reporters) != trials, "%d run", len(reporters))
	})

	each(reporters, func(rep *reporter) { rep.say(t, 0, 10, second) })
	r.shows(e, "the leader shows what the standby took", 9)

	var once sync.Once
	each(reporters, func(rep *reporter) {
		rep.say(t, 10, 20, first, second)
		once.Do(func() { _ = first.end(t, syscall.SIGKILL) }) // it says only that it was killed
		rep.say(t, 20, 40, first, second)
	})
	r.shows(e, "the standby leads after the crash", 39)

	third := r.start()
	was := r.holder()
	once = sync.Once{}
	each(reporters, func(rep *reporter) {
		rep.say(t, 40, 50, second, third)
		once.Do(func() {
			if err := second.end(t, syscall.SIGTERM); err != nil {
				t.Errorf("a manager that was asked to end: %v", err)
			}
			if r.holder() == was {
				t.Error("it ended without giving up its lease")
			}
		})
		rep.say(t, 50, 70, second, third)
	})
	each(reporters, func(rep *reporter) { rep.finish(t, third) })
	w.behave(func(string) ending { return ending{silent: true} })
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	r.shows(e, "the results are complete", 69)
	r.holds(reporters, 70)
}

func problemIf(bad bool, format string, args ...any) string {
	if bad {
		return fmt.Sprintf(format, args...)
	}
	return ""
}

func each(reporters []*reporter, do func(*reporter)) {
	var all sync.WaitGroup
	for _, r := range reporters {
		all.Go(func() { do(r) })
	}
	all.Wait()
}

// replicas are managers, each a process, with one store.
type replicas struct {
	*world
	dir, address string
	kubeconfig   string
	key          []byte
}

func newReplicas(w *world, address string) *replicas {
	w.t.Helper()
	r := &replicas{world: w, dir: w.t.TempDir(), address: address, kubeconfig: writeKubeconfig(w.t, rest.ImpersonationConfig{}), key: randomKey()}
	if err := os.WriteFile(r.in("key"), r.key, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (r *replicas) in(file string) string { return filepath.Join(r.dir, file) }

type replica struct {
	url   string
	cmd   *exec.Cmd
	ended chan error
}

// start starts a manager and waits until it is ready.
func (r *replicas) start() *replica {
	r.t.Helper()
	free := freeAddresses(r.t, 2)
	m := &replica{url: "http://" + free[0], ended: make(chan error, 1)}
	m.cmd = exec.Command(os.Args[0], "--leader-elect", "--namespace="+r.namespace, "--kubeconfig="+r.kubeconfig, //nolint:noctx // ended by hand
		"--store=env:VERNIER_STORE", "--report-key-file="+r.in("key"), "--report-bind-address="+free[0], "--report-url="+m.url,
		"--metrics-bind-address=0", "--health-probe-bind-address="+free[1], "--webhook-bind-address=0", "--katib-bind-address=0")
	m.cmd.Env = append(os.Environ(), actVariable+"=1", "VERNIER_STORE="+r.address)
	var log strings.Builder
	m.cmd.Stderr = &log
	if err := m.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { m.ended <- m.cmd.Wait() }()
	r.t.Cleanup(func() {
		_ = m.end(r.t, syscall.SIGKILL)
		if r.t.Failed() {
			r.t.Logf("manager %s:\n%s", m.url, log.String())
		}
	})
	r.eventually("the manager is ready", func() string { return answer(r.t, "http://"+free[1]+"/readyz") })
	return m
}

// end sends a signal and waits until the process is gone.
func (m *replica) end(t testing.TB, s syscall.Signal) error {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	err := <-m.ended
	m.ended <- err // for who asks again
	return err
}

// holder is who holds the lease, or "".
func (r *replicas) holder() string {
	r.t.Helper()
	lease := &coordinationv1.Lease{}
	err := r.client.Get(r.t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "vernier-manager"}, lease)
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Error(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// valueAt is what trials report at a step: the least value is the last.
func valueAt(step int) float64 { return float64(1000 - step) }

// shows waits until the status of each trial has the value of a step.
func (r *replicas) shows(e *v1beta1.Experiment, what string, step int) {
	r.t.Helper()
	want := fmt.Sprint(valueAt(step))
	r.eventually(what, func() string {
		for _, t := range r.trialsOf(e) {
			o := t.Status.Observation
			if o == nil || len(o.Metrics) != 1 || o.Metrics[0].Latest != want || o.Metrics[0].Min != want || o.Metrics[0].Max != fmt.Sprint(valueAt(0)) {
				return fmt.Sprintf("%s has %+v, want %s", t.Name, o, want)
			}
		}
		return ""
	})
}

// holds compares what is stored with what was reported.
func (r *replicas) holds(reporters []*reporter, points int) {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, rep := range reporters {
		next := 0
		err := s.Scan(r.t.Context(), rep.trial.UID, nil, func(_ collector.Attempt, p collector.Point) error {
			if p.Value != valueAt(next) {
				return fmt.Errorf("point %d of %s is %g, want %g", next, rep.trial.Name, p.Value, valueAt(next))
			}
			next++
			return nil
		})
		if err != nil || next != points {
			r.t.Errorf("%s: %d points are stored, want %d: %v", rep.trial.Name, next, points, err)
		}
	}
}

// reporter reports for a trial, as its collector would.
type reporter struct {
	trial   collector.TrialID
	attempt collector.Attempt
	token   string
	clients map[string]vernierv1.ReportServiceClient
}

func (r *replicas) reporter(t *v1beta1.Trial) *reporter {
	r.t.Helper()
	id := trialID(t)
	token, err := report.Sign(r.key, report.Claims{Trial: id, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		r.t.Fatal(err)
	}
	return &reporter{trial: id, token: token, clients: map[string]vernierv1.ReportServiceClient{},
		attempt: collector.Attempt{ID: "pod/0", Started: time.Now()}}
}

// say reports the steps in [from, to) to some managers in turn. One that does not take
// a report is followed by the next, which must.
func (rep *reporter) say(t *testing.T, from, to int, managers ...*replica) {
	t.Helper()
	for step := from; step < to; step++ {
		point := collector.Point{Metric: "loss", Value: valueAt(step), Step: int64(step), Time: time.Now(), Source: "stdout", Seq: int64(step)}
		request := &vernierv1.ReportRequest{Attempt: report.EncodeAttempt(rep.attempt), Points: report.EncodePoints([]collector.Point{point})}
		at := step % len(managers)
		err := rep.send(t.Context(), managers[at], request)
		if err != nil && len(managers) > 1 {
			err = rep.send(t.Context(), managers[1-at], request)
		}
		if err != nil {
			t.Errorf("step %d of %s: %v", step, rep.trial.Name, err)
		}
	}
}

func (rep *reporter) finish(t *testing.T, m *replica) {
	t.Helper()
	if err := rep.send(t.Context(), m, &vernierv1.ReportRequest{Attempt: report.EncodeAttempt(rep.attempt), Final: true}); err != nil {
		t.Error(err)
	}
}

func (rep *reporter) send(ctx context.Context, m *replica, request *vernierv1.ReportRequest) error {
	service := rep.clients[m.url]
	if service == nil {
		var err error
		if service, err = report.Dial(report.DialConfig{URL: m.url, Token: rep.token}); err != nil {
			return err
		}
		rep.clients[m.url] = service
	}
	_, err := service.Report(ctx, request)
	return err
}
