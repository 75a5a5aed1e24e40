package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// volumeDir makes a directory with files in it.
func volumeDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMounts(t *testing.T) {
	mode := mountMode(t)
	existing := volumeDir(t, "old", "sub/deep")
	volume := volumeDir(t, "file", "dir/inner")
	other := volumeDir(t, "other")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(existing, link); err != nil {
		t.Fatal(err)
	}
	at := func(path string) []Mount { return []Mount{{HostPath: volume, MountPath: path}} }
	cases := map[string]struct {
		mounts []Mount
		script string
		want   string
	}{
		"a directory that exists is covered": {
			at(existing), "ls " + existing, "dir\nfile\n",
		},
		"a directory reached by a symbolic link": {
			at(link), "ls " + link + "/ " + existing, existing + ":\ndir\nfile\n\n" + link + "/:\ndir\nfile\n",
		},
		"a missing directory in a directory keeps its neighbours": {
			at(existing + "/new"), "cd " + existing + "; ls; ls new sub; cat old", "new\nold\nsub\nnew:\ndir\nfile\n\nsub:\ndeep\ntext of old\n",
		},
		"a missing path of several names": {
			at(existing + "/a/b/c"), "cat " + existing + "/a/b/c/file " + existing + "/sub/deep", "text of file\ntext of sub/deep\n",
		},
		"a missing name in the root": {
			at("/vernier-test"), "cat /vernier-test/dir/inner; ls -d /etc /vernier-test; test -e /.host || echo gone", "text of dir/inner\n/etc\n/vernier-test\ngone\n",
		},
		"a missing path below the root": {
			at("/vernier-test/a/b"), "cat /vernier-test/a/b/file", "text of file\n",
		},
		"a missing name in /opt": {
			at("/opt/vernier-test/data"), "cat /opt/vernier-test/data/file", "text of file\n",
		},
		"the service account's place, behind a symbolic link": {
			at("/var/run/secrets/kubernetes.io/serviceaccount"), "cat /var/run/secrets/kubernetes.io/serviceaccount/file /run/secrets/kubernetes.io/serviceaccount/file", "text of file\ntext of file\n",
		},
		"two volumes in one directory": {
			[]Mount{{HostPath: volume, MountPath: "/vernier-test/x"}, {HostPath: other, MountPath: "/vernier-test/y"}},
			"ls /vernier-test/*", "/vernier-test/x:\ndir\nfile\n\n/vernier-test/y:\nother\n",
		},
		"a stand-in within a directory that gets one": {
			[]Mount{{HostPath: volume, MountPath: existing + "/sub/x"}, {HostPath: other, MountPath: existing + "/zzz"}},
			"cd " + existing + "; ls . sub/x zzz", ".:\nold\nsub\nzzz\n\nsub/x:\ndir\nfile\n\nzzz:\nother\n",
		},
		"a volume in a volume": {
			[]Mount{{HostPath: other, MountPath: "/vernier-test/x/dir"}, {HostPath: volume, MountPath: "/vernier-test/x"}},
			"ls /vernier-test/x /vernier-test/x/dir", "/vernier-test/x:\ndir\nfile\n\n/vernier-test/x/dir:\nother\n",
		},
		"a file over a file": {
			[]Mount{{HostPath: volume + "/file", MountPath: "/etc/hosts", File: true}}, "cat /etc/hosts", "text of file\n",
		},
		"a file where there is none": {
			[]Mount{{HostPath: volume + "/file", MountPath: existing + "/conf/app.ini", File: true}}, "cat " + existing + "/conf/app.ini", "text of file\n",
		},
		"a file inside a volume": {
			[]Mount{{HostPath: volume, MountPath: "/vernier-test"}, {HostPath: other + "/other", MountPath: "/vernier-test/file", File: true}},
			"cat /vernier-test/file /vernier-test/dir/inner", "text of other\ntext of dir/inner\n",
		},
		"read-only keeps writers out": {
			[]Mount{{HostPath: volume, MountPath: "/vernier-test", ReadOnly: true}},
			"cat /vernier-test/file; (echo x > /vernier-test/new) 2>/dev/null || echo refused", "text of file\nrefused\n",
		},
		"read-only of one keeps the other writable": {
			[]Mount{{HostPath: other, MountPath: "/vernier-test/ro", ReadOnly: true}, {HostPath: other, MountPath: "/vernier-test/rw"}},
			"touch /vernier-test/rw/new && ls /vernier-test/ro && rm /vernier-test/rw/new", "new\nother\n",
		},
		"a read-only directory over one that exists": {
			[]Mount{{HostPath: volume, MountPath: existing, ReadOnly: true}},
			"(: > " + existing + "/file) 2>/dev/null || echo refused", "refused\n",
		},
		"a stand-in has the mode of the original": {
			at("/tmp/vernier-test"), "stat -c %a /tmp; cat /tmp/vernier-test/file", modeOf(t, "/tmp") + "\ntext of file\n",
		},
		"devices still work beside the termination message": {
			[]Mount{{HostPath: volume + "/file", MountPath: DefaultTerminationPath, File: true}},
			"cat /dev/termination-log; echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 9 /dev/urandom | wc -c; ls -d /dev/shm /dev/pts; readlink /dev/stdin",
			"text of file\n3\n9\n/dev/pts\n/dev/shm\n/proc/self/fd/0\n",
		},
		"a working directory on a volume, and a program too": {
			at("/vernier-test"), "pwd", "/\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			watchHost(t, existing, volume, other, "/tmp/vernier-test")
			p := newPod(t, mode)
			spec := p.shell(c.script)
			spec.Mounts = c.mounts
			if got := p.run(spec); got.Reason != ReasonCompleted {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff(c.want, p.output("main", 0)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func modeOf(t *testing.T, dir string) string {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	mode := fmt.Sprintf("%o", info.Mode().Perm())
	if info.Mode()&os.ModeSticky != 0 {
		mode = "1" + mode
	}
	return mode
}

func TestMountsThatCannotBeMadeSayWhy(t *testing.T) {
	mode := mountMode(t)
	volume := volumeDir(t, "file")
	dangling := filepath.Join(t.TempDir(), "dangling")
	if err := os.Symlink("/no/such/target", dangling); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		mount Mount
		want  string
	}{
		"a source that does not exist":      {Mount{HostPath: volume + "/no", MountPath: "/vernier-test"}, "no such file"},
		"a file that should be a dir":       {Mount{HostPath: volume + "/file", MountPath: "/vernier-test"}, "not a directory"},
		"a directory that should be a file": {Mount{HostPath: volume, MountPath: "/vernier-test", File: true}, "a directory"},
		"a directory over a file":           {Mount{HostPath: volume, MountPath: "/etc/hosts"}, "on this machine /etc/hosts is not a directory"},
		"a file over a directory":           {Mount{HostPath: volume + "/file", MountPath: "/etc", File: true}, "on this machine /etc is a directory"},
		"a path through a file":             {Mount{HostPath: volume, MountPath: "/etc/hosts/x"}, "not a directory"},
		"a path through a dangling link":    {Mount{HostPath: volume, MountPath: dangling + "/x"}, "symbolic link to /no/such/target"},
		"the root":                          {Mount{HostPath: volume, MountPath: "/"}, "must be absolute and not the root"},
		"a relative path":                   {Mount{HostPath: volume, MountPath: "data"}, "must be absolute"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			watchHost(t)
			p := newPod(t, mode)
			spec := p.shell("exit 0")
			spec.Mounts = []Mount{c.mount}
			got := p.run(spec)
			if got.Reason != ReasonStartError || !strings.Contains(got.Message, c.want) {
				t.Errorf("got %+v, want a StartError with %q", got, c.want)
			}
		})
	}
}

func TestProgramAndDirOnAVolume(t *testing.T) {
	p := newPod(t, mountMode(t))
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "train"), []byte("#!/bin/sh\npwd\necho $0 $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for run, argv := range [][]string{{"./train", "a"}, {"train", "b"}, {"/vernier-test/app/train", "c"}} {
		spec := p.shell("")
		spec.Run, spec.LogPath = run, p.log("main", run)
		spec.Argv, spec.Dir = argv, "/vernier-test/app"
		spec.Env = []string{"PATH=/vernier-test/app:/bin"}
		spec.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/app"}}
		if got := p.run(spec); got.Reason != ReasonCompleted {
			t.Errorf("%v: %+v", argv, got)
		}
		if got := p.output("main", run); !strings.HasPrefix(got, "/vernier-test/app\n") || !strings.HasSuffix(got, argv[1]+"\n") {
			t.Errorf("%v wrote %q", argv, got)
		}
	}
}

func TestContainersOfAPodShareAVolume(t *testing.T) {
	p := newPod(t, mountMode(t))
	volume := t.TempDir()
	writer, reader := p.shell("echo 1 > /vernier-test/out/x"), p.shell("until test -e /vernier-test/in/x; do sleep 0.01; done; cat /vernier-test/in/x")
	writer.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/out"}}
	reader.Name, reader.LogPath = "reader", p.log("reader", 0)
	reader.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/in", ReadOnly: true}}
	p.start(reader)
	p.run(writer)
	p.end("reader", 0)
	if got := p.output("reader", 0); got != "1\n" {
		t.Errorf("the reader saw %q", got)
	}
}

func TestTerminationMessageAtItsDefaultPath(t *testing.T) {
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			watchHost(t)
			p := newPod(t, mode)
			spec := p.shell("printf 'loss=0.1' > /dev/termination-log")
			spec.TerminationPath = filepath.Join(p.Dir(), "main", "message")
			if got := p.run(spec); got.TerminationMessage != "loss=0.1" {
				t.Errorf("got %+v, output %q", got, p.output("main", 0))
			}
		})
	}
}

