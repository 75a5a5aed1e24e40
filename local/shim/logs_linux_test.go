package shim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogThatCannotBeWrittenSaysWhatWasLost(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	p := newPod(t, MountsNone)
	spec := p.shell("echo hello; exit 4")
	spec.LogPath = "/dev/full"
	got := p.run(spec)
	if got.ExitCode != 4 || !strings.Contains(got.Message, "bytes of output were lost") || !strings.Contains(got.Message, "no space left") {
		t.Errorf("got %+v", got)
	}
}

func TestLogOfAContainer(t *testing.T) {
	t.Run("both streams to the last byte", func(t *testing.T) {
		p := newPod(t, MountsNone)
		p.run(p.shell("seq 1 200000; echo problem >&2; printf 'the end'"))
		var want strings.Builder
		for i := range 200000 {
			fmt.Fprintln(&want, i+1)
		}
		data, err := os.ReadFile(p.log("main", 0))
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		for line := range strings.Lines(string(data)) {
			m := logEntry.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m == nil {
				t.Fatalf("not a CRI log entry: %q", line)
			}
			text := m[3]
			if m[2] == "F" {
				text += "\n"
			}
			if m[1] == "stdout" {
				stdout.WriteString(text)
			} else {
				stderr.WriteString(text)
			}
		}
		if stdout.String() != want.String()+"the end" {
			t.Errorf("stdout has %d bytes, want %d", stdout.Len(), want.Len()+7)
		}
		if stderr.String() != "problem\n" {
			t.Errorf("stderr is %q", stderr.String())
		}
	})
	t.Run("a second run appends where it is told to", func(t *testing.T) {
		p := newPod(t, MountsNone)
		for run := range 2 {
			spec := p.shell("echo $VERNIER_CONTAINER")
			spec.Run = run
			p.run(spec)
		}
		if diff := cmp.Diff("main/0\nmain/1\n", p.output("main", 0)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
