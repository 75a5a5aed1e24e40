package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/keyutil"
)

func makePKI(t *testing.T, dir string, now time.Time) {
	t.Helper()
	if err := ensurePKI(dir, "node-1", now); err != nil {
		t.Fatal(err)
	}
}

// readFiles are the files of a folder by name.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.Type().IsRegular() {
			files[e.Name()] = read(t, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

// changedFiles are the names of the files that differ.
func changedFiles(before, after map[string]string) []string {
	var names []string
	for name, data := range after {
		if before[name] != data {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestOnlyWhatMustBeIsMadeAnew(t *testing.T) {
	var leaves []string
	for _, id := range identities("node-1") {
		leaves = append(leaves, id.file+".crt", id.file+".key")
	}
	everything := append([]string{"ca.crt", "ca.key"}, leaves...)
	slices.Sort(leaves)
	slices.Sort(everything)

	for name, tc := range map[string]struct {
		nodeName string
		later    time.Duration
		damage   func(t *testing.T, dir string)
		want     []string
	}{
		"the next day nothing changes": {later: 24 * time.Hour},
		"within 90 days of their end the certificates change and the authority stays": {
			later: certificateLifetime - renewBefore + time.Hour, want: leaves,
		},
		"near the end of the authority all change": {
			later: authorityLifetime - renewBefore + time.Hour, want: everything,
		},
		"a clock that was set back before their start": {later: -48 * time.Hour, want: leaves},
		"another name of the node changes its certificate": {
			nodeName: "node-2", want: []string{"kubelet.crt", "kubelet.key"},
		},
		"a certificate that is missing": {
			damage: func(t *testing.T, dir string) { remove(t, dir, "admin.crt") }, want: []string{"admin.crt", "admin.key"},
		},
		"a key that is missing": {
			damage: func(t *testing.T, dir string) { remove(t, dir, "admin.key") }, want: []string{"admin.crt", "admin.key"},
		},
		"a certificate that is cut off": {
			damage: func(t *testing.T, dir string) { overwrite(t, dir, "admin.crt", "-----BEGIN") }, want: []string{"admin.crt", "admin.key"},
		},
		"a crash between the authority's certificate and its key": {
			damage: func(t *testing.T, dir string) { remove(t, dir, "ca.key") }, want: everything,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			makePKI(t, dir, now)
			before := readFiles(t, dir)
			if tc.damage != nil {
				tc.damage(t, dir)
			}
			nodeName := "node-1"
			if tc.nodeName != "" {
				nodeName = tc.nodeName
			}
			if err := ensurePKI(dir, nodeName, now.Add(tc.later)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, changedFiles(before, readFiles(t, dir))); diff != "" {
				t.Errorf("files made anew (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAServerIsNotFoundUnderOtherNames(t *testing.T) {
	dir := t.TempDir()
	makePKI(t, dir, now)
	c, _, err := readPair(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"example.org", "10.96.0.2", "192.168.0.1"} {
		if c.VerifyHostname(host) == nil {
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