func TestCommandSeesTheContainersMounts(t *testing.T) {
	volume := volumeDir(t, "file")
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			p := newPod(t, mode)
			gone := volumeDir(t, "private")
			spec := p.shell("touch /vernier-test/data/ready; sleep 3600")
			// A mount that has vanished from the machine is seen all the same.
			spec.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/data"}, {HostPath: gone, MountPath: "/vernier-test/gone"}}
			spec.Dir = "/vernier-test/data"
			spec.Env = append(spec.Env, "COLOUR=green")
			p.start(spec)
			await(t, "the container wrote to the volume", func() bool {
				_, err := os.Stat(filepath.Join(volume, "ready"))
				return err == nil
			})
			if err := os.Rename(gone, gone+"-moved"); err != nil {
				t.Fatal(err)
			}
			code, out := p.exec(t, "sh", "-c", "pwd; ls /vernier-test/data; echo $COLOUR; ls /vernier-test/gone 2>/dev/null; exit 3")
			if code != 3 {
				t.Errorf("exit code %d, want 3", code)
			}
			want := "/vernier-test/data\nfile\nready\ngreen\nprivate\n"
			if mode == MountsNone {
				want = volume + "\nfile\nready\ngreen\n"
			}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			_ = os.Remove(filepath.Join(volume, "ready"))

			if code, out := p.exec(t, "no-such-program"); code != 127 || !strings.Contains(out, "not found in PATH") {
				t.Errorf("exit code %d: %q", code, out)
			}
		})
	}
}

func TestPathsAreMappedWhereMountsAreRefused(t *testing.T) {
	volume := volumeDir(t, "file")
	p := newPod(t, MountsNone)
	spec := p.shell("cat /vernier-test/data/file; echo $WHERE; pwd; echo $PATHMAP")
	spec.Env = append(spec.Env, "WHERE=/vernier-test/data/file")
	spec.Dir = "/vernier-test/data/"
	spec.Mounts = []Mount{{HostPath: volume, MountPath: "/vernier-test/data/"}}
	if got := p.run(spec); got.Reason != ReasonCompleted {
		t.Errorf("got %+v", got)
	}
	want := "text of file\n" + volume + "/file\n" + volume + "\n/vernier-test/data=" + volume + "\n"
	if diff := cmp.Diff(want, p.output("main", 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	state, err := p.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Mounts != MountsNone {
		t.Errorf("the state does not tell of the limits: %+v", state)
	}
}
