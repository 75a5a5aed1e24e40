package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

func TestProgramsAreNotHiddenByMounts(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, link := filepath.Join(root, "home", "bin"), filepath.Join(root, "link")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, link); err != nil {
		t.Fatal(err)
	}
	kept := shim.Mount{HostPath: bin, MountPath: bin, ReadOnly: true}
	cases := map[string]struct {
		mounts []shim.Mount
		path   string
		want   []shim.Mount
	}{
		"a mount elsewhere":             {[]shim.Mount{{MountPath: "/data"}}, bin, nil},
		"a name that begins alike":      {[]shim.Mount{{MountPath: filepath.Join(root, "hom")}}, bin, nil},
		"a mount above":                 {[]shim.Mount{{MountPath: root}}, bin, []shim.Mount{kept}},
		"two mounts above":              {[]shim.Mount{{MountPath: root}, {MountPath: filepath.Dir(bin)}}, bin, []shim.Mount{kept}},
		"a mount by the user":           {[]shim.Mount{{MountPath: bin}}, bin, nil},
		"a file":                        {[]shim.Mount{{MountPath: root, File: true}}, bin, nil},
		"a link to it, both hidden":     {[]shim.Mount{{MountPath: root}}, link, []shim.Mount{{HostPath: bin, MountPath: link, ReadOnly: true}, kept}},
		"a directory that is not there": {[]shim.Mount{{MountPath: root}}, filepath.Join(root, "none"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := keepPrograms(c.mounts, []string{c.path})
			if diff := cmp.Diff(c.want, append([]shim.Mount(nil), got[len(c.mounts):]...)); diff != "" {
				t.Errorf("added mounts (-want +got)\n%s", diff)
			}
		})
	}
}

func TestFilesOfTheMachineAreNotHiddenByTheCollector(t *testing.T) {
	full, empty, hollow, deep := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	touch(t, filepath.Join(full, "train.py"))
	for _, dir := range []string{hollow, deep} {
		if err := os.MkdirAll(filepath.Join(dir, "runs", "a"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	touch(t, filepath.Join(deep, "runs", "a", "model.pt"))
	cases := map[string]struct {
		volume, at string
		want       string
	}{
		"a directory with a program": {trainer.SourceVolume, full, "over " + full + ", which has files on this machine (train.py)"},
		"an empty directory":         {trainer.SourceVolume, empty, ""},
		"mount points of other pods": {trainer.SourceVolume, hollow, ""},
		"a file further below":       {trainer.SourceVolume, deep, "which has files on this machine (runs)"},
		"one that is not there":      {trainer.SourceVolume, filepath.Join(full, "metrics"), ""},
		"a volume of the user's own": {"data", full, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: c.volume, MountPath: c.at}}},
			}}}
			got := checkShadowed(pod)
			if c.want == "" {
				if got != nil {
					t.Errorf("refused: %s", got.Message)
				}
				return
			}
			if got == nil || !strings.Contains(got.Message, c.want) || len(got.Message) > 600 {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}
