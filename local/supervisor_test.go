package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/local/statefile"
)

func TestASecondSupervisorOfAHomeEndsWithAnError(t *testing.T) {
	home := testHome(t)
	unlock, err := home.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	wantError(t, Supervise(t.Context(), Options{Home: home}), "another supervisor", string(home))
	unlockOther, err := testHome(t).lock()
	if err != nil {
		t.Fatalf("another home cannot be taken: %v", err)
	}
	unlockOther()
}

func TestASupervisorThatIsKilledGivesTheHomeBack(t *testing.T) {
	home := testHome(t)
	holder, line := startProgram(t, "holder", string(home))
	if line != "held" {
		t.Fatalf("the holder says %q", line)
	}
	if running, err := home.isRunning(); err != nil || !running {
		t.Fatalf("isRunning() = %v, %v; want true", running, err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the home is free", func() bool {
		running, err := home.isRunning()
		return err == nil && !running
	})
}

func TestReadStatus(t *testing.T) {
	components := []ComponentStatus{{Name: "etcd", PID: os.Getpid(), Ready: true}}
	for name, tc := range map[string]struct {
		written        *Status
		running        bool
		want           State
		wantComponents int
	}{
		"a home that was never started is stopped":              {want: StateStopped},
		"what a running supervisor says holds":                  {written: &Status{State: StateReady, PID: os.Getpid(), Components: components}, running: true, want: StateReady, wantComponents: 1},
		"one that has just begun has said nothing yet":          {written: &Status{State: StateReady, PID: 1 << 30, Components: components}, running: true, want: StateStarting},
		"what a killed supervisor said last does not hold":      {written: &Status{State: StateReady, Components: components}, want: StateStopped},
		"a supervisor that failed has said why":                 {written: &Status{State: StateFailed, Components: components}, want: StateFailed},
		"a supervisor that was killed at its start has stopped": {written: &Status{State: StateStarting}, want: StateStopped},
	} {
		t.Run(name, func(t *testing.T) {
			home := testHome(t)
			if tc.written != nil {
				if err := statefile.WriteJSON(home.path("run", "status.json"), tc.written); err != nil {
					t.Fatal(err)
				}
			}
			if tc.running {
				unlock, err := home.lock()
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			got, err := ReadStatus(home)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != tc.want || len(got.Components) != tc.wantComponents {
				t.Errorf("state %s with %d components, want %s with %d", got.State, len(got.Components), tc.want, tc.wantComponents)
			}
		})
	}
}

// testSupervisor has no components of its own.
func testSupervisor(t *testing.T) *supervisor {
	t.Helper()
	return &supervisor{home: testHome(t), log: logr.Discard(), starter: newStarter()}
}

func shell(name, script string, ready func(context.Context) error) component {
	return component{name: name, path: "/bin/sh", args: []string{"-c", script}, grace: 5 * time.Second, ready: ready}
}

func isUp(context.Context) error { return nil }

func TestAComponentIsReadyWhenItSaysSo(t *testing.T) {
	s := testSupervisor(t)
	file := s.home.path("run", "is-up")
	c := shell("test", "echo >"+file+"; exec sleep 600", func(context.Context) error {
		_, err := os.Stat(file)
		return err
	})
	defer s.start(t.Context(), stage{components: []component{c}})()
	if err := s.awaitReady(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := s.component("test"); !got.Ready || got.PID == 0 || got.Restarts != 0 {
		t.Errorf("status is %+v", got)
	}
}

// The thread that starts processes is held up here.
func TestAComponentIsNotReadyBeforeItRuns(t *testing.T) {
	s := testSupervisor(t)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	s.starter.requests <- func() { <-held }
	asked := 0
	c := shell("test", "exec sleep 600", func(context.Context) error {
		if asked++; asked == 3 {
			release()
		}
		return nil
	})
	defer s.start(t.Context(), stage{components: []component{c}})()
	defer release()
	if err := s.awaitReady(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := s.component("test"); !got.Ready || got.PID == 0 {
		t.Errorf("asked %d times; status is %+v", asked, got)
	}
}

// A component that a wrong flag ends at once is not waited for.
func TestAComponentThatEndsAgainAndAgainIsGivenUpWithItsLog(t *testing.T) {
	s := testSupervisor(t)
	c := shell("test", "echo the reason >&2; exit 1", func(context.Context) error { return errors.New("connection refused") })
	defer s.start(t.Context(), stage{components: []component{c}})()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit/2)
	defer cancel()
	err := s.awaitReady(ctx, c)
	wantError(t, err, "test ended 5 times", "connection refused", "the reason", s.home.log("test"))
}

func TestTheErrorOfAStartThatTakesTooLongIsTheComponentsOwn(t *testing.T) {
	s := testSupervisor(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c := shell("test", "exec sleep 600", func(ctx context.Context) error {
		asked++
		if asked == 2 {
			cancel()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("not yet")
	})
	defer s.start(t.Context(), stage{components: []component{c}})()
	wantError(t, s.awaitReady(ctx, c), "did not become ready", "not yet")
}

func TestAComponentThatWasStartedAgainIsAskedAgain(t *testing.T) {
	s := testSupervisor(t)
	c := shell("test", "exec sleep 600", func(context.Context) error { return nil })
	defer s.start(t.Context(), stage{components: []component{c}})()
	if err := s.awaitReady(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	first := s.component("test").PID
	s.componentChanged("test", 0, errors.New("signal: killed"))
	if s.component("test").Ready {
		t.Error("a component that has ended is ready")
	}
	s.componentChanged("test", first+1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, []component{c})
	}()
	eventually(t, "it is ready again", func() bool { return s.component("test").Ready })
	cancel()
	<-watched
	got := s.component("test")
	if got.Restarts != 1 || got.LastError != "signal: killed" {
		t.Errorf("status is %+v; want one restart and why", got)
	}
	var written Status
	if err := statefile.ReadJSON(s.home.path("run", "status.json"), &written); err != nil {
		t.Fatal(err)
	}
	if !written.component("test").Ready {
		t.Error("the status file does not say that it is ready")
	}
}

func TestKubeconfigsAreWrittenForEachComponent(t *testing.T) {
	home := testHome(t)
	if err := ensurePKI(home.pki(), "local", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := home.writeKubeconfigs(ports{APIServer: 20001}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{home.Kubeconfig(), home.componentKubeconfig("manager"), home.componentKubeconfig("agent"), home.componentKubeconfig("scheduler"), home.componentKubeconfig("controller-manager")} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), "https://127.0.0.1:20001") {
			t.Errorf("%s does not name the API server:\n%s", file, data)
		}
	}
	p, err := newProber(home)
	if err != nil {
		t.Fatal(err)
	}
	if p.config.Host != "https://127.0.0.1:20001" {
		t.Errorf("the client asks %s", p.config.Host)
	}
}

func TestASecretIsMadeOnceAndAgainWhenItIsEmptied(t *testing.T) {
	file := testHome(t).path("pki", "report.key")
	ensure := func() string {
		if err := ensureSecret(file); err != nil {
			t.Fatal(err)
		}
		return read(t, file)
	}
	first := ensure()
	if second := ensure(); len(first) < 32 || second != first {
		t.Errorf("%q has less than 32 bytes, or is %q now", first, second)
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if third := ensure(); len(third) < 32 || third == first {
		t.Errorf("the emptied one is %q", third)
	}
}

func TestUpWaitsForTheFirstComponentThatIsNotReady(t *testing.T) {
	for name, tc := range map[string]struct {
		components []ComponentStatus
		want       string
	}{
		"nothing has started":                 {want: ""},
		"etcd is ready, the API server isn't": {components: []ComponentStatus{{Name: "etcd", Ready: true}, {Name: "kube-apiserver"}}, want: "kube-apiserver"},
		"all are ready":                       {components: []ComponentStatus{{Name: "etcd", Ready: true}}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waitingFor(Status{Components: tc.components}); got != tc.want {
				t.Errorf("waitingFor() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestStagesStartInOrderAndStopInReverse runs four small programs as an
// instance. Each notes when it starts, after a moment in which the next must not
// start, and when it ends.
func TestStagesStartInOrderAndStopInReverse(t *testing.T) {
	s := testSupervisor(t)
	journal := s.home.path("run", "journal")
	note := func(line string) { appendLine(t, journal, line) }
	program := func(name string) component {
		up := s.home.path("run", name)
		script := fmt.Sprintf(`trap 'sleep 0.05; echo "%[1]s ends" >>%[2]s; exit 0' TERM; sleep 0.05; echo "%[1]s starts" >>%[2]s; >%[3]s; while :; do sleep 0.01; done`, name, journal, up)
		return shell(name, script, func(context.Context) error {
			_, err := os.Stat(up)
			return err
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.run(ctx, []stage{
			{components: []component{program("store")}, then: func(context.Context) error { note("store is ready"); return nil }},
			{components: []component{program("server")}, then: func(context.Context) error { note("server is ready"); return nil }},
			{components: []component{program("agent")}, stopped: func() { note("pods are stopped") }},
		})
	}()
	eventually(t, "the instance is ready", func() bool {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.status.State == StateReady
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"store starts", "store is ready", "server starts", "server is ready", "agent starts",
		"agent ends", "pods are stopped", "server ends", "store ends", "",
	}
	if diff := cmp.Diff(want, strings.Split(string(data), "\n")); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func appendLine(t *testing.T, file, line string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Error(err)
	}
}

func TestAStageThatCannotBeMadeReadyStopsWhatRuns(t *testing.T) {
	s := testSupervisor(t)
	err := s.run(t.Context(), []stage{
		{components: []component{shell("store", "exec sleep 600", isUp)}, then: func(context.Context) error { return errors.New("no such table") }},
		{components: []component{shell("server", "exec sleep 600", isUp)}},
	})
	wantError(t, err, "no such table")
	if got := s.component("store"); got.PID != 0 {
		t.Errorf("the store still runs as process %d", got.PID)
	}
	if got := s.component("server"); got.Started {
		t.Error("the next stage was started")
	}
}

func TestAnInstanceThatIsStoppedWhileItStartsEndsWithoutAnError(t *testing.T) {
	s := testSupervisor(t)
	ctx, cancel := context.WithCancel(t.Context())
	never := shell("store", "exec sleep 600", func(context.Context) error { cancel(); return errors.New("not yet") })
	if err := s.run(ctx, []stage{{components: []component{never}, then: func(context.Context) error { return nil }}}); err != nil {
		t.Fatal(err)
	}
	if got := s.component("store"); got.PID != 0 {
		t.Errorf("the store still runs as process %d", got.PID)
	}
}
