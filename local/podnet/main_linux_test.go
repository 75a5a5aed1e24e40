package podnet

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// helperEnv makes the test binary behave as a program of a pod.
const helperEnv = "PODNET_TEST_HELPER"

// shimBinary is the shim's binary that the tests run.
var shimBinary string

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperEnv); helper != "" {
		if err := runHelper(helper); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	// A test run as a user who has no Go tool brings the binary along.
	if shimBinary = os.Getenv("SHIM_TEST_BINARY"); shimBinary == "" {
		dir, err := os.MkdirTemp("", "podnet-test-")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		shimBinary = filepath.Join(dir, "shim")
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", shimBinary, "../../cmd/shim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the shim: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// runHelper is the main function of the test binary in a pod.
func runHelper(helper string) error {
	switch helper {
	case "serve": // answers each connection with a text, on the same port in each pod
		l, err := net.Listen("tcp", ":23456")
		if err != nil {
			return err
		}
		for {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			fmt.Fprint(conn, os.Args[1])
			_ = conn.Close()
		}
	case "ask": // prints what an address answers
		conn, err := net.DialTimeout("tcp", os.Args[1], 10*time.Second)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, conn)
		return err
	}
	return fmt.Errorf("unknown helper %q", helper)
}
