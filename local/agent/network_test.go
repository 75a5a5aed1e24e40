package agent

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/local/podnet"
)

func TestWantsNetwork(t *testing.T) {
	indexed := map[string]string{"batch.kubernetes.io/job-completion-index": "0"}
	services := []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ps"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"role": "ps"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-hand"}},
	}
	tests := map[string]struct {
		pod         corev1.Pod
		parallelism int32
		want        bool
	}{
		"a single pod":                  {pod: corev1.Pod{}, want: false},
		"with a subdomain":              {pod: corev1.Pod{Spec: corev1.PodSpec{Subdomain: "job"}}, want: true},
		"on the machine's network":      {pod: corev1.Pod{Spec: corev1.PodSpec{Subdomain: "job", HostNetwork: true}}, want: false},
		"that asks for one":             {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{contract.AnnotationNetwork: contract.NetworkPod}}}, want: true},
		"that asks for the machine's":   {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{contract.AnnotationNetwork: contract.NetworkHost}}, Spec: corev1.PodSpec{Subdomain: "job"}}, want: false},
		"of a job with roles":           {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"training.kubeflow.org/job-name": "mnist"}}}, want: true},
		"one of several of a Job":       {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: indexed}}, parallelism: 2, want: true},
		"one at a time of a Job":        {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: indexed}}, parallelism: 1, want: false},
		"one of many that have no rank": {pod: corev1.Pod{}, parallelism: 4, want: false},
		"behind a Service":              {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"role": "ps", "n": "0"}}}, want: true},
		"in another namespace":          {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Labels: map[string]string{"role": "ps"}}}, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := wantsNetwork(&test.pod, test.parallelism, services); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTables(t *testing.T) {
	service := func(name, address string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address, Ports: ports}}
	}
	slice := func(name string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		}
		if port > 0 {
			s.Ports = []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: &port, Protocol: ptr.To(corev1.ProtocolTCP)}}
		}
		return s
	}
	at := func(address, hostname string, ready bool) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
		if hostname != "" {
			e.Hostname = &hostname
		}
		return e
	}
	port := corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP}
	selected := service("selected", "10.96.0.4", corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)})
	selected.Spec.Selector = map[string]string{"role": "ps"}
	pod := func(namespace, ip string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: selected.Spec.Selector},
			Spec:       corev1.PodSpec{Hostname: "ps-0", Subdomain: "selected"},
			Status:     corev1.PodStatus{PodIP: ip, HostIP: "127.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	got := tables(
		[]*corev1.Service{service("job", "None"), service("same", "10.96.0.1", port), service("mapped", "10.96.0.2", port), service("empty", "10.96.0.3", port), selected},
		[]*discoveryv1.EndpointSlice{
			slice("job", 0, at("10.88.0.2", "job-0", true), at("10.88.0.3", "job-1", true), at("10.88.0.4", "job-2", false)),
			slice("same", 80, at("10.88.0.5", "", true)), slice("same", 80, at("10.88.0.6", "", true)),
			slice("mapped", 8080, at("10.88.0.7", "", true)),
			slice("of-no-service", 80, at("10.88.0.8", "", true)),
			slice("selected", 8080, at("10.88.0.9", "", true)), // from before a pod on the machine's network
		},
		[]*corev1.Pod{pod("ns", "127.0.0.1", "True"), pod("ns", "10.88.0.10", "True"), pod("ns", "10.88.0.11", "False"), pod("other", "10.88.0.12", "True")})
	ip, ap := netip.MustParseAddr, netip.MustParseAddrPort
	want := podnet.Tables{
		Names: map[string][]netip.Addr{
			"job.ns.svc.cluster.local":       {ip("10.88.0.2"), ip("10.88.0.3")},
			"job-0.job.ns.svc.cluster.local": {ip("10.88.0.2")},
			"job-1.job.ns.svc.cluster.local": {ip("10.88.0.3")},
			"same.ns.svc.cluster.local":      {ip("10.88.0.5"), ip("10.88.0.6")},
			"mapped.ns.svc.cluster.local":    {ip("10.96.0.2")},

			"selected.ns.svc.cluster.local":      {ip("10.96.0.4")},
			"ps-0.selected.ns.svc.cluster.local": {ip("10.88.0.10")},
		},
		Services: map[netip.AddrPort][]netip.AddrPort{
			ap("10.96.0.1:80"): {ap("10.88.0.5:80"), ap("10.88.0.6:80")},
			ap("10.96.0.2:80"): {ap("10.88.0.7:8080")},
			ap("10.96.0.4:80"): {ap("10.88.0.10:8080")},
		},
		ClusterIPs: []netip.Addr{ip("10.96.0.1"), ip("10.96.0.2"), ip("10.96.0.3"), ip("10.96.0.4")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFilesForNames(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job-0-x7k2p"}, Spec: corev1.PodSpec{
		Hostname: "job-0", Subdomain: "job", HostAliases: []corev1.HostAlias{{IP: "192.0.2.1", Hostnames: []string{"db", "cache"}}},
	}}
	want := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n10.88.0.2\tjob-0.job.ns.svc.cluster.local\tjob-0\n192.0.2.1\tdb\tcache\n"
	if diff := cmp.Diff(want, hostsFile(pod, netip.MustParseAddr("10.88.0.2"))); diff != "" {
		t.Errorf("hosts (-want +got)\n%s", diff)
	}
	got := nameSwitch([]byte("passwd: files systemd\nhosts: mymachines resolve [!UNAVAIL=return] files dns\n"))
	if diff := cmp.Diff("hosts: files dns\npasswd: files systemd\n", got); diff != "" {
		t.Errorf("nsswitch.conf (-want +got)\n%s", diff)
	}
}
