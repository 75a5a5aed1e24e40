package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/local/agent"
	"github.com/vernier-ml/vernier/local/statefile"
)

// ownHome is a home in a short path, as sockets need.
func ownHome(t *testing.T) Home {
	t.Helper()
	dir, err := os.MkdirTemp("", "doctor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := Home(filepath.Join(dir, "home"))
	if err := h.create(); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDoctorJudgesAHome(t *testing.T) {
	write := func(h Home, path, text string) {
		if err := os.WriteFile(h.path(path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status := func(s Status) func(Home) {
		return func(h Home) {
			if err := statefile.WriteJSON(h.path("run", "status.json"), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(Home)
		want   map[string]Level
	}{
		"a new one":            {func(Home) {}, map[string]Level{}},
		"one that others read": {func(h Home) { _ = os.Chmod(string(h), 0o755) }, map[string]Level{"home": LevelFail}},
		"a folder of others' files": {func(h Home) {
			_ = os.RemoveAll(string(h))
			_ = os.Mkdir(string(h), 0o700)
			write(h, "thesis.tex", "x")
		}, map[string]Level{"home": LevelFail}},
		"a file": {func(h Home) {
			_ = os.RemoveAll(string(h))
			_ = os.WriteFile(string(h), nil, 0o700)
		}, map[string]Level{"home": LevelFail, "instance": LevelFail}},
		"a store that is none":    {func(h Home) { write(h, "store/observations.db", "<html>"+strings.Repeat(" ", 100)) }, map[string]Level{"store": LevelFail}},
		"a store cut short":       {func(h Home) { write(h, "store/observations.db", "SQLi") }, map[string]Level{"store": LevelFail}},
		"a store":                 {func(h Home) { write(h, "store/observations.db", "SQLite format 3\x00...") }, map[string]Level{}},
		"ports that are garbage":  {func(h Home) { write(h, portsFile, "{") }, map[string]Level{}},
		"an instance that failed": {status(Status{State: StateFailed, Message: "etcd has ended\nits log"}), map[string]Level{"instance": LevelFail}},
	} {
		t.Run(name, func(t *testing.T) {
			h := ownHome(t)
			tc.change(h)
			got := map[string]Level{}
			for _, f := range append(instanceFindings(h), homeFinding(h, existingParent(string(h)))) {
				if f.Level != LevelOK {
					got[f.Name] = f.Level
					if f.Remedy == "" || f.Found == "" {
						t.Errorf("it does not say what is wrong and what to do: %+v", f)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoctorJudgesAMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		got  Finding
		want Level
	}{
		"a clock of long ago":    {clockFinding(time.Unix(0, 0)), LevelFail},
		"little memory":          {memoryFinding(agent.Survey{Memory: 1 << 20}), LevelWarn},
		"memory that is unknown": {memoryFinding(agent.Survey{MemoryErr: os.ErrNotExist}), LevelWarn},
		"a GPU":                  {gpuFinding(agent.Survey{GPUs: []string{"GPU-a"}, GPUSource: "nvidia-smi"}), LevelOK},
	} {
		if tc.got.Level != tc.want {
			t.Errorf("%s: %+v, want %s", name, tc.got, tc.want)
		}
	}
}

func TestDoctorWithoutPrograms(t *testing.T) {
	h := ownHome(t)
	findings := Diagnose(t.Context(), h, t.TempDir())
	for _, f := range findings {
		if f.Name == "programs" && f.Level == LevelFail {
			return
		}
	}
	t.Errorf("it misses no programs: %+v", findings)
}
