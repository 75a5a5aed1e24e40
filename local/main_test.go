package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/local/statefile"
)

// asProgram makes the test binary act as another program, named by it.
const asProgram = "VERNIER_LOCAL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "parent":
		os.Exit(parentOfSleep())
	case "supervisor":
		os.Exit(actAsSupervisor(Home(os.Args[2]), Status{State: StateReady}))
	case "starting":
		os.Exit(actAsSupervisor(Home(os.Args[2]), Status{State: StateStarting, Components: []ComponentStatus{{Name: "etcd"}}}))
	case "init":
		os.Exit(actAsInit())
	case "holder":
		os.Exit(holdHome(Home(os.Args[1])))
	}
}

// parentOfSleep starts a component as the supervisor does, prints its process
// id, and waits to be killed.
func parentOfSleep() int {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = childAttributes()
	if err := newStarter().start(cmd); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

// holdHome takes a home as the supervisor does, says so, and waits to be killed.
func holdHome(home Home) int {
	if _, err := home.lock(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	select {}
}

// actAsSupervisor holds a home and says how far it is until it gets SIGTERM.
func actAsSupervisor(home Home, status Status) int {
	unlock, err := home.lock() // a lock that is not referred to is given back
	if err != nil {
		return 1
	}
	defer unlock()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	status.PID = os.Getpid()
	say := func(state State) {
		status.State = state
		if err := statefile.WriteJSON(home.path("run", "status.json"), status); err != nil {
			panic(err)
		}
	}
	say(status.State)
	<-stop
	say(StateStopping)
	<-time.After(300 * time.Millisecond)
	say(StateStopped)
	return 0
}

// actAsInit is RunAsInit as process 1, and its child otherwise: that leaves an
// orphan and exits with 7 if it was reaped, else with 9.
func actAsInit() int {
	if os.Getpid() == 1 {
		code, err := RunAsInit()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		return code
	}
	out, err := exec.Command("sh", "-c", "sleep 0.05 >/dev/null & echo $!").Output()
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || convErr != nil {
		return 1
	}
	for range 400 {
		if !isAlive(pid) {
			return 7
		}
		<-time.After(10 * time.Millisecond)
	}
	return 9
}

// startProgram starts the test binary as a program and returns its first line.
func startProgram(t *testing.T, program string, args ...string) (cmd *exec.Cmd, firstLine string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"="+program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("program %s said nothing: %v", program, err)
	}
	return cmd, strings.TrimSpace(string(line[:n]))
}

// eventually polls until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-poll.C:
		}
	}
}

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }
