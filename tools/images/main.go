// Command images builds the container images of Vernier, without a container
// engine: for each an OCI archive with an image for every architecture, and a
// list of what is in it (SPDX). The same sources give the same bytes.
//
//	images -version v1.2.3 -registry ghcr.io/vernier-ml -architectures amd64,arm64 -out bin/images
//
// An archive holds an OCI image layout. containerd imports it (ctr images
// import), and skopeo or crane push it to a registry.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// program is one image: a static binary and what a program finds around it.
type program struct {
	name, title string
	// path of the binary in the image. It is on PATH.
	path string
	// command in cmd that is built; empty: name.
	command string
	// args are given to the binary unless the container says others.
	args []string
}

func programs() []program {
	return []program{
		{name: "manager", title: "The controllers and the report service of Vernier", path: "/usr/local/bin/manager"},
		{name: "collector", title: "The metrics collector that runs beside trials", path: "/usr/local/bin/collector"},
		{name: "vernier", title: "The command-line tool of Vernier", path: "/usr/local/bin/vernier"},
		// For Katib's own controller, which gives neither command nor arguments and has
		// both in one pod.
		{name: "suggestion", title: "The algorithms of Vernier for Katib", path: "/usr/local/bin/suggestion"},
		{name: "earlystopping", title: "The stopping rules of Vernier for Katib", path: "/usr/local/bin/suggestion", command: "suggestion", args: []string{"--listen", ":6788"}},
	}
}

type options struct {
	version       string
	registry      string
	root, out     string
	architectures []string
}

func main() {
	var o options
	var architectures string
	flag.StringVar(&o.version, "version", "", "`version` that the binaries say, and the images' tag")
	flag.StringVar(&o.registry, "registry", "ghcr.io/vernier-ml", "`registry` and path that the images' names begin with; the manager takes the collector from there")
	flag.StringVar(&o.root, "root", ".", "`folder` of the product's sources")
	flag.StringVar(&o.out, "out", "bin/images", "`folder` for the archives")
	flag.StringVar(&architectures, "architectures", "amd64,arm64", "`architectures`, separated by commas")
	flag.Parse()
	o.architectures = strings.Split(architectures, ",")
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.version == "" {
		return errors.New("give a -version: it is the tag of the images")
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, p := range programs() {
		var images []platformImage
		for _, arch := range o.architectures {
			binary := filepath.Join(o.out, "build", arch, p.name)
			if err := build(ctx, o, p, arch, binary); err != nil {
				return err
			}
			content, err := os.ReadFile(binary)
			if err != nil {
				return err
			}
			image, err := newImage(p, content, arch, o.version)
			if err != nil {
				return fmt.Errorf("the image of %s for %s: %w", p.name, arch, err)
			}
			images = append(images, platformImage{image, v1.Platform{OS: "linux", Architecture: arch}})
			if err := writeBill(filepath.Join(o.out, p.name+"-"+arch+".spdx.json"), p, binary, content, o.version); err != nil {
				return fmt.Errorf("what is in %s: %w", binary, err)
			}
		}
		archive := filepath.Join(o.out, p.name+".tar")
		reference := o.registry + "/" + p.name + ":" + o.version
		digest, err := writeArchive(archive, reference, images)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		fmt.Printf("%s\t%s\t%s\n", archive, reference, digest)
	}
	return nil
}

// build compiles a program as a static binary that carries the time zones and
// nothing of the folder it was built in.
func build(ctx context.Context, o options, p program, arch, binary string) error {
	target, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata",
		"-ldflags", "-s -w -buildid= -X main.version="+o.version+" -X main.registry="+o.registry, "-o", target, "./cmd/"+cmp.Or(p.command, p.name))
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w: %s", p.name, arch, err, out)
	}
	return nil
}
