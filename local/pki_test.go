package local

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestEveryCertificateServesItsPurpose(t *testing.T) {
	dir := t.TempDir()
	if err := ensurePKI(dir, "local", now); err != nil {
		t.Fatal(err)
	}
	ca, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	for _, id := range identities("local") {
		t.Run(id.file, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, id.file+".crt"), filepath.Join(dir, id.file+".key"))
			if err != nil {
				t.Fatal(err)
			}
			certificate := pair.Leaf
			usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			if id.server {
				usages = append(usages, x509.ExtKeyUsageServerAuth)
			}
			for _, usage := range usages {
				if _, err := certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now}); err != nil {
					t.Errorf("usage %v: %v", usage, err)
				}
			}
			for _, host := range id.hosts {
				if err := certificate.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
			if certificate.Subject.CommonName != id.name {
				t.Errorf("common name %q, want %q", certificate.Subject.CommonName, id.name)
			}
			if diff := cmp.Diff(id.groups, certificate.Subject.Organization); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANewAuthorityReplacesEveryCertificate(t *testing.T) {
	dir := t.TempDir()
	if err := ensurePKI(dir, "local", now); err != nil {
		t.Fatal(err)
	}
	before := read(t, filepath.Join(dir, "admin.crt"))
	for _, file := range []string{"ca.crt", "ca.key"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ensurePKI(dir, "local", now); err != nil {
		t.Fatal(err)
	}
	if before == read(t, filepath.Join(dir, "admin.crt")) {
		t.Error("a certificate of the old authority was kept")
	}
}

func TestKeysAreForTheOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	if err := ensurePKI(dir, "local", now); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
