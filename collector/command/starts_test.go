package command

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A container may be started again in its pod (restartPolicy: OnFailure). What a
// start that crashed measured must not count beside what the next one does.
func TestAFurtherStartIsAnAttemptOfItsOwn(t *testing.T) {
	type scene struct {
		b    *bench
		args []string
		say  func(loss string) string // a shell command
	}
	kinds := map[string]func(b *bench) scene{
		"a log that is appended to": func(b *bench) scene {
			path := filepath.Join(b.dir, "m.log")
			return scene{b, []string{"--kind=File", "--path=" + path}, func(loss string) string { return "echo step=1 loss=" + loss + " >> " + path }}
		},
		"a log that is written anew": func(b *bench) scene {
			path := filepath.Join(b.dir, "m.log")
			return scene{b, []string{"--kind=File", "--path=" + path}, func(loss string) string { return "echo step=1 loss=" + loss + " > " + path }}
		},
		"a table": func(b *bench) scene {
			path := filepath.Join(b.dir, "m.csv")
			return scene{b, []string{"--kind=File", "--format=CSV", "--path=" + path}, func(loss string) string { return "printf 'step,loss\\n1," + loss + "\\n' > " + path }}
		},
		"pushes": func(b *bench) scene {
			return scene{b, []string{"--kind=Push"}, func(loss string) string {
				return fmt.Sprintf(`curl -sf --unix-socket %s/push.sock -d '{"loss": %s, "step": 1}' http://x/report`, b.dir, loss)
			}}
		},
	}
	for name, begin := range kinds {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sidecar killed %v", name, killed), func(t *testing.T) {
				s := begin(newBench(t))
				b := s.b
				if _, err := exec.LookPath("curl"); err != nil && name == "pushes" {
					t.Skip("there is no curl")
				}
				args := slices.Concat(s.args, []string{"--metric=loss"})
				ready := func() {
					b.until("ready", func() bool { return isReady(b.dir) })
				}
				sidecar := b.start(args...)
				ready()
				for n, loss := range []string{"0.5", "0.25", "0.75"} {
					cmd := exec.CommandContext(t.Context(), program(t), "env", "--dir="+b.dir, "--", "sh", "-c", s.say(loss))
					if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 && name != "pushes" {
						t.Fatalf("%v: %s", err, out)
					}
					b.untilPoints(n + 1)
					if killed {
						sidecar.kill(b)
						sidecar = b.start(args...)
						ready()
					}
				}
				sidecar.term()
				var got []string
				for _, series := range b.points("loss") {
					for _, p := range series.Points {
						got = append(got, fmt.Sprintf("%s %v", filepath.Base(series.Attempt.ID), p.Value))
					}
				}
				if diff := cmp.Diff([]string{"0 0.5", "1 0.25", "2 0.75"}, got); diff != "" {
					t.Errorf("points by attempt (-want +got):\n%s\nthe sidecar said %s", diff, sidecar.said.String())
				}
				for _, a := range b.attempts() {
					if !a.Final {
						t.Errorf("attempt %s is not final: %q", a.Attempt.ID, a.Note)
					}
				}
			})
		}
	}
}
