package local

import (
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
	ca, _, err := readPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, id := range identities("local") {
		t.Run(id.file, func(t *testing.T) {
			certificate, _, err := readPair(filepath.Join(dir, id.file+".crt"), filepath.Join(dir, id.file+".key"))
			if err != nil {
				t.Fatal(err)
			}
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

func TestCertificatesAreKeptUntilTheyAreAboutToEnd(t *testing.T) {
	tests := map[string]struct {
		later       time.Duration
		node        string
		wantRenewed bool
	}{
		"a start a day later keeps them":                      {24 * time.Hour, "local", false},
		"a start less than 90 days before the end makes them": {certificateLifetime - renewBefore + time.Hour, "local", true},
		"a start after the end makes them":                    {2 * certificateLifetime, "local", true},
		"another node name makes the node's":                  {time.Hour, "elsewhere", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := ensurePKI(dir, "local", now); err != nil {
				t.Fatal(err)
			}
			before := read(t, filepath.Join(dir, "kubelet.crt"))
			key := read(t, filepath.Join(dir, "service-account.key"))
			if err := ensurePKI(dir, test.node, now.Add(test.later)); err != nil {
				t.Fatal(err)
			}
			if renewed := before != read(t, filepath.Join(dir, "kubelet.crt")); renewed != test.wantRenewed {
				t.Errorf("renewed %v, want %v", renewed, test.wantRenewed)
			}
			if key != read(t, filepath.Join(dir, "service-account.key")) {
				t.Error("the key of service accounts changed: tokens of running pods would be void")
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", e.Name(), info.Mode().Perm())
		}
	}
}

func TestADamagedKeyIsAnErrorThatNamesIt(t *testing.T) {
	dir := t.TempDir()
	if err := ensurePKI(dir, "local", now); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.key"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ensurePKI(dir, "local", now); err == nil {
		t.Error("a damaged authority was passed over")
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
