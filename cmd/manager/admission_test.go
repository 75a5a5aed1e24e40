package main

import (
	"context"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes how to reach the tests' API server as an account.
func writeKubeconfig(t *testing.T, as rest.ImpersonationConfig) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "test",
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: apiServer.Host, CertificateAuthorityData: apiServer.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: apiServer.CertData, ClientKeyData: apiServer.KeyData, Impersonate: as.UserName, ImpersonateGroups: as.Groups,
		}},
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Admission is served with the rights of its account, and without a store.
func TestAdmissionAlone(t *testing.T) {
	w := newWorld(t, never)
	install(t, w.client)
	kubeconfig := writeKubeconfig(t, account("vernier-webhook"))
	free := freeAddresses(t, 2)
	o, err := parseFlags([]string{
		"--kubeconfig=" + kubeconfig, "--admission-only", "--leader-elect", "--namespace=vernier-system", "--store=sqlite:/proc/no/points.db",
		"--metrics-bind-address=0", "--health-probe-bind-address=" + free[0], "--webhook-bind-address=" + free[1],
	}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("the manager:", err)
		}
	})
	w.eventually("it is ready", func() string { return answer(t, "http://"+o.healthAddress+"/readyz") })
	w.eventually("it answers", func() string {
		return answer(t, "https://"+o.webhookAddress+"/validate-kubeflow-org-v1beta1-experiment")
	})
}
