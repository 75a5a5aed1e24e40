package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func touchAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOlderLog(t *testing.T) {
	tests := map[string]struct {
		files    []string
		previous bool
		want     string
	}{
		"no log":                        {nil, false, ""},
		"a log that is whole":           {[]string{"0.log"}, false, ""},
		"one that was rotated":          {[]string{"0.log", "0.log.1", "0.log.2"}, false, "0.log.1"},
		"the newest run is whole":       {[]string{"0.log", "0.log.1", "1.log"}, false, ""},
		"the run before was rotated":    {[]string{"0.log", "0.log.1", "1.log"}, true, "0.log.1"},
		"runs are numbers, not words":   {[]string{"9.log", "9.log.1", "10.log"}, false, ""},
		"there is no run before it":     {[]string{"0.log", "0.log.1"}, true, ""},
		"only what was rotated is left": {[]string{"0.log.1"}, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := layout{root: t.TempDir()}
			dir := filepath.Dir(l.log("uid", "main", 0))
			for _, f := range test.files {
				touchAll(t, filepath.Join(dir, f))
			}
			want := ""
			if test.want != "" {
				want = filepath.Join(dir, test.want)
			}
			if got, err := OlderLog(l.root, "uid", "main", test.previous); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	if _, err := OlderLog(t.TempDir(), "../x", "main", false); err == nil {
		t.Error("a pod outside the root is looked at")
	}
}

func TestArchivedLogsThatWereCut(t *testing.T) {
	log := ArchivedLog{Path: filepath.Join(t.TempDir(), "main-0.log")}
	touchAll(t, log.Path, log.Path+".1")
	if cut, err := log.Cut(); err != nil || cut {
		t.Errorf("two parts: %v, %v", cut, err)
	}
	touchAll(t, log.Path+".2")
	if cut, err := log.Cut(); err != nil || !cut {
		t.Errorf("three parts: %v, %v", cut, err)
	}
}

// What means something in a pattern means nothing in the path of a home.
func TestLogsAreKeptInAHomeOfAnyName(t *testing.T) {
	for _, name := range []string{"plain", "run[1]", "run[", `back\slash`, "a*b", "what?", "two words"} {
		t.Run(name, func(t *testing.T) {
			l := layout{root: filepath.Join(t.TempDir(), name)}
			for run := range 4 {
				touchAll(t, l.log("uid", "main", run))
			}
			if err := l.trimLogs("uid", "main", 3); err != nil {
				t.Fatal(err)
			}
			a, err := openArchive(l.archive())
			if err != nil {
				t.Fatal(err)
			}
			pod := identity{Namespace: "default", Name: "a-pod", UID: "uid", Labels: map[string]string{labelTrial: "a-trial"}}
			if err := a.Take(l.logs("uid"), pod, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			found, err := ReadArchivedLogs(l.root, "default", "a-trial", "")
			if err != nil {
				t.Fatal(err)
			}
			var runs []int
			for _, f := range found {
				runs = append(runs, f.Run)
				if there, err := fileExists(f.Path); err != nil || !there {
					t.Errorf("%s is not there: %v", f.Path, err)
				}
			}
			if diff := cmp.Diff([]int{2, 3}, runs); diff != "" {
				t.Errorf("runs whose logs are kept (-want +got):\n%s", diff)
			}
		})
	}
}
