package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/local/podnet"
	"github.com/vernier-ml/vernier/local/shim"
)

// ConditionPodNetwork is the condition of the Node that says whether pods can have
// networks of their own.
const ConditionPodNetwork corev1.NodeConditionType = contract.ConditionPodNetwork

// roleLabels are on the pods of jobs whose pods talk to each other.
var roleLabels = []string{"training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "ray.io/cluster", "volcano.sh/job-name"}

// wantsNetwork decides whether a pod needs an address of its own: it has a name in
// the network, or is one of several that work together. All others stay on the
// machine's network, where programs find what they always found.
func wantsNetwork(pod *corev1.Pod, parallelism int32, services []*corev1.Service) bool {
	switch choice := pod.Annotations[contract.AnnotationNetwork]; {
	case pod.Spec.HostNetwork || choice == contract.NetworkHost:
		return false
	case choice == contract.NetworkPod || pod.Spec.Subdomain != "" || isIndexed(pod) && parallelism > 1:
		return true
	}
	labelled := func(label string) bool { return pod.Labels[label] != "" }
	selected := func(s *corev1.Service) bool {
		return s.Namespace == pod.Namespace && len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
	}
	return slices.ContainsFunc(roleLabels, labelled) || slices.ContainsFunc(services, selected)
}

// isIndexed tells the pods of an Indexed Job.
func isIndexed(pod *corev1.Pod) bool {
	_, ok := pod.Annotations["batch.kubernetes.io/job-completion-index"]
	return ok
}

// tables are the names and addresses of Services. A Service with an address of its
// own resolves to its pods, as a headless one does, unless it changes ports: the
// pods are reached directly then, and refuse ports on which no program listens.
func tables(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice, pods []*corev1.Pod) podnet.Tables {
	t := podnet.Tables{Names: map[string][]netip.Addr{}, Services: map[netip.AddrPort][]netip.AddrPort{}}
	byName := map[string]*corev1.Service{}
	var selected []*discoveryv1.EndpointSlice
	for _, s := range services {
		byName[s.Namespace+"/"+s.Name] = s
		selected = append(selected, selectedBy(s, pods)...)
		if own, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
			t.ClusterIPs = append(t.ClusterIPs, own)
		}
	}
	for i, slice := range slices.Concat(selected, endpoints) {
		service := byName[slice.Namespace+"/"+slice.Labels[discoveryv1.LabelServiceName]]
		if service == nil || slice.AddressType != discoveryv1.AddressTypeIPv4 || i >= len(selected) && len(service.Spec.Selector) > 0 {
			continue
		}
		name := service.Name + "." + service.Namespace + ".svc." + podnet.Zone
		own, err := netip.ParseAddr(service.Spec.ClusterIP)
		mapped := err == nil && slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return servicePort(service, p) != ptr.Deref(p.Port, 0)
		})
		if mapped {
			t.Names[name] = []netip.Addr{own}
		}
		for _, e := range slice.Endpoints {
			if !ptr.Deref(e.Conditions.Ready, true) {
				continue
			}
			for _, text := range e.Addresses {
				at, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				if !mapped {
					add(t.Names, name, at)
				}
				if e.Hostname != nil {
					add(t.Names, *e.Hostname+"."+name, at)
				}
				for _, p := range slice.Ports {
					if port := servicePort(service, p); own.IsValid() && port > 0 && p.Port != nil {
						add(t.Services, netip.AddrPortFrom(own, uint16(port)), netip.AddrPortFrom(at, uint16(*p.Port)))
					}
				}
			}
		}
	}
	return t
}

