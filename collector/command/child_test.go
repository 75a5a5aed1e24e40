package command

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// held is an output that takes nothing until it is let go.
type held struct {
	bytes.Buffer
	once          sync.Once
	entered, free chan struct{}
}

func (h *held) Write(b []byte) (int, error) {
	h.once.Do(func() { close(h.entered) })
	<-h.free
	return h.Buffer.Write(b)
}

// What a program has printed before its end is read however late its reader is
// scheduled: here its deadline has passed before it looks.
func TestTheLastOutputIsReadHoweverLate(t *testing.T) {
	for name, leftBehind := range map[string]bool{"a program": false, "a program that leaves one behind": true} {
		t.Run(name, func(t *testing.T) {
			var tees tees
			var kept bytes.Buffer
			out := &held{entered: make(chan struct{}), free: make(chan struct{})}
			end, err := tees.add(out, &kept)
			must(t, err)
			fd, err := unix.Dup(int(end.Fd()))
			must(t, err)
			program := os.NewFile(uintptr(fd), "the program's output")
			tees.run()
			_, err = program.WriteString("loss=1\n")
			must(t, err)
			<-out.entered
			_, err = program.WriteString("loss=2\n")
			must(t, err)
			if leftBehind {
				defer shut(t, program)
			} else {
				shut(t, program)
			}
			must(t, tees.list[0].from.SetReadDeadline(time.Now()))
			close(out.free)
			tees.group.Wait()
			want(t, "kept", "loss=1\nloss=2\n", kept.String())
			want(t, "passed on", "loss=1\nloss=2\n", out.String())
		})
	}
}
