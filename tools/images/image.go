package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user of the images; config/manager runs the manager as it too.
const (
	user  = "65532"
	group = "65532"
)

type platformImage struct {
	v1.Image
	platform v1.Platform
}

type file struct {
	path    string
	mode    int64
	content []byte
}

// newImage is an image of two layers: what changes seldom, and the binary.
func newImage(p program, binary []byte, arch, version string) (v1.Image, error) {
	base, err := newLayer([]file{
		{"/etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + group + ":\n")},
		{"/etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + user + ":" + group + ":nonroot:/tmp:/sbin/nologin\n")},
		{"/etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
		{"/tmp/", 0o1777, nil},
	})
	if err != nil {
		return nil, err
	}
	program, err := newLayer([]file{{p.path, 0o755, binary}})
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	if image, err = mutate.AppendLayers(image, base, program); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		User:       user + ":" + group,
		Entrypoint: []string{p.path},
		Cmd:        p.args,
		Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		WorkingDir: "/tmp",
		Labels: map[string]string{
			"org.opencontainers.image.title":    p.title,
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// authorities are Mozilla's root certificates, but for those that its programs
// trust under a condition only, which a list of certificates cannot say.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// newLayer packs files, and the folders above them, without times or owners.
func newLayer(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{}
	for _, f := range files {
		var folders []string
		for dir := filepath.Dir(strings.TrimSuffix(f.path, "/")); dir != "/"; dir = filepath.Dir(dir) {
			folders = append(folders, dir)
		}
		for _, dir := range slices.Backward(folders) {
			if !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
					return nil, err
				}
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path[1:], Mode: f.mode, Size: int64(len(f.content)), Format: tar.FormatPAX}
		if strings.HasSuffix(f.path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// writeArchive writes an OCI image layout whose index lists the images under a
// reference, and gives the digest of what the reference names.
func writeArchive(path, reference string, images []platformImage) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.Image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": reference[strings.LastIndex(reference, ":")+1:],
			"io.containerd.image.name":          reference,
		}},
	})
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "layout")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, top); err != nil {
		return v1.Hash{}, err
	}
	return digest, pack(dir, path)
}

// pack writes the files of a folder as a tar archive, in the order of their names.
func pack(dir, path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}
