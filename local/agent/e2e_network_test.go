package agent

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// helperEnv makes the test binary behave as a program of a pod.
const helperEnv = "AGENT_TEST_HELPER"

// runHelper is the main function of the test binary in a pod.
func runHelper(helper string) error {
	switch helper {
	case "serve": // answers each connection to an address with a text
		l, err := net.Listen("tcp", os.Args[1])
		if err != nil {
			return err
		}
		fmt.Println("listening")
		for {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			fmt.Fprint(conn, os.Args[2])
			conn.Close()
		}
	}
	return fmt.Errorf("unknown helper %q", helper)
}

// helper is a container that runs a helper of the test binary.
func helper(t *testing.T, name string, args ...string) corev1.Container {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Container{
		Name: "main", Image: "host", Command: append([]string{program}, args...),
		Env: []corev1.EnvVar{{Name: helperEnv, Value: name}},
	}
}

func TestPortForward(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	pod := r.pod("server", "")
	pod.Spec.Containers[0] = helper(t, "serve", free.Addr().String(), "hello")
	r.create(pod)
	eventually(t, "the program listens", func() bool {
		return r.get("server").Status.Phase == corev1.PodRunning && r.logs("server", corev1.PodLogOptions{}) == "listening\n"
	})
	transport, upgrader, err := spdy.RoundTripperFor(world.rest)
	if err != nil {
		t.Fatal(err)
	}
	url := r.client.CoreV1().RESTClient().Post().Resource("pods").Name("server").Namespace(r.namespace).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	ports := []string{fmt.Sprintf(":%d", free.Addr().(*net.TCPAddr).Port)}
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		[]string{"127.0.0.1"}, ports, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case err := <-failed:
		t.Fatal(err)
	case <-ready:
	}
	forwarded, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", forwarded[0].Local))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) != "hello" {
		t.Errorf("got %q, %v; want hello", got, err)
	}
}
