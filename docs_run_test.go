//go:build e2e

package vernier_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBlocksRun does what the pages say, block after block, as a reader would: all
// of a page in one shell, in a home and a directory of its own.
func TestBlocksRun(t *testing.T) {
	of := map[string][]block{}
	var objects []block
	for _, b := range blocks(t) {
		if b.fate() == "admitted" {
			objects = append(objects, b)
		}
		of[b.page] = append(of[b.page], b)
	}
	r := aReader(t)
	t.Run("objects are admitted", func(t *testing.T) { r.admits(t, objects) })
	for _, page := range slices.Sorted(maps.Keys(of)) {
		t.Run(page, func(t *testing.T) { r.follows(t, of[page]) })
	}
}

// reader is who follows the pages: someone with what was built, and Python.
type reader struct {
	bin    string // has vernier, kubectl and Python
	python string
}

func aReader(t *testing.T) *reader {
	t.Helper()
	built := os.Getenv("VERNIER_BIN_DIR")
	if built == "" {
		t.Fatal("VERNIER_BIN_DIR is not set: run make e2e")
	}
	venv := t.TempDir()
	r := &reader{bin: filepath.Join(venv, "bin"), python: filepath.Join(venv, "bin", "python3")}
	for _, argv := range [][]string{
		{"python3", "-m", "venv", "--without-pip", venv},
		{"ln", "-s", filepath.Join(built, "vernier"), filepath.Join(r.bin, "kubectl-vernier")},
	} {
		if err := command(nil, argv...); err != nil {
			t.Fatal(err)
		}
	}
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s/vernier kubectl \"$@\"\n", built)
	if err := os.WriteFile(filepath.Join(r.bin, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	r.bin += ":" + built
	return r
}

// session is a shell's: the blocks of a page in their order.
func (r *reader) session(t *testing.T, dir string, blocks []block) string {
	t.Helper()
	script := "set -eo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
	for i, b := range blocks {
		name := filepath.Join(dir, fmt.Sprint("block", i))
		lines := ""
		switch {
		case b.language == "python":
			if err := command(strings.NewReader(b.text), r.python, "-c", "import ast, sys; ast.parse(sys.stdin.read())"); err != nil {
				t.Errorf("%s: %v", b.at(), err)
			}
			lines = "python3 " + name + "\n"
		case b.language == "go" && b.fate() == "run":
			if err := command(nil, "go", "build", "-buildvcs=false", "-o", name+".program", b.program(t)); err != nil {
				t.Errorf("%s: %v", b.at(), err)
			}
			lines = name + ".program\n"
		case b.language == "sh":
			lines = b.text
		default:
			lines = strings.Join(b.commands(), "")
		}
		switch {
		case b.file != "":
			name = filepath.Join(dir, "project", b.file)
			lines = ""
		case b.notRun != "":
			lines = ""
		}
		if err := os.WriteFile(name, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if lines != "" {
			script += "echo '==> " + b.at() + "'\n" + lines
		}
	}
	return script
}

func (r *reader) follows(t *testing.T, blocks []block) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples", "bin"} {
		at, err := filepath.Abs(name)
		if err == nil {
			err = os.Symlink(at, filepath.Join(project, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	script := r.session(t, dir, blocks)
	if !strings.Contains(script, "==> ") {
		return
	}
	env := r.env(t, home)
	t.Cleanup(func() { down(t, dir, env) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = project, env
	// What the script started has the pipe too, and is ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil {
		t.Fatalf("%v in the block at %s", err, text[max(0, strings.LastIndex(text, "==> ")):])
	} else {
		t.Log(text)
	}
}

func (r *reader) env(t *testing.T, home string) []string {
	client, err := filepath.Abs("clients/python/src")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "PATH=" + r.bin + ":" + os.Getenv("PATH"), "PYTHONPATH=" + client, "PYTHONDONTWRITEBYTECODE=1", "LANG=C.UTF-8"}
}

// down ends the instance of a page, if it started one, and looks for what is left.
func down(t *testing.T, dir string, env []string) {
	cmd := exec.Command(filepath.Join(os.Getenv("VERNIER_BIN_DIR"), "vernier"), "down")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", cmd, err, out)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			t.Errorf("the page left a process: %s: %q", file, line)
		}
	}
}