// selectedBy are the endpoints of a Service with a selector. Its EndpointSlices do
// not do: one pod on the machine's network, whose address is a loopback address,
// makes them invalid as a whole.
func selectedBy(s *corev1.Service, pods []*corev1.Pod) (out []*discoveryv1.EndpointSlice) {
	for _, pod := range pods {
		ready := findCondition(pod.Status.Conditions, corev1.PodReady)
		if len(s.Spec.Selector) == 0 || pod.Namespace != s.Namespace || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) ||
			pod.Status.PodIP == "" || pod.Status.PodIP == pod.Status.HostIP || isTerminal(pod.Status.Phase) ||
			!s.Spec.PublishNotReadyAddresses && (pod.DeletionTimestamp != nil || ready == nil || ready.Status != corev1.ConditionTrue) {
			continue
		}
		e := discoveryv1.Endpoint{Addresses: []string{pod.Status.PodIP}}
		if pod.Spec.Hostname != "" && pod.Spec.Subdomain == s.Name {
			e.Hostname = &pod.Spec.Hostname
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: s.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{e},
		}
		for _, p := range s.Spec.Ports {
			if number := targetPort(p, pod); number > 0 {
				slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &number})
			}
		}
		out = append(out, slice)
	}
	return out
}

// targetPort is the port of a pod that a Service's port stands for, 0 if the pod
// names none like it.
func targetPort(p corev1.ServicePort, pod *corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		return cmp.Or(p.TargetPort.IntVal, p.Port)
	}
	for _, c := range allContainers(&pod.Spec) {
		for _, named := range c.Ports {
			if named.Name == p.TargetPort.StrVal && cmp.Or(named.Protocol, corev1.ProtocolTCP) == p.Protocol {
				return named.ContainerPort
			}
		}
	}
	return 0
}

func add[K, V comparable](m map[K][]V, key K, value V) {
	if !slices.Contains(m[key], value) {
		m[key] = append(m[key], value)
	}
}

// servicePort is the port of a Service that an endpoint's port stands behind, 0 if
// none does.
func servicePort(s *corev1.Service, p discoveryv1.EndpointPort) int32 {
	for _, candidate := range s.Spec.Ports {
		if candidate.Name == ptr.Deref(p.Name, "") && candidate.Protocol == ptr.Deref(p.Protocol, corev1.ProtocolTCP) {
			return candidate.Port
		}
	}
	return 0
}

// network gives pods networks of their own, where the machine allows it.
type network struct {
	options   podnet.Options
	shared    string // why pods share the machine's network; empty: they need not
	loopback  []uint16
	log       logr.Logger
	informers informers.SharedInformerFactory
	services  corelisters.ServiceLister
	endpoints discoverylisters.EndpointSliceLister
	pods      *podSet
	listed    atomic.Bool // the pods are known
	changed   chan struct{}
	starting  sync.Mutex // one holder is enough
}

func newNetwork(ctx context.Context, cfg Config, mounts shim.MountMode, client kubernetes.Interface, apiServer *url.URL, pods *podSet) *network {
	factory := informers.NewSharedInformerFactory(client, 0)
	n := &network{
		options: podnet.Options{Binary: cfg.ShimBinary, Dir: layout{cfg.Root}.network(), Mounts: mounts},
		log:     cfg.Log, informers: factory, loopback: slices.Clone(cfg.LoopbackPorts),
		services: factory.Core().V1().Services().Lister(), endpoints: factory.Discovery().V1().EndpointSlices().Lister(),
		pods: pods, changed: make(chan struct{}, 1),
	}
	if port, err := strconv.ParseUint(apiServer.Port(), 10, 16); err == nil {
		n.loopback = append(n.loopback, uint16(port))
	}
	if err := podnet.Probe(ctx, n.options); err != nil {
		n.shared = err.Error()
		cfg.Log.Info("pods cannot have networks of their own here", "reason", n.shared)
	}
	return n
}

// condition says what pods may expect.
func (n *network) condition() (corev1.ConditionStatus, string, string) {
	if n.shared != "" {
		return corev1.ConditionFalse, "NotPossible", "pods share the machine's network: " + n.shared
	}
	return corev1.ConditionTrue, "PodNetworks", "pods that need one have a network of their own"
}

// follow keeps the tables of the holder up to date until ctx ends.
func (n *network) follow(ctx context.Context) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { n.signal() }, UpdateFunc: func(_, _ any) { n.signal() }, DeleteFunc: func(any) { n.signal() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		n.informers.Core().V1().Services().Informer(), n.informers.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching Services: %w", err)
		}
	}
	n.informers.Start(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.changed:
		}
		if err := n.publish(ctx); err != nil && ctx.Err() == nil {
			n.log.Error(err, "cannot tell the pods' network of Services; trying again")
			time.AfterFunc(retryFirst, n.signal)
		}
	}
}

