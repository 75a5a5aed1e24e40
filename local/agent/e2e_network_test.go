package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/local/shim"
)

// helperEnv makes the test binary behave as a program of a pod, or as an agent.
const helperEnv = "AGENT_TEST_HELPER"

// runHelper is the main function of the test binary then.
func runHelper(helper string) error {
	switch helper {
	case "agent":
		return runAgent(os.Stdin)
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
			_ = conn.Close()
		}
	case "ask": // prints what an address answers to a plain request
		conn, err := net.DialTimeout("tcp", os.Args[1], 10*time.Second)
		if err != nil {
			return err
		}
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		_, _ = io.Copy(os.Stdout, conn) // it may be reset, since that is not read
		return nil
	}
	return fmt.Errorf("unknown helper %q", helper)
}

// helper is a container that runs a helper of the test binary.
func helper(t testing.TB, name string, args ...string) corev1.Container {
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
	pod := r.pod("server", "")
	pod.Spec.Containers[0] = helper(t, "serve", "127.0.0.1:23456", "hello")
	pod.Annotations = map[string]string{contract.AnnotationNetwork: contract.NetworkPod} // no other program has its ports
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
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		[]string{"127.0.0.1"}, []string{":23456"}, stop, ready, io.Discard, io.Discard)
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
	defer func() { _ = conn.Close() }()
	if got, err := io.ReadAll(conn); string(got) != "hello" {
		t.Errorf("got %q, %v; want hello", got, err)
	}
}

// networked is a pod with a network of its own, in which a program answers with a
// text at port 23456.
func (r *rig) networked(name, text string) *corev1.Pod {
	pod := r.pod(name, "")
	pod.Spec.Hostname, pod.Spec.Subdomain = name, "job"
	pod.Spec.Containers[0] = helper(r.t, "serve", "0.0.0.0:23456", text)
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(23456)}}}
	return pod
}

func (r *rig) awaitReady(name string) *corev1.Pod {
	r.t.Helper()
	return r.await(name, "pod "+name+" is ready", func(p *corev1.Pod) bool {
		c := findCondition(p.Status.Conditions, corev1.PodReady)
		return c != nil && c.Status == corev1.ConditionTrue
	})
}

// expose does what the controller of endpoint slices does, which does not run here.
func (r *rig) expose(pods ...*corev1.Pod) {
	r.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Name: "job", Namespace: r.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "job"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, p := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{p.Status.PodIP}, Hostname: &p.Spec.Hostname})
	}
	data, err := json.Marshal(slice)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.client.DiscoveryV1().EndpointSlices(r.namespace).Patch(r.t.Context(), "job", types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)}); err != nil {
		r.t.Fatal(err)
	}
}

// ask is what an address answers to a program of the pod, after its exit code.
func (r *rig) ask(pod *corev1.Pod, address string) string {
	r.t.Helper()
	program, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	client, state, err := shim.Attach(r.t.Context(), layout{r.config.Root}.shim(pod.UID))
	if err != nil {
		r.t.Fatal(err)
	}
	run, _ := state.Latest("main")
	var out bytes.Buffer
	code, err := runPlain(r.t.Context(), client, run, []string{"/usr/bin/env", helperEnv + "=ask", program, address}, nil, &out, io.Discard)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", code, out.String())
}

func TestPodsWithNetworksOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if c := r.networkCondition(); c.Status != corev1.ConditionTrue {
		t.Skip(c.Message)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	if _, err := r.client.CoreV1().Services(r.namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.create(r.networked("zero", "I am zero"))
	r.create(r.networked("one", "I am one"))
	r.create(r.pod("plain", "hostname; sleep 1000"))
	zero, one := r.awaitReady("zero"), r.awaitReady("one")
	if plain := r.awaitPhase("plain", corev1.PodRunning); plain.Status.PodIP != "127.0.0.1" || zero.Status.PodIP == one.Status.PodIP || zero.Status.HostIP != "127.0.0.1" {
		t.Fatalf("plain is at %s, zero at %s, one at %s", plain.Status.PodIP, zero.Status.PodIP, one.Status.PodIP)
	}
	r.expose(zero, one)
	eventually(t, "one finds zero by name", func() bool { return r.ask(one, "zero.job:23456") == "0 I am zero" })
	if got := r.ask(one, "one:23456"); got != "0 I am one" {
		t.Errorf("one asks itself: %q", got)
	}
	api, err := url.Parse(world.rest.Host)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ask(one, api.Host); !strings.Contains(got, "HTTPS server") {
		t.Errorf("one asks the API server: %q", got)
	}

	// The network outlives the agent; a pod that is made anew is elsewhere.
	r.stop(syscall.SIGKILL)
	if got := r.ask(one, "zero.job:23456"); got != "0 I am zero" {
		t.Errorf("without an agent: %q", got)
	}
	r.start()
	if again := r.awaitReady("one"); again.Status.PodIP != one.Status.PodIP || again.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("after the agent: %+v", again.Status)
	}
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "zero", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	r.awaitGone("zero")
	r.create(r.networked("zero", "I am zero again"))
	moved := r.awaitReady("zero")
	if moved.Status.PodIP == zero.Status.PodIP {
		t.Errorf("zero is at %s as before", moved.Status.PodIP)
	}
	r.expose(moved, one)
	eventually(t, "one finds the new zero by name", func() bool { return r.ask(one, "zero.job:23456") == "0 I am zero again" })

	// Nothing is left when the node goes down.
	r.stop(syscall.SIGKILL)
	if err := StopPods(t.Context(), r.config.Root); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no process of the node is left", func() bool {
		lines, err := exec.Command("pgrep", "-f", r.config.Root).Output()
		return err != nil && len(lines) == 0
	})
}

func TestAPodThatMustShareTheMachinesNetworkSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.ShimBinary = withoutNetworks(t, c.ShimBinary) })
	pod := r.networked("shares", "hello")
	pod.Spec.Containers[0].ReadinessProbe = nil
	pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "sleep 1000"}
	r.create(pod)
	if got := r.awaitPhase("shares", corev1.PodRunning); got.Status.PodIP != "127.0.0.1" {
		t.Errorf("it is at %s", got.Status.PodIP)
	}
	eventually(t, "an event says so", func() bool {
		events, err := r.client.CoreV1().Events(r.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "NetworkShared" && strings.Contains(e.Message, "not on this machine")
		})
	})
	if c := r.networkCondition(); c.Status != corev1.ConditionFalse {
		t.Errorf("the node says %+v", c)
	}
}

// networkCondition is what the node says of networks of pods.
func (r *rig) networkCondition() corev1.NodeCondition {
	r.t.Helper()
	node, err := r.client.CoreV1().Nodes().Get(r.t.Context(), r.node, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == ConditionPodNetwork {
			return c
		}
	}
	r.t.Fatalf("the node says nothing of networks: %+v", node.Status.Conditions)
	return corev1.NodeCondition{}
}

// withoutNetworks is a shim for which the machine refuses networks.
func withoutNetworks(t *testing.T, binary string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shim")
	script := "#!/bin/sh\nif test \"$1\" = network; then echo not on this machine >&2; exit 1; fi\nexec " + binary + " \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
