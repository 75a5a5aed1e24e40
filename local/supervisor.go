package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vernier-ml/vernier/local/statefile"
)

const (
	// systemNamespace is where Vernier's own objects live.
	systemNamespace = "vernier-system"
	// katibNamespace is the one that Katib's examples name.
	katibNamespace = "kubeflow"
)

// Options say what a supervisor supervises.
type Options struct {
	Home     Home
	Binaries Binaries
	Log      logr.Logger
}

// supervisor runs the components of one instance.
type supervisor struct {
	home     Home
	binaries Binaries
	log      logr.Logger
	nodeName string
	// nodeFlags are the agent's flags of what the node offers, managerFlags the manager's
	// of what images run.
	nodeFlags, managerFlags []string
	ports                   ports
	starter                 *starter
	probe                   *prober

	mutex  sync.Mutex
	status Status
}

// Supervise runs the instance of a home until ctx ends; then it stops every
// component, the pods too, in the reverse order of their start. It returns an
// error when another supervisor has the home, or when a component does not
// become ready.
func Supervise(ctx context.Context, o Options) (err error) {
	if err := o.Home.create(); err != nil {
		return err
	}
	unlock, err := o.Home.lock()
	if err != nil {
		return err
	}
	defer unlock()
	s, err := newSupervisor(o)
	if err != nil {
		return err
	}
	defer func() {
		final := StateStopped
		if err != nil {
			final = StateFailed
		}
		s.update(func(st *Status) { st.State, st.Message = final, errorText(err) })
	}()
	return s.run(ctx, s.stages())
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func newSupervisor(o Options) (*supervisor, error) {
	s := &supervisor{home: o.Home, binaries: o.Binaries, log: o.Log, nodeName: "local", starter: newStarter()}
	s.status = Status{State: StateStarting, PID: os.Getpid(), Started: time.Now(), DBManager: o.Home.DBManager()}
	s.update(func(*Status) {})
	if err := ensurePKI(o.Home.pki(), s.nodeName, time.Now()); err != nil {
		return nil, err
	}
	for _, file := range []string{o.Home.path("pki", "report.key"), o.Home.APIToken()} {
		if err := ensureSecret(file); err != nil {
			return nil, err
		}
	}
	p, err := o.Home.ensurePorts(until(time.Now().Add(portsWait)))
	if err != nil {
		return nil, err
	}
	s.ports = p
	s.update(func(st *Status) { st.API = "http://" + address(p.Report) })
	if s.nodeFlags, s.managerFlags, err = o.Home.resourceFlags(); err != nil {
		return nil, err
	}
	if err := o.Home.recordShell(); err != nil {
		return nil, err
	}
	if err := o.Home.writeKubeconfigs(p); err != nil {
		return nil, fmt.Errorf("write kubeconfigs: %w", err)
	}
	s.probe, err = newProber(o.Home)
	return s, err
}

// secretBytes is the least length of the key that signs reports, and of the API's token.
const secretBytes = 32

// ensureSecret makes a file with a secret, which can be sent as a token too, unless
// there is a whole one: a power cut may have emptied it.
func ensureSecret(file string) error {
	if secret, err := os.ReadFile(file); err == nil && len(secret) >= secretBytes {
		return nil
	}
	return statefile.Write(file, []byte(rand.Text()+rand.Text()), 0o600)
}

// stage is what starts together, after the stages before it.
type stage struct {
	components []component
	// then is done once the components are ready, before the next stage; with
	// none the next stage starts at once.
	then func(context.Context) error
	// stopped is done once the components have ended at shutdown, before the
	// stages before this one are stopped.
	stopped func()
}

// stages are the order of an instance. The agent ends the pods, before the
// manager ends, which takes their last points, and the API server, which takes
// their last statuses. What an agent left that could not do so is killed then.
func (s *supervisor) stages() []stage {
	return []stage{
		{components: []component{s.etcd()}, then: func(context.Context) error { return nil }},
		{components: []component{s.apiServer()}, then: s.prepareCluster},
		{components: []component{s.controllerManager(), s.scheduler(), s.manager()}},
		{components: []component{s.agent()}, stopped: s.stopPods},
	}
}

// run starts the stages in order, waits until ctx ends, and stops them in
// reverse order.
func (s *supervisor) run(ctx context.Context, stages []stage) error {
	var stops []func()
	defer func() {
		s.update(func(st *Status) { st.State = StateStopping })
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}()
	var kept []component
	for _, stage := range stages {
		kept = append(kept, stage.components...)
	}
	s.update(func(st *Status) {
		for _, c := range kept {
			st.component(c.name)
		}
	})
	err := s.bringUp(ctx, stages, &stops)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	s.update(func(st *Status) { st.State, st.Ready = StateReady, time.Now() })
	s.log.Info("instance is ready", "home", string(s.home))
	s.watch(ctx, kept)
	return nil
}

// bringUp starts the stages and returns when all components are ready. It adds
// what stops a stage to stops.
func (s *supervisor) bringUp(ctx context.Context, stages []stage, stops *[]func()) error {
	var waiting []component
	for _, stage := range stages {
		*stops = append(*stops, s.start(ctx, stage))
		waiting = append(waiting, stage.components...)
		if stage.then == nil {
			continue
		}
		if err := s.awaitReady(ctx, waiting...); err != nil {
			return err
		}
		if err := stage.then(ctx); err != nil {
			return err
		}
		waiting = nil
	}
	return s.awaitReady(ctx, waiting...)
}

// start keeps the components of a stage running; the returned function stops them
// and waits for their ends.
func (s *supervisor) start(ctx context.Context, stage stage) (stop func()) {
	stopping := make(chan struct{})
	var kept sync.WaitGroup
	for _, c := range stage.components {
		k := &keeper{
			component: c, starter: s.starter, logFile: s.home.log(c.name), log: s.log, stopping: stopping,
			changed: func(pid int, err error) { s.componentChanged(c.name, pid, err) },
		}
		kept.Go(func() { k.run(context.WithoutCancel(ctx)) })
	}
	return func() {
		close(stopping)
		kept.Wait()
		if stage.stopped != nil {
			stage.stopped()
		}
	}
}

// watch asks components that were started again whether they do their work by
// now, until ctx ends.
func (s *supervisor) watch(ctx context.Context, components []component) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, c := range components {
			if now := s.component(c.name); now.PID != 0 && !now.Ready && s.ask(ctx, c) == nil {
				s.log.Info("component is ready again", "component", c.name, "restarts", now.Restarts)
			}
		}
	}, 200*time.Millisecond)
}

