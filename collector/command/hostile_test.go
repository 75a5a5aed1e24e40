package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
)

// maxHostileRSS bounds the sidecar's memory on any input, in bytes. (The figure
// for ordinary inputs is smaller; see bench/collector.)
const maxHostileRSS = 40 << 20

// peakRSS is the largest resident size of the sidecar so far.
func (s *sidecar) peakRSS() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return kib << 10
		}
	}
	s.t.Fatal("no VmHWM")
	return 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hostile is an input that is meant to do harm.
type hostile struct {
	events bool
	// write makes the input at path: a file, or for events a directory that is
	// there.
	write func(t *testing.T, path string)
	// then is done once the first points are stored.
	then func(t *testing.T, path string)
	// first and all are the numbers of points before and after then.
	first, all int
	note       string // part of the attempt's note
}

const gigabyte = 1 << 30

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	must(t, f.Close())
}

// zeros makes a file of a gigabyte of zeros that takes no space.
func zeros(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	must(t, f.Truncate(gigabyte))
	must(t, f.Close())
}

func eventsAt(t *testing.T, path string, n int) {
	t.Helper()
	var b []byte
	for step := range n {
		b = append(b, scalarEvent("loss", int64(step), float32(step))...)
	}
	must(t, os.WriteFile(path, b, 0o644))
}

var hostiles = map[string]hostile{
	"a line of a gigabyte": {
		write: func(t *testing.T, path string) {
			f, err := os.Create(path)
			must(t, err)
			text := []byte(strings.Repeat("x", 1<<20))
			_, err = f.WriteString("loss=1 ")
			must(t, err)
			for range gigabyte >> 20 {
				_, err = f.Write(text)
				must(t, err)
			}
			_, err = f.WriteString(" loss=2\nloss=3\n")
			must(t, err)
			must(t, f.Close())
		},
		first: 2, all: 2, note: "is longer than",
	},
	"a gigabyte of zeros in a log": {
		write: func(t *testing.T, path string) {
			zeros(t, path)
			appendTo(t, path, "\nloss=1\n")
		},
		first: 1, all: 1,
	},
	"a gigabyte of zeros as an event file": {
		events: true,
		write: func(t *testing.T, path string) {
			zeros(t, filepath.Join(path, "events.out.tfevents.1.zeros"))
			eventsAt(t, filepath.Join(path, "events.out.tfevents.2.good"), 3)
		},
		first: 3, all: 3, note: "has zeros where a record should begin",
	},
	"zeros behind the records of an event file": {
		events: true,
		write: func(t *testing.T, path string) {
			file := filepath.Join(path, "events.out.tfevents.1.host")
			eventsAt(t, file, 3)
			must(t, os.Truncate(file, gigabyte))
		},
		first: 3, all: 3, note: "zeros",
	},
	"a directory that contains itself": {
		events: true,
		write: func(t *testing.T, path string) {
			must(t, os.MkdirAll(filepath.Join(path, "a", "b"), 0o755))
			must(t, os.Symlink(path, filepath.Join(path, "a", "b", "loop")))
			must(t, os.Symlink("self", filepath.Join(path, "self")))
			eventsAt(t, filepath.Join(path, "a", "b", "events.out.tfevents.1.host"), 3)
		},
		first: 3, all: 3,
	},
	"a FIFO in place of a log": {
		write: func(t *testing.T, path string) { must(t, unix.Mkfifo(path, 0o600)) },
		then: func(t *testing.T, path string) {
			must(t, os.Remove(path))
			appendTo(t, path, "loss=1\n")
		},
		all: 1, note: "not a regular file",
	},
	"a FIFO among event files": {
		events: true,
		write: func(t *testing.T, path string) {
			must(t, unix.Mkfifo(filepath.Join(path, "events.out.tfevents.0.fifo"), 0o600))
			eventsAt(t, filepath.Join(path, "events.out.tfevents.1.host"), 3)
		},
		first: 3, all: 3, note: "is not a regular file",
	},
	// What is left of it counts as a new file, so its lines are read again.
	"a log that shrinks": {
		write: func(t *testing.T, path string) { appendTo(t, path, "loss=1\nloss=2\nloss=3\n") },
		then: func(t *testing.T, path string) {
			must(t, os.Truncate(path, int64(len("loss=1\n"))))
			appendTo(t, path, "loss=4\n")
		},
		first: 3, all: 5,
	},
	"an event file that shrinks": {
		events: true,
		write:  func(t *testing.T, path string) { eventsAt(t, filepath.Join(path, "events.out.tfevents.1.host"), 3) },
		then: func(t *testing.T, path string) {
			must(t, os.Truncate(filepath.Join(path, "events.out.tfevents.1.host"), 7))
		},
		first: 3, all: 3,
	},
	"10,000 event files": {
		events: true,
		write: func(t *testing.T, path string) {
			for i := range 10_000 {
				must(t, os.WriteFile(filepath.Join(path, fmt.Sprintf("events.out.tfevents.%05d.host", i)),
					scalarEvent("loss", int64(i), float32(i)), 0o644))
			}
		},
		first: 10_000, all: 10_000,
	},
}

func TestHostileInputs(t *testing.T) {
	for name, h := range hostiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			path := filepath.Join(b.dir, "input")
			kind := "--kind=File"
			if h.events {
				kind = "--kind=TensorFlowEvent"
				must(t, os.Mkdir(path, 0o755))
			}
			s := b.run(kind, "--path="+path, "--metric=loss") // what is there before is passed over
			h.write(t, path)
			if h.first > 0 {
				b.untilPoints(h.first)
			} else {
				b.until("noticed", func() bool { return total(b.scraped()["vernier_collector_unreadable_total"]) > 0 })
			}
			if h.then != nil {
				h.then(t, path)
			}
			if h.all > h.first {
				b.untilPoints(h.all)
			}
			rss := s.peakRSS()
			took := s.term()
			t.Logf("%.1f MiB resident at most, %v from SIGTERM to the end", float64(rss)/(1<<20), took)
			if rss > maxHostileRSS {
				t.Errorf("the sidecar took %d bytes of memory", rss)
			}
			stored := 0
			for _, series := range b.points() {
				stored += len(series.Points)
			}
			if stored != h.all {
				t.Errorf("%d points, want %d", stored, h.all)
			}
			b.wantNote(h.note)
		})
	}
}

// wantNote checks that the attempts are final, and what they say.
func (b *bench) wantNote(part string) {
	b.t.Helper()
	var states []collector.AttemptState
	b.until("final", func() bool {
		states = b.attempts()
		return len(states) > 0 && states[0].Final
	})
	if note := states[0].Note; !strings.Contains(note, part) || part == "" && note != "" {
		b.t.Errorf("note %q, want %q in it", note, part)
	}
}
