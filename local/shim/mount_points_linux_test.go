package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// watchHost fails the test if it changes the machine's mounts or the names in the
// directories that its mount paths lie in.
func watchHost(t *testing.T, dirs ...string) {
	t.Helper()
	before := hostFiles(t, dirs)
	t.Cleanup(func() {
		if diff := cmp.Diff(before, hostFiles(t, dirs)); diff != "" {
			t.Errorf("the machine was changed (-before +after)\n%s", diff)
		}
	})
}

func hostFiles(t *testing.T, dirs []string) map[string][]string {
	t.Helper()
	seen := make(map[string][]string)
	for _, dir := range append([]string{"/", "/dev", "/opt", "/run"}, dirs...) {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			seen[dir] = append(seen[dir], e.Name())
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	// Other packages' tests cut the power of loop devices at the same time.
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, " /dev/loop") {
			seen["mounts"] = append(seen["mounts"], line)
		}
	}
	return seen
}

// removeMountPoints removes what was made on the machine to mount on, at the end.
func removeMountPoints(t testing.TB, mounts []Mount) {
	t.Helper()
	var made []string
	for _, m := range mounts {
		for path := m.MountPath; ; path = filepath.Dir(path) {
			if _, err := os.Lstat(path); err == nil {
				break
			}
			made = append(made, path)
		}
	}
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) })
	t.Cleanup(func() {
		for _, path := range made {
			_ = os.Remove(path) // as an ordinary user nothing was made
		}
	})
}

func TestWhatAProgramWritesBesideAVolumeStays(t *testing.T) {
	mode := mountMode(t)
	project, volume := volumeDir(t, "train.py"), volumeDir(t)
	p := newPod(t, mode)
	spec := p.shell("cd " + project + "; echo weights > model.tmp; mv model.tmp model.pt; mv model.pt train.py; echo 0.1 > metrics/m.log; echo w > model.pt")
	spec.Mounts = []Mount{{HostPath: volume, MountPath: project + "/metrics"}}
	if got := p.run(spec); got.Reason != ReasonCompleted || got.StandIns != "" {
		t.Errorf("got %+v: %s", got, p.output("main", 0))
	}
	for file, want := range map[string]string{project + "/model.pt": "w\n", project + "/train.py": "weights\n", volume + "/m.log": "0.1\n"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}

func TestAPathThatCannotBeMadeGetsAStandIn(t *testing.T) {
	mode := mountMode(t)
	volume := volumeDir(t, "file")
	p := newPod(t, mode)
	spec := p.shell("cat /sys/vernier-test/data/file; ls -d /sys/kernel; (: > /sys/new) 2>/dev/null || echo refused")
	spec.Mounts = []Mount{{HostPath: volume, MountPath: "/sys/vernier-test/data"}}
	if got := p.run(spec); got.StandIns != "/sys" {
		t.Errorf("got %+v", got)
	}
	if got := p.output("main", 0); !strings.HasPrefix(got, "text of file\n/sys/kernel\n") {
		t.Errorf("output %q", got)
	}
}

func TestStandInsComeParentsFirst(t *testing.T) {
	dir := volumeDir(t, "sub/deep")
	mounts := []Mount{
		{MountPath: dir + "/sub/x"}, {MountPath: dir + "/z"}, {MountPath: dir + "/z/inside"},
		{MountPath: dir}, {MountPath: "/vernier-nowhere/y"}, {MountPath: "/etc"},
	}
	if got, want := splits(mounts[:3]), []string{dir, dir + "/sub"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := splits(mounts), []string{"/"}; !slices.Equal(got, want) {
		t.Errorf("below a volume: got %v, want %v", got, want)
	}
}

// Katib's and Kubernetes' clients take the directory of the service account for a sign
// that they run in a cluster.
func TestNoPodMakesTheMachineLookLikeACluster(t *testing.T) {
	tests := map[string]struct {
		mount Mount
		want  string
	}{
		"a volume":                   {Mount{MountPath: "/data/run"}, "/data/run"},
		"a file":                     {Mount{MountPath: "/data/run/config", File: true}, "/data/run"},
		"a service account":          {Mount{MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}, "/var/run/secrets"},
		"without the symbolic link":  {Mount{MountPath: "/run/secrets/kubernetes.io/serviceaccount"}, "/run/secrets"},
		"a file beside it":           {Mount{MountPath: "/var/run/secrets/kubernetes.io/token", File: true}, "/var/run/secrets"},
		"a name that only begins so": {Mount{MountPath: "/var/run/secrets/kubernetes.io-mine"}, "/var/run/secrets/kubernetes.io-mine"},
	}
	for name, tc := range tests {
		if got := dirToMake(tc.mount); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