// ask asks a component whether it does its work, and notes it of the process that
// runs: the answer may be that of an earlier one, or of one that is not known yet.
func (s *supervisor) ask(ctx context.Context, c component) error {
	pid := s.component(c.name).PID
	if err := c.ready(ctx); err != nil {
		return err
	}
	err := errors.New("it does not run, or was started again meanwhile")
	s.update(func(st *Status) {
		if now := st.component(c.name); now.PID != 0 && now.PID == pid {
			now.Ready, err = true, nil
		}
	})
	return err
}

const (
	// startLimit bounds the time that a component may take to become ready.
	startLimit = 150 * time.Second
	// A component that has ended startAttempts times before it was ready for
	// the first time will not get better.
	startAttempts = 5
)

// awaitReady waits until components do their work for the first time.
func (s *supervisor) awaitReady(ctx context.Context, components ...component) error {
	for _, c := range components {
		ended := fmt.Errorf("ended %d times", startAttempts)
		var last error
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
			err := s.ask(ctx, c)
			if last == nil || ctx.Err() == nil {
				last = err
			}
			if err != nil && s.component(c.name).Restarts >= startAttempts {
				return false, ended
			}
			return err == nil, nil
		})
		if err != nil {
			if !errors.Is(err, ended) {
				err = errors.New("did not become ready")
			}
			file := s.home.log(c.name)
			return fmt.Errorf("%s %w: %w; see its log %s:\n%s", c.name, err, last, file, tailOf(file))
		}
	}
	return nil
}

func (s *supervisor) componentChanged(name string, pid int, err error) {
	s.update(func(st *Status) {
		c := st.component(name)
		if pid != 0 && c.Started {
			c.Restarts++
		}
		c.PID, c.Ready = pid, false
		if pid != 0 {
			c.Started, c.Since = true, time.Now()
		} else {
			c.LastError = errorText(err)
		}
	})
}

// component is what is known of a component now.
func (s *supervisor) component(name string) ComponentStatus {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return *s.status.component(name)
}

// update changes the status and writes it for the commands that ask.
func (s *supervisor) update(change func(*Status)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.status)
	data, err := json.Marshal(s.status)
	if err == nil {
		err = statefile.Replace(s.home.path("run", "status.json"), append(data, '\n'), 0o600)
	}
	if err != nil {
		s.log.Error(err, "cannot write the status")
	}
}

// lock takes the home for this process; the kernel gives it back when the
// process ends, however that is.
func (h Home) lock() (unlock func(), err error) {
	file, err := os.OpenFile(h.path("run", "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// A command that looks whether the home is taken holds the lock for a moment.
	for attempt := 0; ; attempt++ {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if attempt == 200 {
			file.Close()
			return nil, fmt.Errorf("another supervisor runs in %s: %w", h, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// tailOf is the end of a file, for error messages.
func tailOf(file string) string {
	const most = 2000
	data, err := os.ReadFile(file)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return string(data)
}
