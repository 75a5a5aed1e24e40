package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vernier-ml/vernier/local"
	"github.com/vernier-ml/vernier/local/statefile"
)

// aReadyHome is the home of an instance that is held as if a supervisor ran.
func aReadyHome(t *testing.T, api, token string) local.Home {
	t.Helper()
	home := local.Home(t.TempDir())
	run := filepath.Join(string(home), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(run, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := statefile.WriteJSON(filepath.Join(run, "status.json"), local.Status{State: local.StateReady, PID: os.Getpid(), API: api}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home.APIToken(), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestAnInstanceThatRunsNeedsNoOtherPrograms(t *testing.T) {
	alone := t.TempDir()
	g := &global{getenv: func(string) string { return alone }}
	if _, err := g.binaries(aReadyHome(t, "https://127.0.0.1:1", "s3cret")); err != nil {
		t.Error(err)
	}
	if _, err := g.binaries(local.Home(t.TempDir())); err == nil {
		t.Error("an instance was to be started without its programs")
	}
}

// The arguments of a program can be read by every user of a machine.
func TestOpeningTheDashboardShowsItsTokenToNoOne(t *testing.T) {
	programs := t.TempDir()
	given := filepath.Join(programs, "given")
	if err := os.WriteFile(filepath.Join(programs, "xdg-open"), []byte("#!/bin/sh\nprintf '%s' \"$*\" >"+given+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	const address = "https://127.0.0.1:1/#token=s3cret"
	home := aReadyHome(t, "https://127.0.0.1:1", "s3cret")
	root := newRootCommand(false)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"--home", string(home), "dashboard", "--open"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	requireText(t, out.String(), address)
	page, err := os.ReadFile(given)
	if err != nil || strings.Contains(string(page), "s3cret") || !filepath.IsAbs(string(page)) {
		t.Fatalf("the browser is given %q, %v", page, err)
	}
	text, err := os.ReadFile(string(page))
	if err != nil {
		t.Fatal(err)
	}
	requireText(t, string(text), `content="0;url=`+address+`"`)
	if info, err := os.Stat(string(page)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the page: %v, %v", info.Mode(), err)
	}
}

func TestARedirectLeadsNowhereElse(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	for _, address := range []string{"javascript:alert(1)", "file:///etc/passwd", "/#token=x", "https://[::1"} {
		if err := writeRedirect(page, address); err == nil {
			t.Errorf("%s: accepted", address)
		}
	}
	if err := writeRedirect(page, `https://127.0.0.1:1/#token="><script>`); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(page); err != nil || bytes.Contains(text, []byte("<script>")) {
		t.Errorf("%s, %v", text, err)
	}
}
