package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// archive writes the images of a program for two architectures.
func archive(t *testing.T, path string) {
	t.Helper()
	var images []platformImage
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := newImage(programs()[1], []byte("a binary for "+arch), arch, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, platformImage{image, v1.Platform{OS: "linux", Architecture: arch}})
	}
	if _, err := writeArchive(path, "ghcr.io/vernier-ml/collector:v1.2.3", images); err != nil {
		t.Fatal(err)
	}
}

func TestTheSameSourcesGiveTheSameArchive(t *testing.T) {
	dir := t.TempDir()
	var got [2][]byte
	for i, name := range []string{"first.tar", "second.tar"} {
		archive(t, filepath.Join(dir, name))
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[i] = content
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Errorf("two archives of the same binaries differ: %d and %d bytes", len(got[0]), len(got[1]))
	}
}

// An archive is read as a registry's clients read it: the tag names an index, the
// index has an image for each architecture.
func TestAnArchiveHoldsAnImageForEachArchitecture(t *testing.T) {
	dir := t.TempDir()
	archive(t, filepath.Join(dir, "a.tar"))
	unpack(t, filepath.Join(dir, "a.tar"), filepath.Join(dir, "layout"))
	top, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(manifest.Manifests); n != 1 {
		t.Fatalf("%d entries, want one", n)
	}
	named := manifest.Manifests[0]
	if got := named.Annotations["io.containerd.image.name"]; got != "ghcr.io/vernier-ml/collector:v1.2.3" {
		t.Errorf("containerd would name it %q", got)
	}
	index, err := top.ImageIndex(named.Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := images.Manifests[i]
		if d.Platform == nil || d.Platform.Architecture != arch {
			t.Errorf("image %d is for %v, want %s", i, d.Platform, arch)
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, arch)
	}
}

func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config.User; got != "65532:65532" {
		t.Errorf("it runs as %q, want a user by number that is not root: runAsNonRoot refuses others", got)
	}
	if got := config.Config.Entrypoint; len(got) != 1 || got[0] != "/usr/local/bin/collector" {
		t.Errorf("entrypoint %q", got)
	}
	if config.Architecture != arch {
		t.Errorf("architecture %q, want %s", config.Architecture, arch)
	}
	files := contents(t, image)
	if got := string(files["usr/local/bin/collector"]); got != "a binary for "+arch {
		t.Errorf("the binary is %q", got)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("no certificate authorities")
	}
	if _, found := files["tmp/"]; !found {
		t.Error("no /tmp")
	}
}

func contents(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		each(t, r, func(name string, content []byte) { files[name] = content })
	}
	return files
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	each(t, f, func(name string, content []byte) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	})
}

func each(t *testing.T, r io.Reader, do func(name string, content []byte)) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		do(h.Name, content)
	}
}

func TestABillListsTheModulesOfABinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBill(programs()[0], self, []byte("content"), "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.Packages {
		if strings.HasSuffix(p.Name, "go-containerregistry") && strings.HasPrefix(p.Version, "v0.") && p.Refs[0].Locator == "pkg:golang/"+p.Name+"@"+p.Version {
			return
		}
	}
	t.Errorf("a module that this test is built from is not listed: %+v", b.Packages)
}