// signal says that the holder lacks tables.
func (n *network) signal() {
	select {
	case n.changed <- struct{}{}:
	default: // it is known already
	}
}

// synced waits until Services, their endpoints and the pods are known. It is false when ctx
// ends before.
func (n *network) synced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), n.listed.Load,
		n.informers.Core().V1().Services().Informer().HasSynced, n.informers.Discovery().V1().EndpointSlices().Informer().HasSynced)
}

func (n *network) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !n.synced(ctx) {
		return fmt.Errorf("waiting for the list of Services: %w", ctx.Err())
	}
	services, err := n.services.List(labels.Everything())
	if err != nil {
		return err
	}
	endpoints, err := n.endpoints.List(labels.Everything())
	if err != nil {
		return err
	}
	return podnet.Publish(ctx, n.options.Dir, tables(services, endpoints, n.pods.list()))
}

// start makes the network of a pod, with its shim inside, and returns its address
// once the files for names are there.
func (n *network) start(ctx context.Context, pod *corev1.Pod, o shim.Options, files string) (string, error) {
	hostname := hostnameOf(pod)
	n.starting.Lock()
	at, started, err := podnet.Start(ctx, n.options, podnet.Pod{Shim: o, Hostname: hostname, Loopback: n.loopback})
	if started {
		if failed := n.publish(ctx); failed != nil {
			n.signal()
			err = errors.Join(err, failed)
		}
	}
	n.starting.Unlock()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(files, 0o755); err != nil {
		return "", err
	}
	switches, err := os.ReadFile("/etc/nsswitch.conf")
	if err != nil {
		switches = nil // the C library's defaults are right
	}
	for name, text := range map[string]string{
		"hosts":         hostsFile(pod, at.Pod),
		"resolv.conf":   fmt.Sprintf("search %[1]s.svc.%[2]s svc.%[2]s %[2]s\nnameserver %[3]s\noptions ndots:5\n", pod.Namespace, podnet.Zone, at.Gateway),
		"nsswitch.conf": nameSwitch(switches),
	} {
		if err := writeInPlace(filepath.Join(files, name), text); err != nil {
			return "", err
		}
	}
	return at.Pod.String(), nil
}

// writeInPlace replaces the content of a file that running containers may have
// mounted.
func writeInPlace(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// hostnameOf is the name of a pod's host, as the kubelet chooses it.
func hostnameOf(pod *corev1.Pod) string {
	name := pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// hostsFile is a pod's /etc/hosts.
func hostsFile(pod *corev1.Pod, at netip.Addr) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n%s", at)
	if s := pod.Spec.Subdomain; s != "" {
		fmt.Fprintf(&out, "\t%s.%s.%s.svc.%s", hostnameOf(pod), s, pod.Namespace, podnet.Zone)
	}
	fmt.Fprintf(&out, "\t%s\n", hostnameOf(pod))
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(&out, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	return out.String()
}

// nameSwitch is the machine's nsswitch.conf, but hosts are found by file and by DNS
// only: other services ask daemons of the machine.
func nameSwitch(machine []byte) string {
	var out strings.Builder
	for line := range strings.Lines(string(machine)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "hosts:") {
			out.WriteString(line)
		}
	}
	return "hosts: files dns\n" + out.String()
}

// nameMounts puts the files for names where programs look for them, unless the pod
// has something there itself.
func nameMounts(files string, taken []shim.Mount) (mounts []shim.Mount) {
	for _, name := range []string{"hosts", "resolv.conf", "nsswitch.conf"} {
		at := filepath.Join("/etc", name)
		if slices.ContainsFunc(taken, func(m shim.Mount) bool { return m.MountPath == at }) {
			continue
		}
		if _, err := os.Stat(at); err != nil && name == "nsswitch.conf" {
			continue
		}
		mounts = append(mounts, shim.Mount{HostPath: filepath.Join(files, name), MountPath: at, File: true})
	}
	return mounts
}
