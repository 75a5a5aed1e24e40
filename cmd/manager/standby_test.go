package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/server"
)

// freeAddresses are n different ones.
func freeAddresses(t testing.TB, n int) (addresses []string) {
	t.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// Between the crash of a leader and the end of its lease the others serve admission
// and take reports.
func TestAManagerThatStandsByServes(t *testing.T) {
	w := newWorld(t, never)
	now := metav1.NowMicro().UTC().Format(metav1.RFC3339Micro)
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"namespace": w.namespace, "name": "vernier-manager"},
		"spec":     map[string]any{"holderIdentity": "another", "leaseDurationSeconds": int64(3600), "acquireTime": now, "renewTime": now},
	}}
	if err := w.client.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	free := freeAddresses(t, 2)
	o := options{
		metricsAddress: "0", healthAddress: free[0], webhookAddress: free[1], reportAddress: "127.0.0.1:0",
		reportURL: "http://127.0.0.1:1", leaderElect: true, namespace: w.namespace,
	}
	id, err := loadIdentity(t.Context(), w.client, o, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	mo, err := managerOptions(scheme, o, id)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(apiServer, mo)
	if err != nil {
		t.Fatal(err)
	}
	listening, err := addReportService(t.Context(), mgr, o, id, http.NewServeMux(), server.ReportConfig{Store: w.store, Keys: func() [][]byte { return [][]byte{id.reportKey} }})
	if err != nil {
		t.Fatal(err)
	}
	if err := addWebhooks(mgr, o, id, w.client, webhook.Rules{Reader: mgr.GetAPIReader()}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(addProbes(mgr, o), addReadiness(mgr, listening)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("the manager:", err)
		}
	})
	w.eventually("the manager that stands by is ready", func() string { return answer(t, "http://"+o.healthAddress+"/readyz") })
	w.eventually("its webhook answers", func() string {
		return answer(t, "https://"+o.webhookAddress+"/validate-kubeflow-org-v1beta1-experiment")
	})
	select {
	case <-mgr.Elected():
		t.Error("it leads, although another holds the lease")
	default:
	}
}

// answer is "" when the address answers with 200.
func answer(t testing.TB, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := c.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s", response.Status, body)
	}
	return ""
}

// Preemption fails no trial, on a cluster as on one machine, and a ResourceQuota finds
// what it may demand of every container.
func TestWhatTrialsOnAClusterGet(t *testing.T) {
	o, err := parseFlags([]string{"--collector-cpu-request=20m", "--collector-memory-request=32Mi", "--collector-cpu-limit=2", "--collector-memory-limit=256Mi"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r := reporting(o, identity{}, nil)
	for i, list := range []corev1.ResourceList{r.Resources.Requests, r.Resources.Limits} {
		want := []string{"20m 32Mi", "2 256Mi"}[i]
		if got := list.Cpu().String() + " " + list.Memory().String(); got != want {
			t.Errorf("the collector gets %s, want %s", got, want)
		}
	}
	if !r.RerunDisrupted {
		t.Error("a pod that was preempted counts as a failure")
	}
}
