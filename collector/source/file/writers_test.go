package file

import (
	"bytes"
	"cmp"
	"fmt"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"os"
	"strings"
	"testing"
	"time"
)

// writer is a program that writes values 0, 1, 2... and knows how far its
// reader is.
type writer struct {
	t     testing.TB
	path  string
	file  *os.File
	next  int
	seen  func() int // how many different values the reader has
	extra string     // put into each line

	patience time.Duration // for the reader to catch up; 0 is the usual
}

// open opens the file as a program with a log does.
func (w *writer) open() {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	w.check(err)
	if w.file != nil {
		w.check(w.file.Close())
	}
	w.file = f
}

func (w *writer) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// line returns the next line.
func (w *writer) line() string {
	w.next++
	return fmt.Sprintf("step=%d %sloss=%d.5", w.next-1, w.extra, w.next-1)
}

func (w *writer) write(s string) {
	w.t.Helper()
	_, err := w.file.WriteString(s)
	w.check(err)
}

// lines writes n lines, each in one write.
func (w *writer) lines(n int) {
	w.t.Helper()
	for range n {
		w.write(w.line() + "\n")
	}
}

// caughtUp waits until the reader has every value.
func (w *writer) caughtUp() {
	w.t.Helper()
	if !sourcetest.Comes(cmp.Or(w.patience, sourcetest.Patience), func() bool { return w.seen() >= w.next }) {
		w.t.Errorf("the reader has %d of %d values", w.seen(), w.next)
	}
}

// writers are the ways in which programs and log rotation treat a file. Each
// must lead to every value being read once.
var writers = map[string]func(w *writer){
	"whole lines, one write each": func(w *writer) {
		w.open()
		w.lines(2000)
	},
	"two writes a line": func(w *writer) {
		w.open()
		for range 5000 {
			line := w.line()
			w.write(line[:len(line)/2])
			w.write(line[len(line)/2:] + "\n")
		}
	},
	"two writes a line, the reader looking in between": func(w *writer) {
		w.open()
		for range 20 {
			w.caughtUp()
			line := w.line()
			w.write(line[:len(line)-1])
			<-time.After(3 * time.Millisecond) // a slow program
			w.write(line[len(line)-1:] + "\n")
		}
	},
	"a last line without an end": func(w *writer) {
		w.open()
		w.lines(10)
		w.write(w.line())
	},
	"a single line without an end": func(w *writer) {
		w.open()
		w.write(w.line())
	},
	"carriage returns between states of a progress bar": func(w *writer) {
		w.open()
		for range 100 {
			w.write(w.line() + "\r")
		}
		w.write("\n")
	},
	"a file that is created late": func(w *writer) {
		<-time.After(20 * time.Millisecond) // a slow program
		w.open()
		<-time.After(20 * time.Millisecond)
		w.lines(10)
	},
	"lines of a megabyte": func(w *writer) {
		w.open()
		w.extra = strings.Repeat("x", 1_000_000) + " "
		w.lines(8)
	},
	"rotation by renaming": func(w *writer) {
		w.open()
		for i := range 5 {
			w.lines(50)
			w.caughtUp() // a file that no reader saw before it was rotated is not known to be one
			w.check(os.Rename(w.path, fmt.Sprintf("%s.%d", w.path, i)))
			w.lines(50) // the program still has the old file
			w.open()
			w.lines(50)
			w.caughtUp()
		}
	},
	"rotation by renaming, the last line of the old file without an end": func(w *writer) {
		w.open()
		w.lines(50)
		w.caughtUp()
		w.write(w.line())
		w.check(os.Rename(w.path, w.path+".old"))
		w.open()
		w.lines(50)
	},
	"rotation twice before the reader looks": func(w *writer) {
		w.open()
		w.lines(10)
		w.caughtUp()
		for range 2 {
			for n := 8; n > 0; n-- {
				if err := os.Rename(fmt.Sprintf("%s.%d", w.path, n), fmt.Sprintf("%s.%d", w.path, n+1)); err != nil && !os.IsNotExist(err) {
					w.t.Fatal(err)
				}
			}
			w.check(os.Rename(w.path, w.path+".1"))
			w.open()
			w.lines(10)
		}
	},
	"rotation with an equal first line in each file": func(w *writer) {
		w.open()
		for i := range 4 {
			w.write("a log of training, with a header that is longer than what is remembered of a file\n")
			w.lines(20)
			w.caughtUp()
			w.check(os.Rename(w.path, fmt.Sprintf("%s.%d", w.path, i)))
			w.open()
		}
	},
	"truncation after a copy": func(w *writer) {
		w.open()
		for range 5 {
			w.lines(50)
			w.caughtUp()
			copyFile(w)
			w.check(os.Truncate(w.path, 0))
			w.lines(3)
			w.caughtUp()
		}
	},
	"truncation after a copy, overtaken by new data": func(w *writer) {
		w.open()
		for i := range 4 {
			w.lines(10 << i)
			w.caughtUp()
			copyFile(w)
			var more bytes.Buffer
			for range 30 << i {
				more.WriteString(w.line() + "\n")
			}
			w.check(os.Truncate(w.path, 0))
			w.write(more.String())
		}
	},
	"truncation overtaken, with an equal first line": func(w *writer) {
		const header = "a log of training, with a header that is longer than what is remembered of a file\n"
		w.open()
		w.write(header)
		w.lines(10)
		w.caughtUp()
		more := header
		for range 40 {
			more += w.line() + "\n"
		}
		w.check(os.Truncate(w.path, 0))
		w.write(more)
	},
	"truncation under a writer that does not append": func(w *writer) {
		f, err := os.Create(w.path)
		w.check(err)
		w.file = f
		w.lines(100)
		w.caughtUp()
		w.check(os.Truncate(w.path, 0))
		w.lines(100) // at the old place: the file begins with a hole
	},
	"removal and a new file": func(w *writer) {
		w.open()
		w.lines(20)
		w.caughtUp()
		w.check(os.Remove(w.path))
		w.lines(20) // into the removed file
		w.caughtUp()
		w.open()
		w.lines(20)
	},
	"a file written anew for each epoch": func(w *writer) {
		w.open()
		for range 10 {
			w.lines(5)
			w.caughtUp()
			w.check(w.file.Close())
			f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
			w.check(err)
			w.file = f
		}
	},
	"a file replaced atomically for each epoch": func(w *writer) {
		for range 10 {
			w.check(os.WriteFile(w.path+".tmp", []byte(w.line()+"\n"+w.line()+"\n"), 0o644))
			w.check(os.Rename(w.path+".tmp", w.path))
			w.caughtUp()
		}
	},
}

// copyFile does the first half of a rotation by copy and truncation.
func copyFile(w *writer) {
	b, err := os.ReadFile(w.path)
	w.check(err)
	w.check(os.WriteFile(w.path+".1", b, 0o644))
}
