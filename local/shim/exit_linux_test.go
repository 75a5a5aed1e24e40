package shim

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// modes are the ways to start a program that work on this machine.
func modes(t *testing.T) map[string]MountMode {
	t.Helper()
	all := map[string]MountMode{"without mounts": MountsNone}
	if mode, _ := ProbeMounts(t.Context(), testBinary, t.TempDir()); mode != MountsNone {
		all["with mounts"] = mode
	}
	return all
}

func TestEndOfAProgramIsRecordedAsTheKubeletDoes(t *testing.T) {
	cases := map[string]struct {
		script string
		want   Run
	}{
		"exit 0 is Completed":                  {"exit 0", Run{ExitCode: 0, Reason: ReasonCompleted}},
		"exit 1 is Error":                      {"exit 1", Run{ExitCode: 1, Reason: ReasonError}},
		"exit 255 keeps its code":              {"exit 255", Run{ExitCode: 255, Reason: ReasonError}},
		"exit 137 is not taken for a signal":   {"exit 137", Run{ExitCode: 137, Reason: ReasonError}},
		"SIGTERM is 143":                       {"kill -TERM $$", Run{ExitCode: 143, Signal: 15, Reason: ReasonError}},
		"SIGKILL is 137":                       {"kill -KILL $$", Run{ExitCode: 137, Signal: 9, Reason: ReasonError, Message: "killed with SIGKILL, but not by the node: perhaps the machine ran out of memory (the kernel's log tells)"}},
		"SIGSEGV is 139":                       {"kill -SEGV $$", Run{ExitCode: 139, Signal: 11, Reason: ReasonError}},
		"SIGHUP has its default action":        {"kill -HUP $$; exit 3", Run{ExitCode: 129, Signal: 1, Reason: ReasonError}},
		"SIGPIPE has its default action":       {"kill -PIPE $$; exit 3", Run{ExitCode: 141, Signal: 13, Reason: ReasonError}},
		"the message is what the program left": {"printf because > $MESSAGE; exit 2", Run{ExitCode: 2, Reason: ReasonError, TerminationMessage: "because"}},
		"a long message is cut":                {"yes | head -c 9000 > $MESSAGE", Run{Reason: ReasonCompleted, TerminationMessage: strings.Repeat("y\n", 2048)}},
	}
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			for name, c := range cases {
				t.Run(name, func(t *testing.T) {
					p := newPod(t, mode)
					spec := p.shell(c.script)
					spec.TerminationPath = filepath.Join(p.Dir(), "message")
					spec.TerminationMountPath = filepath.Join(t.TempDir(), "message")
					spec.Env = append(spec.Env, "MESSAGE="+spec.TerminationMountPath)
					got := p.run(spec)
					if got.FinishedAt.Before(got.StartedAt) || got.StartedAt.IsZero() {
						t.Errorf("started %v, finished %v", got.StartedAt, got.FinishedAt)
					}
					c.want.Name, c.want.Phase = "main", Exited
					ignore := cmpopts.IgnoreFields(Run{}, "PID", "StartedAt", "FinishedAt")
					if diff := cmp.Diff(c.want, got, ignore); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			}
		})
	}
}

// writeNoPrograms writes files that cannot be run.
func writeNoPrograms(t *testing.T, dir string) {
	t.Helper()
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"plain.txt": {"hello", 0o644},
		"bad-bang":  {"#!/no/such/interpreter\n", 0o755},
		"junk":      {"\x00\x01\x02", 0o755},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
}

// startFault is a spec that cannot be started; want are parts of the message.
type startFault struct {
	edit func(*ContainerSpec)
	want []string
}

// startFaults are of the files of writeNoPrograms.
func startFaults(dir string) map[string]startFault {
	faults := map[string]startFault{
		"a command that is not in PATH": {
			func(s *ContainerSpec) { s.Argv, s.Env = []string{"trian"}, []string{"PATH=/bin:/opt/no"} },
			[]string{`command "trian"`, "not found in PATH /bin:/opt/no"},
		},
		"a command that does not exist": {
			func(s *ContainerSpec) { s.Argv = []string{"/no/such/program"} },
			[]string{"/no/such/program", "no such file"},
		},
		"a file that is not executable": {
			func(s *ContainerSpec) { s.Argv = []string{filepath.Join(dir, "plain.txt")} },
			[]string{"plain.txt is not executable", "chmod +x"},
		},
		"a file in PATH that is not executable": {
			func(s *ContainerSpec) { s.Argv, s.Env = []string{"plain.txt"}, []string{"PATH=" + dir} },
			[]string{"plain.txt is not executable"},
		},
		"a directory": {
			func(s *ContainerSpec) { s.Argv = []string{dir} },
			[]string{"is a directory"},
		},
		"a script whose interpreter is missing": {
			func(s *ContainerSpec) { s.Argv = []string{"./bad-bang"}; s.Dir = dir },
			[]string{"bad-bang exists, but the interpreter"},
		},
		"a file that is no program": {
			func(s *ContainerSpec) { s.Argv = []string{filepath.Join(dir, "junk")} },
			[]string{"junk is no program for this machine"},
		},
		"a working directory that does not exist": {
			func(s *ContainerSpec) { s.Dir = "/no/such/dir" },
			[]string{"working directory /no/such/dir does not exist"},
		},
		"a working directory that is a file": {
			func(s *ContainerSpec) { s.Dir = filepath.Join(dir, "junk") },
			[]string{"junk is not a directory"},
		},
		"a log that cannot be made": {
			func(s *ContainerSpec) { s.LogPath = filepath.Join(dir, "junk", "log") },
			[]string{"log", "junk"},
		},
	}
	if os.Geteuid() != 0 {
		other := int64(12345)
		faults["another user, without being root"] = startFault{func(s *ContainerSpec) { s.UID = &other }, []string{"run as user 12345", "only root"}}
	}
	return faults
}

func TestProgramThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	writeNoPrograms(t, dir)
	for how, mode := range modes(t) {
		for name, c := range startFaults(dir) {
			t.Run(how+"/"+name, func(t *testing.T) {
				p := newPod(t, mode)
				spec := p.shell("exit 0")
				if mode != MountsNone {
					spec.Mounts = []Mount{{HostPath: t.TempDir(), MountPath: "/vernier-test/volume"}}
				}
				c.edit(&spec)
				got := p.start(spec)
				if got.Phase != Exited || got.Reason != ReasonStartError || got.ExitCode != ExitCodeStartError {
					t.Errorf("got %+v, want a StartError with exit code 128", got)
				}
				for _, want := range c.want {
					if !strings.Contains(got.Message, want) {
						t.Errorf("message %q does not contain %q", got.Message, want)
					}
				}
				if again := p.start(spec); !cmp.Equal(got, again) {
					t.Errorf("a second start answered %+v", again)
				}
			})
		}
	}
}

func TestProgramSeesWhatTheSpecSays(t *testing.T) {
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			p := newPod(t, mode)
			dir := t.TempDir()
			spec := p.shell(`pwd; tr '\0' '\n' </proc/$$/environ | sort; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; read -r _ _ _ _ group session _ </proc/$$/stat; echo "$session $group"; echo $$`)
			spec.Dir, spec.Run, spec.LogPath = dir, 4, p.log("main", 4)
			spec.Env = []string{EnvPodUID + "=another", EnvContainer + "=other/1", "A=1", "B=two words", "PATH=" + os.Getenv("PATH")}
			if mode != MountsNone {
				spec.Mounts = []Mount{{HostPath: t.TempDir(), MountPath: "/vernier-test/volume"}}
			}
			run := p.run(spec)
			pid := itoa(run.PID)
			want := []string{
				dir, "A=1", "B=two words", "PATH=" + os.Getenv("PATH"), "VERNIER_CONTAINER=main/4",
				EnvPodUID + "=" + p.options.PodUID, "/dev/null",
				"4",                  // 0, 1, 2 and the listing itself: nothing of the shim leaks in
				pid + " " + pid, pid, // it leads its session and its group
			}
			got := strings.Split(strings.TrimSpace(p.output("main", 4)), "\n")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUserAndGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	uid, gid := int64(65534), int64(1234)
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			p := newPod(t, mode)
			spec := p.shell("id -u; id -g; id -G; grep CapEff /proc/self/status")
			spec.UID, spec.GID, spec.SupplementalGroups = &uid, &gid, []int64{5, 6}
			if mode != MountsNone {
				spec.Mounts = []Mount{{HostPath: t.TempDir(), MountPath: "/vernier-test/volume"}}
			}
			p.run(spec)
			want := "65534\n1234\n1234 5 6\nCapEff:\t0000000000000000\n"
			if diff := cmp.Diff(want, p.output("main", 0)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRootDoesWithoutCapabilitiesThatAreDropped(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for how, mode := range modes(t) {
		t.Run(how, func(t *testing.T) {
			p := newPod(t, mode)
			spec := p.shell("grep CapEff /proc/self/status; chown 65534 . 2>/dev/null || echo refused")
			spec.Dir = t.TempDir()
			for c := range 64 { // those that the kernel does not know too
				if c != unix.CAP_KILL {
					spec.DropCapabilities = append(spec.DropCapabilities, c)
				}
			}
			p.run(spec)
			if diff := cmp.Diff("CapEff:\t0000000000000020\nrefused\n", p.output("main", 0)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSignalReachesTheMainProcessOnly(t *testing.T) {
	p := newPod(t, MountsNone)
	// The program checkpoints with the help of its worker, which a signal of its own
	// would end.
	spec := p.shell(`trap 'touch go; wait; exit 7' TERM; sh -c 'trap "echo worker was signalled; exit 1" TERM; echo ready; while ! test -e go; do sleep 0.01; done; echo saved' & while :; do sleep 0.01; done`)
	spec.Dir = t.TempDir()
	p.start(spec)
	await(t, "the worker is ready", func() bool { return strings.Contains(p.output("main", 0), "ready") })
	if err := p.Signal(t.Context(), "main", 0, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.end("main", 0); got.ExitCode != 7 || p.output("main", 0) != "ready\nsaved\n" {
		t.Errorf("exit code %d, want 7; output %q", got.ExitCode, p.output("main", 0))
	}
	if err := p.Signal(t.Context(), "main", 0, syscall.SIGTERM); err != nil {
		t.Errorf("a signal to a run that has ended: %v", err)
	}
}

// At the end of a session or a reboot every process gets SIGTERM, the shim too.
func TestASignalToTheShimIsPassedOnWithGrace(t *testing.T) {
	p := newPod(t, MountsNone)
	spec := p.shell(`trap 'echo asked; sleep 0.5; echo saved; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	spec.StopGrace = time.Minute
	p.start(spec)
	stubborn := p.shell(`trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	stubborn.Name, stubborn.LogPath, stubborn.StopGrace = "stubborn", p.log("stubborn", 0), time.Second
	p.start(stubborn)
	for _, name := range []string{"main", "stubborn"} {
		await(t, name+" is ready", func() bool { return strings.Contains(p.output(name, 0), "ready") })
	}
	state, err := p.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, "main is asked to end", func() bool { return strings.Contains(p.output("main", 0), "asked") })
	// The agent, which got the signal too, says the same.
	if err := p.Signal(t.Context(), "main", 0, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	await(t, "the shim ends", func() bool { return !lives(state.PID) })
	if state, err = ReadState(p.Dir()); err != nil {
		t.Fatal(err)
	}
	if got, _ := state.Find("main", 0); got.ExitCode != 3 || p.output("main", 0) != "ready\nasked\nsaved\n" {
		t.Errorf("got %+v, output %q", got, p.output("main", 0))
	}
	if state.Terminating.IsZero() {
		t.Error("the state does not say that the shim was signalled")
	}
	if got, _ := state.Find("stubborn", 0); got.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %+v", got)
	}
}

func TestStdinAndTerminal(t *testing.T) {
	t.Run("stdin is what the client writes, to its end", func(t *testing.T) {
		p := newPod(t, MountsNone)
		spec := p.shell("cat; echo over")
		spec.Stdin = true
		p.start(spec)
		for _, part := range []struct {
			text string
			eof  bool
		}{{"one\n", false}, {"two\n", true}} {
			if err := p.WriteStdin(t.Context(), "main", 0, []byte(part.text), part.eof); err != nil {
				t.Fatal(err)
			}
		}
		p.end("main", 0)
		if diff := cmp.Diff("one\ntwo\nover\n", p.output("main", 0)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a terminal has the size that was asked for", func(t *testing.T) {
		p := newPod(t, MountsNone)
		spec := p.shell("read line; stty size; test -t 1 && echo terminal")
		spec.TTY = true
		p.start(spec)
		if err := p.Resize(t.Context(), "main", 0, 33, 99); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteStdin(t.Context(), "main", 0, []byte("go\n"), false); err != nil {
			t.Fatal(err)
		}
		p.end("main", 0)
		if diff := cmp.Diff("go\r\n33 99\r\nterminal\r\n", p.output("main", 0)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a run without stdin refuses it", func(t *testing.T) {
		p := newPod(t, MountsNone)
		p.start(p.shell("sleep 100"))
		if err := p.WriteStdin(t.Context(), "main", 0, []byte("x"), false); err == nil {
			t.Error("no error")
		}
	})
}

func TestEndDoesNotWaitForAMessageThatIsNoFile(t *testing.T) {
	for name, replace := range map[string]string{
		"a pipe without a writer": "mkfifo $MESSAGE",
		"a link to another file":  "ln -s /etc/hostname $MESSAGE",
		"a directory":             "mkdir $MESSAGE",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, MountsNone)
			spec := p.shell("rm -f $MESSAGE; " + replace + "; exit 4")
			spec.TerminationPath = filepath.Join(p.Dir(), "message")
			spec.Env = append(spec.Env, "MESSAGE="+spec.TerminationPath)
			got := p.run(spec)
			if got.ExitCode != 4 || got.TerminationMessage != "" || !strings.Contains(got.Message, "not a regular file") {
				t.Errorf("ended as %+v, want code 4 and why there is no message", got)
			}
			spec.Run, spec.Argv = 1, p.shell("printf again > $MESSAGE").Argv
			if got := p.run(spec); got.ExitCode != 0 || got.TerminationMessage != "again" {
				t.Errorf("the next run ended as %+v, want a message of its own", got)
			}
		})
	}
}
