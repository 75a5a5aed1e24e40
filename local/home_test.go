package local

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/local/statefile"
)

func TestDefaultHome(t *testing.T) {
	tests := map[string]struct {
		env     map[string]string
		want    Home
		wantErr bool
	}{
		"the state directory comes first": {env: map[string]string{"XDG_STATE_HOME": "/state", "HOME": "/me"}, want: "/state/vernier"},
		"else the user's home":            {env: map[string]string{"HOME": "/me"}, want: "/me/.local/state/vernier"},
		"a relative directory is ignored": {env: map[string]string{"XDG_STATE_HOME": "state", "HOME": "/me"}, want: "/me/.local/state/vernier"},
		"no home is an error":             {wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DefaultHome(func(k string) string { return test.env[k] })
			if got != test.want || (err != nil) != test.wantErr {
				t.Errorf("got %q, %v; want %q, error %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

// Most often it is that of another user, or VERNIER_HOME is not what was meant.
func TestAHomeThatCannotBeUsedSaysHowToNameAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{"a file": Home(filepath.Join(file, "home")).create()}
	if _, err := os.ReadDir(closed); err != nil { // root may read it
		_, errs["a folder of another user"] = ReadStatus(Home(closed))
	}
	for name, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "--home") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// To close it would break what others use.
func TestAFolderOfOthersIsNotToBeClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Home(dir).create(); err == nil || strings.Contains(err.Error(), "chmod") || !strings.Contains(err.Error(), "hosts") {
		t.Error(err)
	}
}

func TestAHomeThatOthersCanReadIsRefused(t *testing.T) {
	home := Home(filepath.Join(t.TempDir(), "home"))
	if err := home.create(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(string(home), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := home.create(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}

// The launchers of MPIJobs start processes by a command that a shell reads.
func TestLaunchersFindAHomeOfAnyName(t *testing.T) {
	for _, name := range []string{"plain", "two words", "o'brien", `$(false) "x" \`, "''"} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{home: Home(filepath.Join(t.TempDir(), name)), binaries: Binaries(t.TempDir())}
			if err := os.WriteFile(s.binaries.path("vernier"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			command := ""
			for _, arg := range s.manager().args {
				if given, ok := strings.CutPrefix(arg, "--operator-kubectl="); ok {
					command = given
				}
			}
			got, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", command+" exec").Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("--home\n"+string(s.home)+"\nkubectl\nexec\n", string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPortsAreKeptUnlessTheyAreTaken(t *testing.T) {
	first, err := choosePorts(ports{}, notAgain)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range first.all() {
		if *p == 0 || seen[*p] {
			t.Errorf("port %d is chosen twice or not at all", *p)
		}
		seen[*p] = true
	}
	again, err := choosePorts(first, notAgain)
	if err != nil {
		t.Fatal(err)
	}
	if again != first {
		t.Errorf("free ports were not kept: %+v, then %+v", first, again)
	}
	taken, err := net.Listen("tcp", address(first.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	resumed, err := choosePorts(first, notAgain)
	if err != nil {
		t.Fatal(err)
	}
	if resumed.APIServer == first.APIServer {
		t.Error("a port that is taken was chosen again")
	}
	resumed.APIServer = first.APIServer
	if resumed != first {
		t.Errorf("another port changed: %+v, then %+v", first, resumed)
	}
}

func TestReadStatusOfAHomeWithoutASupervisor(t *testing.T) {
	home := Home(filepath.Join(t.TempDir(), "home"))
	if status, err := ReadStatus(home); err != nil || status.State != StateStopped {
		t.Errorf("an absent home: %+v, %v", status, err)
	}
	if err := home.create(); err != nil {
		t.Fatal(err)
	}
	said := Status{State: StateReady, PID: 1, Components: []ComponentStatus{{Name: "etcd", PID: 2}}}
	if err := statefile.WriteJSON(home.path("run", "status.json"), said); err != nil {
		t.Fatal(err)
	}
	status, err := ReadStatus(home)
	if err != nil || status.State != StateStopped || len(status.Components) != 0 {
		t.Errorf("a supervisor that was killed: %+v, %v; want Stopped", status, err)
	}
	said.State, said.Message = StateFailed, "no port"
	if err := statefile.WriteJSON(home.path("run", "status.json"), said); err != nil {
		t.Fatal(err)
	}
	if status, err = ReadStatus(home); err != nil || status.State != StateFailed || status.Message != "no port" {
		t.Errorf("a supervisor that failed: %+v, %v", status, err)
	}
}

func TestFilesOfOthersAreNeverRemoved(t *testing.T) {
	private := func(t *testing.T) Home {
		t.Helper()
		home := Home(filepath.Join(t.TempDir(), "mine"))
		if err := os.Mkdir(string(home), 0o700); err != nil {
			t.Fatal(err)
		}
		return home
	}
	thesis := func(home Home) string { return home.path("thesis.tex") }
	t.Run("a folder that holds files does not become a home", func(t *testing.T) {
		home := private(t)
		if err := os.WriteFile(thesis(home), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, home.create(), "thesis.tex", "empty")
		if _, err := Delete(home); err == nil {
			t.Error("a folder that is no home was removed")
		}
		if !fileExists(thesis(home)) {
			t.Error("the file is gone")
		}
	})
	t.Run("what was put into a home later stays", func(t *testing.T) {
		home := private(t)
		if err := home.create(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(thesis(home), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := home.create(); err != nil {
			t.Errorf("a second start: %v", err)
		}
		kept, err := Delete(home)
		if err != nil || len(kept) != 1 || !fileExists(thesis(home)) || fileExists(home.path("etcd")) {
			t.Errorf("kept %v, %v", kept, err)
		}
	})
	t.Run("a home with nothing else goes", func(t *testing.T) {
		home := private(t)
		if err := home.create(); err != nil {
			t.Fatal(err)
		}
		if kept, err := Delete(home); err != nil || len(kept) > 0 || fileExists(string(home)) {
			t.Errorf("kept %v, %v", kept, err)
		}
	})
}

// A power cut leaves files that were not synced empty; whichever it hits, the
// next start must come up.
func TestAnyEmptiedFileIsMadeAgain(t *testing.T) {
	home := testHome(t)
	start := func() error {
		_, err := newSupervisor(Options{Home: home, Log: logr.Discard()})
		return err
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	var files []string
	err := filepath.WalkDir(string(home), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range append(files, "") {
		for _, f := range files {
			if f == file || file == "" { // at last, all of them
				if err := os.Truncate(f, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := start(); err != nil {
			t.Errorf("%s was emptied: %v", file, err)
		}
		if err := home.create(); err != nil {
			t.Errorf("%s was emptied: %v", file, err)
		}
	}
}

func TestFindBinariesNamesWhatIsMissing(t *testing.T) {
	with := func(folder string, names ...string) string {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	whole := with("bin", "controlplane", "manager", "collector", "shim", "vernier")
	wheel := with("vernier_hpo/bin", "vernier")
	tests := map[string]struct {
		dir, path string
		want      []string
	}{
		"one":                               {with("bin", "controlplane", "manager", "shim", "vernier"), whole, []string{": collector; build them with: make build"}},
		"the Python package, and no other":  {wheel, wheel, []string{"Python package", "make build"}},
		"the Python package before another": {wheel, wheel + ":" + whole, []string{"Python package", "use " + filepath.Join(whole, "vernier")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", tc.path)
			_, err := FindBinaries(tc.dir)
			wantError(t, err, tc.want...)
		})
	}
}

// testHome is a home with its folders.
func testHome(t *testing.T) Home {
	t.Helper()
	home := Home(filepath.Join(t.TempDir(), "home"))
	if err := home.create(); err != nil {
		t.Fatal(err)
	}
	return home
}

// wantError holds that err says each of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that names %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not name %q", err, word)
		}
	}
}
