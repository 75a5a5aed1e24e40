package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary act as another program, named by it.
const asProgram = "VERNIER_LOCAL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
		os.Exit(m.Run())
	case "parent":
		os.Exit(parentOfSleep())
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
