//go:build e2e

package e2e

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// katibFolders are those of Katib's examples whose trials are Jobs.
var katibFolders = []string{"hp-tuning", "early-stopping", "metrics-collector", "resume-experiment", "trial-template"}

// katibRefused are the examples that cannot run in the embedded mode, and a word of why;
// without a word they are admitted, though not run.
var katibRefused = map[string]string{
	"custom-metrics-collector": "",                // Katib says in it that its image does not work
	"trial-configmap-source":   "trial-templates", // a ConfigMap of Katib's installation
}

// TestKatibsOwnEndToEndTest runs Katib's script with its examples, from a checkout of
// its repository that KATIB_REPO names. No image is run here: the programs come from
// the repository too, and run with the Python that KATIB_PYTHON names, which has
// torch, torchvision, numpy and cloudml-hypertune. Their data is made up.
func TestKatibsOwnEndToEndTest(t *testing.T) {
	repo := os.Getenv("KATIB_REPO")
	if repo == "" {
		t.Skip("KATIB_REPO is not set: name a checkout of github.com/kubeflow/katib")
	}
	python := cmp.Or(os.Getenv("KATIB_PYTHON"), "python3")
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import torch, torchvision, numpy, hypertune").CombinedOutput(); err != nil {
		t.Fatalf("KATIB_PYTHON=%s lacks what the images of the examples have: %v\n%s", python, err, out)
	}
	t.Setenv("PATH", standForImages(t, repo, python)+":"+os.Getenv("PATH"))
	i := up(t)
	kubeconfig, err := i.vernier("kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	sdk := pythonWith(t, katibSDK)
	for _, folder := range katibFolders {
		files, err := filepath.Glob(filepath.Join(repo, "examples", "v1beta1", folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples in %s: %v", folder, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if why, left := katibRefused[name]; left {
					i.checkKatibRefused(t, file, why)
					return
				}
				cmd := exec.CommandContext(t.Context(), sdk, "run-e2e-experiment.py", "--experiment-path", file, "--namespace", "default", "--verbose")
				cmd.Dir = filepath.Join(repo, "test", "e2e", "v1beta1", "scripts", "gh-actions")
				cmd.Env = append(os.Environ(), "KUBECONFIG="+strings.TrimSpace(kubeconfig), "PYTHONDONTWRITEBYTECODE=1")
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "E2E is succeeded") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// checkKatibRefused holds that an example is refused, and why; or admitted, if why is empty.
func (i *instance) checkKatibRefused(t *testing.T, file, why string) {
	t.Helper()
	out, err := i.vernier("kubectl", "apply", "--dry-run=server", "-f", file)
	if (err == nil) != (why == "") || !strings.Contains(out, why) {
		t.Errorf("%v, want a refusal that says %q:\n%s", err, why, out)
	}
}

// standForImages makes a directory with a python3 that finds the programs of the images
// of Katib's examples where the examples look for them.
func standForImages(t *testing.T, repo, python string) string {
	t.Helper()
	work := t.TempDir()
	for name, n := range map[string]int{"train": 320, "t10k": 100} {
		madeUpImages(t, filepath.Join(work, "data", "FashionMNIST", "raw", name), n)
	}
	real, err := exec.LookPath(python)
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
case $1 in
/opt/pbt/*) file=%[2]q/simple-pbt/${1#/opt/pbt/}; shift; exec %[3]q -B "$file" "$@";;
/opt/pytorch-mnist/*) cd %[1]q; file=%[2]q/pytorch-mnist/${1#/opt/pytorch-mnist/}; shift; OMP_NUM_THREADS=1 exec %[3]q -B "$file" "$@";;
esac
exec %[3]q "$@"
`, work, filepath.Join(repo, "examples", "v1beta1", "trial-images"), real)
	if err := os.WriteFile(filepath.Join(work, "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return work
}

// madeUpImages writes n pictures and their labels as FashionMNIST has them. The label
// decides which rows are bright.
func madeUpImages(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	header := func(words ...uint32) (out []byte) {
		for _, w := range words {
			out = binary.BigEndian.AppendUint32(out, w)
		}
		return out
	}
	const size = 28
	images, labels := header(2051, uint32(n), size, size), header(2049, uint32(n))
	for i := range n {
		label := i % 10
		labels = append(labels, byte(label))
		for p := range size * size {
			pixel := byte((p*7 + i*13) % 60)
			if p/size/3 == label {
				pixel += 180
			}
			images = append(images, pixel)
		}
	}
	write(t, path+"-images-idx3-ubyte", string(images))
	write(t, path+"-labels-idx1-ubyte", string(labels))
}
