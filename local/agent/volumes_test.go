package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAPayloadIsReplacedAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	write := func(files payload) {
		t.Helper()
		if err := writePayload(dir, files); err != nil {
			t.Fatal(err)
		}
	}
	write(payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}})
	if got := readFile(t, filepath.Join(dir, "a")) + readFile(t, filepath.Join(dir, "sub/b")); got != "12" {
		t.Errorf("content = %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "sub/b")); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	first, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	write(payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}})
	if again, _ := os.Readlink(filepath.Join(dir, dataLink)); again != first {
		t.Error("the same content was written again")
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil { // as if the agent had died before it made the links
		t.Fatal(err)
	}
	write(payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}})
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "1" {
		t.Errorf("content %q, %v, after a write that was cut short", got, err)
	}
	write(payload{})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("entries %v, %v; the last file must go too", entries, err)
	}
	write(payload{"a": {[]byte("3"), 0o644}})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 || readFile(t, filepath.Join(dir, "a")) != "3" {
		t.Errorf("entries %v, %v; want ..data, one version and a", entries, err)
	}
	for _, bad := range []string{"/abs", "../up", "a/../../up"} {
		if err := writePayload(dir, payload{bad: {}}); err == nil {
			t.Errorf("path %q was accepted", bad)
		}
	}
}

func TestASubPathStaysInItsVolume(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if path, err := subPath(dir, "a/b"); err != nil || path != filepath.Join(dir, "a/b") {
		t.Errorf("subPath = %q, %v", path, err)
	}
	for _, bad := range []string{"../x", "/etc", "link", "link/x"} {
		if path, err := subPath(dir, bad); err == nil {
			t.Errorf("subPath %q gave %q, want an error", bad, path)
		}
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	touch(t, file)
	tests := map[string]struct {
		path string
		kind corev1.HostPathType
		ok   bool
	}{
		"a directory":             {dir, corev1.HostPathDirectory, true},
		"a file as directory":     {file, corev1.HostPathDirectory, false},
		"a file":                  {file, corev1.HostPathFile, true},
		"a missing file":          {filepath.Join(dir, "no"), corev1.HostPathFile, false},
		"a directory to be made":  {filepath.Join(dir, "new/deep"), corev1.HostPathDirectoryOrCreate, true},
		"a file to be made":       {filepath.Join(dir, "newfile"), corev1.HostPathFileOrCreate, true},
		"a socket that is a file": {file, corev1.HostPathSocket, false},
		"no type, missing":        {filepath.Join(dir, "any"), corev1.HostPathUnset, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkHostPath(&corev1.HostPathVolumeSource{Path: test.path, Type: &test.kind})
			if (err == nil) != test.ok {
				t.Errorf("err = %v, want ok %t", err, test.ok)
			}
		})
	}
}

// countingTokens gives a new token each time.
type countingTokens struct {
	volumeSource
	given int
}

func (c *countingTokens) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	c.given++
	return fmt.Sprint(c.given), renewal(t0, t0.Add(100*time.Second)), nil
}

func TestATokenIsRenewedWhenMostOfItsLifeIsOver(t *testing.T) {
	now := t0
	source := &countingTokens{}
	keeper := &tokenKeeper{volumeSource: source, now: func() time.Time { return now }}
	var got []string
	for range 4 {
		token, _, err := keeper.Token(t.Context(), &corev1.Pod{}, &corev1.ServiceAccountTokenProjection{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, token)
		now = now.Add(40 * time.Second)
	}
	if diff := cmp.Diff([]string{"1", "1", "2", "3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
