package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/pki"
)

// install applies what config/default renders, but no webhooks (they would
// refuse the other tests' experiments) and no definitions (they are there).
func install(t testing.TB, c client.Client) {
	t.Helper()
	for _, u := range manifests(t) {
		var opts []client.CreateOption
		switch u.GetKind() {
		case "CustomResourceDefinition":
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			opts = append(opts, client.DryRunAll)
		}
		if err := c.Create(t.Context(), u, opts...); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// manifests are what config/default renders, namespaces first, as kubectl does.
func manifests(t testing.TB) []*unstructured.Unstructured { return rendered(t, "default") }

// optional are the roles that components give, which config/default has not.
func optional(t testing.TB) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, component := range []string{"impersonation", "alerts"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "components", component, "role.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, u)
		}
	}
	return objects
}

// rendered is what a folder of config renders.
func rendered(t testing.TB, folder string) (objects []*unstructured.Unstructured) {
	t.Helper()
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionLegacy
	result, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "config", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Resources() {
		raw, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	return objects
}

func TestIdentityInSecret(t *testing.T) {
	w := newWorld(t, never)
	o := options{namespace: w.namespace, reportURL: "https://here:1", webhookAddress: ":8443"}
	first, err := loadIdentity(t.Context(), w.client, o, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadIdentity(t.Context(), w.client, o, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.reportKey) != string(second.reportKey) || string(first.ca) != string(second.ca) {
		t.Error("a second start has another key or authority")
	}
	cert, err := second.certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.ca)
	for _, host := range []string{"vernier-manager." + w.namespace + ".svc", "vernier-webhook." + w.namespace + ".svc", "here"} {
		if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	secret := &corev1.Secret{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: secretName}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data[keyEntry] = []byte("short")
	if err := w.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(t.Context(), w.client, o, time.Now); err == nil || !strings.Contains(err.Error(), "delete the secret") {
		t.Errorf("a short key: %v", err)
	}
}

func TestCertificateIsRenewed(t *testing.T) {
	now := time.Now()
	ca, key, err := pki.NewAuthority("vernier", now, caValidity)
	if err != nil {
		t.Fatal(err)
	}
	clock := now
	issued := 0
	get := renewed(func() (*tls.Certificate, error) {
		issued++
		return leaf(ca, key, "ns", clock)
	}, func() time.Time { return clock })
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {leafValidity / 3, 1}, {leafValidity * 3 / 4, 2}} {
		clock = now.Add(step.after)
		if _, err := get(nil); err != nil {
			t.Fatal(err)
		}
		if issued != step.want {
			t.Errorf("after %s %d certificates were made, want %d", step.after, issued, step.want)
		}
	}
}

func TestKeyInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "report.key")
	first, err := secretFromFile(path, "report key", randomKey)
	if err != nil {
		t.Fatal(err)
	}
	second, err := secretFromFile(path, "report key", randomKey)
	if err != nil || string(first) != string(second) || len(first) != keySize {
		t.Errorf("the key is not kept: %x %x %v", first, second, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretFromFile(path, "report key", randomKey); err == nil {
		t.Error("a short key is taken")
	}
}
