package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPodStart measures a pod from nothing to its first process, and the
// whole life of a pod whose program ends at once. cpu-ms is the processor time of
// that life, of all processes, the program's own included.
func BenchmarkPodStart(b *testing.B) {
	mode, _ := ProbeMounts(b.Context(), testBinary, b.TempDir())
	cases := []struct {
		name   string
		mounts MountMode
		edit   func(*ContainerSpec, string)
	}{
		{"no mounts", MountsNone, func(*ContainerSpec, string) {}},
		{"a volume that exists", mode, func(s *ContainerSpec, dir string) {
			s.Mounts = []Mount{{HostPath: dir, MountPath: "/mnt"}}
		}},
		{"termination message in dev", mode, func(s *ContainerSpec, dir string) {
			s.TerminationPath = filepath.Join(dir, "message")
		}},
		{"a volume in the root, account and message", mode, func(s *ContainerSpec, dir string) {
			s.TerminationPath = filepath.Join(dir, "message")
			s.Mounts = []Mount{
				{HostPath: dir, MountPath: "/workspace"},
				{HostPath: dir, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
			}
		}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			if c.mounts == MountsNone && c.name != "no mounts" {
				b.Skip("no mounts on this machine")
			}
			var first, resident time.Duration
			cpu := cpuTime(b)
			n := 0
			for b.Loop() {
				o := Options{
					Binary: testBinary, Dir: filepath.Join(b.TempDir(), "pod"), Mounts: c.mounts,
					PodUID: fmt.Sprintf("bench-%d-%d", os.Getpid(), n),
				}
				began := time.Now()
				p, err := Spawn(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				spec := ContainerSpec{Name: "main", Argv: []string{"/bin/true"}, LogPath: filepath.Join(o.Dir, "log")}
				c.edit(&spec, b.TempDir())
				run, err := p.Start(b.Context(), spec)
				if err != nil || run.Reason == ReasonStartError {
					b.Fatal(run, err)
				}
				first += time.Since(began)
				resident += finish(b, p)
				n++
			}
			b.ReportMetric(float64(first.Microseconds())/1000/float64(n), "first-ms")
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/1000/float64(n), "cpu-ms")
			b.ReportMetric(float64(resident)/float64(n)/(1<<20), "shim-MiB")
		})
	}
}

// finish waits for the pod's end and returns the shim's resident size, in bytes.
func finish(b *testing.B, p *Client) time.Duration {
	b.Helper()
	var pid int
	for state, err := range p.Watch(b.Context(), 0) {
		if err != nil {
			b.Fatal(err)
		}
		pid = state.PID
		if run, _ := state.Find("main", 0); run.Phase == Exited {
			if run.ExitCode != 0 {
				b.Fatalf("%+v", run)
			}
			break
		}
	}
	shim, err := readProcess(pid)
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Shutdown(context.Background()); err != nil {
		b.Fatal(err)
	}
	await(b, "the shim ends", func() bool { return !lives(pid) })
	return time.Duration(shim.residentPages * int64(os.Getpagesize()))
}

// cpuTime is the processor time of this process and of its children that ended.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total
}
