package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestAddressesOfAPod(t *testing.T) {
	tests := map[string]struct {
		pod  corev1.Pod
		want []string
	}{
		"one":               {corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}, []string{"10.0.0.1"}},
		"of two families":   {corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00:0::1"}}}}, []string{"10.0.0.1", "fd00::1"}},
		"none yet":          {corev1.Pod{}, nil},
		"that has ended":    {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, PodIP: "10.0.0.1"}}, nil},
		"that has failed":   {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, PodIP: "10.0.0.1"}}, nil},
		"of the whole host": {corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}, nil},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, addressesOf(&tc.pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestKatibPods(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	newTrial := func(namespace string) *v1beta1.Trial {
		return &v1beta1.Trial{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "exp-0000", UID: "uid-" + "of-trial", CreationTimestamp: at(1)},
			Spec:       v1beta1.TrialSpec{Objective: &v1beta1.ObjectiveSpec{ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"acc"}}},
		}
	}
	newPod := func(namespace, name, ip string, minute int) *corev1.Pod {
		started := at(minute + 1)
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-pod", CreationTimestamp: at(minute), Labels: map[string]string{v1beta1.LabelTrial: "exp-0000"}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, StartTime: &started},
		}
	}
	pods := katibPods{fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Pod{}, addressIndex, addressesOf).
		WithIndex(&v1beta1.Trial{}, trialIndex, func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(newTrial("a"), newTrial("b"), newPod("a", "now", "10.0.0.1", 2), newPod("a", "of-an-older-trial", "10.0.0.2", 0), newPod("c", "of-no-trial", "10.0.0.3", 2)).Build()}

	got, err := pods.reporters(t.Context(), netip.MustParseAddr("10.0.0.1"))
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := got[0]; r.Trial.Namespace != "a" || r.Trial.Name != "exp-0000" || r.Pod != "uid-of-pod" || !r.Started.Equal(at(3).Time) || !cmp.Equal(r.Metrics, []string{"loss", "acc"}) {
		t.Errorf("reporter %+v", r)
	}
	for _, address := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		if got, err := pods.reporters(t.Context(), netip.MustParseAddr(address)); err != nil || len(got) > 0 {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
	if trials, err := pods.trials(t.Context(), "exp-0000"); err != nil || len(trials) != 2 {
		t.Errorf("trials %+v, %v", trials, err)
	}
	if trials, err := pods.trials(t.Context(), "exp-0001"); err != nil || len(trials) != 0 {
		t.Errorf("trials %+v, %v", trials, err)
	}
}

func TestKatibIsOffWhereItCannotTellPodsApart(t *testing.T) {
	for want, args := range map[string][]string{
		":6789": nil,
		"":      {"--katib-bind-address=0"},
		":1":    {"--katib-bind-address=:1"},
	} {
		if o, err := parseFlags(args, io.Discard); err != nil || o.katibAddress != want {
			t.Errorf("%q: address %q, %v; want %q", args, o.katibAddress, err, want)
		}
	}
	o, err := parseFlags([]string{"--embedded", "--report-key-file=x", "--katib-bind-address=:1"}, io.Discard)
	if err != nil || o.katibAddress != "" {
		t.Errorf("embedded: address %q, %v", o.katibAddress, err)
	}
	o, err = parseFlags([]string{"--embedded", "--report-key-file=x", "--katib-bind-address=unix:/run/k.sock"}, io.Discard)
	if path, ok := o.katibSocket(); err != nil || !ok || path != "/run/k.sock" {
		t.Errorf("embedded, with a socket: address %q, %v", o.katibAddress, err)
	}
}

// A manager that was killed leaves its socket.
func TestTheSocketForKatibsClientsIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "katib.sock")
	o := options{katibAddress: "unix:" + path}
	for range 2 {
		l, err := o.listenForKatib(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

func TestAFileInThePlaceOfTheSocketStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.csv")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{katibAddress: "unix:" + path}
	if _, err := o.listenForKatib(t.Context()); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// Katib's name leads to a Service with Katib's port, and that to the manager.
func TestKatibsNameLeadsToTheManager(t *testing.T) {
	objects := map[string]map[string]any{}
	for _, folder := range []string{"default", "katib"} {
		rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "config", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rendered.Resources() {
			m, err := r.Map()
			if err != nil {
				t.Fatal(err)
			}
			objects[r.GetKind()+" "+r.GetNamespace()+"/"+r.GetName()] = m
		}
	}
	alias := objects["Service kubeflow/katib-db-manager"]
	if name, _, _ := unstructured.NestedString(alias, "spec", "externalName"); name != "vernier-manager.vernier-system.svc.cluster.local" {
		t.Errorf("katib-db-manager is %q", name)
	}
	var service corev1.Service
	var deployment appsv1.Deployment
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	if err := errors.Join(convert(objects["Service vernier-system/vernier-manager"], &service), convert(objects["Deployment vernier-system/vernier-manager"], &deployment)); err != nil {
		t.Fatal(err)
	}
	ports := map[string]int32{}
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range service.Spec.Ports {
		if ports[p.TargetPort.StrVal] == 0 {
			t.Errorf("the port %s of the Service leads nowhere", p.Name)
		}
		if p.Name == "katib" && (p.Port != 6789 || ports["katib"] != 6789) {
			t.Errorf("katib's port is %d, the container's %d", p.Port, ports["katib"])
		}
	}
	if ports["katib"] == 0 {
		t.Error("the manager has no port katib")
	}
}
