package shim

import (
	"strings"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	cases := map[string]struct {
		spec func(p *pod) ContainerSpec
		oom  bool
	}{
		"above the limit": {func(p *pod) ContainerSpec { return p.helper("hog", "300") }, true},
		"in a child, the whole container is killed": {func(p *pod) ContainerSpec {
			spec := p.helper("hog", "300")
			spec.Argv = append([]string{"sh", "-c", `"$@" & sleep 3600`, "sh"}, spec.Argv...)
			return spec
		}, true},
		"below the limit": {func(p *pod) ContainerSpec { return p.shell("sleep 0.5; exit 0") }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, MountsNone)
			spec := c.spec(p)
			spec.MemoryLimitBytes = 200 << 20
			run := p.run(spec)
			if !c.oom {
				if run.Reason != ReasonCompleted {
					t.Errorf("got %+v", run)
				}
				return
			}
			if run.Reason != ReasonOOMKilled || run.ExitCode != 137 || !strings.Contains(run.Message, "limit of 200.0 MiB") {
				t.Errorf("got %+v", run)
			}
			if left := inSession(t, run.PID); len(left) > 0 {
				t.Errorf("processes %v live on", left)
			}
		})
	}
}

func TestRollup(t *testing.T) {
	cases := map[string]struct {
		text string
		want int64
		bad  bool
	}{
		"anonymous and shared memory count, files do not": {
			"5581-7ffc ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:  800 kB\nPss_Anon:  100 kB\nPss_File:  600 kB\nPss_Shmem:  20 kB\n", 120 << 10, false,
		},
		"an old kernel":  {"Rss: 900 kB\nPss: 800 kB\n", 0, true},
		"not a number":   {"Pss_Anon: many kB\n", 0, true},
		"nothing at all": {"", 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseRollup([]byte(c.text))
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
}
