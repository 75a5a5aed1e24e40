package local

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/util/keyutil"
)

func makePKI(t *testing.T, dir string, now time.Time) {
	t.Helper()
	if err := ensurePKI(dir, "node-1", now); err != nil {
		t.Fatal(err)
	}
}

// Certificates are made at each start; what they and running pods rest on stays.
func TestTheAuthorityAndTheTokensKeyAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		later  time.Duration
		damage func(t *testing.T, dir string)
		want   []string // the files that change
	}{
		"the next day":                                 {later: 24 * time.Hour},
		"long before the authority ends":               {later: authorityLifetime - renewBefore - time.Hour},
		"the authority ends soon":                      {later: authorityLifetime - renewBefore + time.Hour, want: []string{"ca.crt", "ca.key"}},
		"the authority's key is missing":               {damage: func(t *testing.T, dir string) { remove(t, dir, "ca.key") }, want: []string{"ca.crt", "ca.key"}},
		"the authority's certificate is cut off":       {damage: func(t *testing.T, dir string) { overwrite(t, dir, "ca.crt", "-----BEGIN") }, want: []string{"ca.crt", "ca.key"}},
		"the authority's key is another's":             {damage: func(t *testing.T, dir string) { overwrite(t, dir, "ca.key", read(t, filepath.Join(dir, "admin.key"))) }, want: []string{"ca.crt", "ca.key"}},
		"the key of tokens was emptied by a power cut": {damage: func(t *testing.T, dir string) { overwrite(t, dir, "service-account.key", "") }, want: []string{"service-account.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			makePKI(t, dir, now)
			kept := []string{"ca.crt", "ca.key", "service-account.key"}
			before := map[string]string{}
			for _, file := range kept {
				before[file] = read(t, filepath.Join(dir, file))
			}
			if tc.damage != nil {
				tc.damage(t, dir)
			}
			makePKI(t, dir, now.Add(tc.later))
			changed := slices.DeleteFunc(kept, func(file string) bool { return read(t, filepath.Join(dir, file)) == before[file] })
			if diff := cmp.Diff(tc.want, changed, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("files made anew (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAServerIsNotFoundUnderOtherNames(t *testing.T) {
	dir := t.TempDir()
	makePKI(t, dir, now)
	c, err := tls.LoadX509KeyPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"example.org", "10.96.0.2", "192.168.0.1"} {
		if c.Leaf.VerifyHostname(host) == nil {
			t.Errorf("the API server's certificate is good for %s", host)
		}
	}
}

// The API server reads one file as the key that signs tokens and as the key that
// verifies them; it does not take every form of PEM for both.
func TestTheServiceAccountKeySignsAndVerifies(t *testing.T) {
	dir := t.TempDir()
	makePKI(t, dir, now)
	file := filepath.Join(dir, "service-account.key")
	if _, err := keyutil.PrivateKeyFromFile(file); err != nil {
		t.Errorf("as a private key: %v", err)
	}
	if _, err := keyutil.PublicKeysFromFile(file); err != nil {
		t.Errorf("as a public key: %v", err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
