package torture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// target is what a writer writes to: one kind of source.
type target interface {
	// kind and args are for the sidecar.
	args() []string
	open() error
	// record is the bytes of a value.
	record(value int) []byte
	// write is one write(2).
	write(b []byte) error
	// rotate goes on elsewhere; what was written so far stays.
	rotate() error
	// replace throws away what was written, all of which has been read.
	replace() error
	// paced reports whether a writer must wait for the reader after so many bytes.
	paced() int
	// cut ends with a record that has no end. whole says that it counts.
	cut(record []byte) (b []byte, whole bool)
	close() error
}

// printed is a program that prints under "collector exec".
type printed struct {
	s     *scene
	cmd   *exec.Cmd
	stdin io.WriteCloser
	limit int
}

func (p *printed) args() []string { return []string{"--kind=StdOut"} }

func (p *printed) open() (err error) {
	args := []string{"exec", "--dir=" + p.s.dir}
	if p.limit > 0 {
		args = append(args, "--cap="+strconv.Itoa(p.limit))
	}
	p.cmd = exec.Command(p.s.program, append(args, "--", "cat")...)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	return p.cmd.Start()
}

func line(value int) []byte { return fmt.Appendf(nil, "step=%d loss=%d.5\n", value, value) }

func (p *printed) record(value int) []byte { return line(value) }
func (p *printed) write(b []byte) error    { _, err := p.stdin.Write(b); return err }
func (p *printed) close() error            { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }
func (p *printed) paced() int              { return p.limit / 4 }

// rotate: the container is started again.
func (p *printed) rotate() error { return errors.Join(p.close(), p.open()) }

// replace: a progress bar goes back to the beginning of its line.
func (p *printed) replace() error { return p.write([]byte("\r")) }

func (p *printed) cut(record []byte) ([]byte, bool) { return record[:len(record)-1], true }

// logFile is a program that writes a log.
type logFile struct {
	dir   string
	file  *os.File
	n     int
	trunc bool // replace by copy and truncation, else by a new file
}

func (l *logFile) path() string   { return filepath.Join(l.dir, "metrics.log") }
func (l *logFile) args() []string { return []string{"--kind=File", "--path=" + l.path()} }
func (l *logFile) open() (err error) {
	l.file, err = os.OpenFile(l.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	return err
}
func (l *logFile) record(value int) []byte { return line(value) }
func (l *logFile) write(b []byte) error    { _, err := l.file.Write(b); return err }
func (l *logFile) close() error            { return l.file.Close() }
func (l *logFile) paced() int              { return 0 }

// rotate: the file is renamed and another one made.
func (l *logFile) rotate() error {
	l.n++
	return errors.Join(os.Rename(l.path(), l.path()+"."+strconv.Itoa(l.n)), l.close(), l.open())
}

func (l *logFile) replace() error {
	if l.trunc {
		l.n++
		b, err := os.ReadFile(l.path())
		return errors.Join(err, os.WriteFile(l.path()+"."+strconv.Itoa(l.n), b, 0o644), os.Truncate(l.path(), 0))
	}
	file, err := os.OpenFile(l.path(), os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
	err = errors.Join(err, l.close())
	l.file = file
	return err
}

func (l *logFile) cut(record []byte) ([]byte, bool) { return record[:len(record)-1], true }

// events is a program that writes TensorBoard event files.
type events struct {
	dir   string
	files []*os.File // all stay open; the last is the newest
	at    int        // the one that is written
	n     int
	erase bool // replace removes the file, else the other file is written
}

func (e *events) args() []string { return []string{"--kind=TensorFlowEvent", "--path=" + e.dir} }

func (e *events) open() error {
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		return err
	}
	e.n++
	f, err := os.OpenFile(filepath.Join(e.dir, fmt.Sprintf("events.out.tfevents.%010d.host", e.n)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	e.files, e.at = append(e.files, f), len(e.files)
	return err
}

func (e *events) record(value int) []byte {
	return scalarEvent("loss", int64(value), float32(value)+.5)
}
func (e *events) write(b []byte) error { _, err := e.files[e.at].Write(b); return err }
func (e *events) rotate() error        { return e.open() }
func (e *events) paced() int           { return 0 }

func (e *events) replace() error {
	if !e.erase {
		if len(e.files) < 2 {
			return e.open()
		}
		e.at = (e.at + 1) % len(e.files)
		return nil
	}
	return errors.Join(os.Remove(e.files[e.at].Name()), e.open())
}

func (e *events) close() error {
	var errs []error
	for _, f := range e.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// cut: a record that was cut off does not count.
func (e *events) cut(record []byte) ([]byte, bool) { return record[:len(record)-1], false }

// scalarEvent is a record of an event file.
func scalarEvent(tag string, step int64, value float32) []byte {
	v := append([]byte{0x0a, byte(len(tag))}, tag...)
	v = binary.LittleEndian.AppendUint32(append(v, 0x15), math.Float32bits(value))
	summary := append([]byte{0x0a, byte(len(v))}, v...)
	event := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(1.7e9))
	event = binary.AppendUvarint(append(event, 0x10), uint64(step))
	event = append(append(event, 0x2a, byte(len(summary))), summary...)
	return tensorboard.Record(event)
}

// writer writes the values 0, 1, 2... in its way until enough was killed.
type writer struct {
	s      *scene
	to     target
	random *rand.Rand
	next   int
	since  int // bytes since the reader was waited for
}

func (w *writer) check(err error) {
	w.s.t.Helper()
	if err != nil {
		w.s.stop()
		w.s.t.Fatal(err)
	}
}

func (w *writer) write(b []byte) {
	w.s.t.Helper()
	w.check(w.to.write(b))
	if w.since += len(b); w.to.paced() > 0 && w.since > w.to.paced() {
		w.caughtUp()
	}
}

func (w *writer) record() []byte {
	w.next++
	return w.to.record(w.next - 1)
}

// rest lets a little time pass.
func (w *writer) rest(upTo time.Duration) { <-time.After(rand.N(upTo)) }

// some writes some records, one write each.
func (w *writer) some() {
	for range 1 + w.random.IntN(60) {
		w.write(w.record())
	}
	w.rest(8 * time.Millisecond)
}

// caughtUp waits until everything that was written is stored.
func (w *writer) caughtUp() {
	w.s.t.Helper()
	w.s.await(fmt.Sprintf("%d values to be stored", w.next), func() bool { return w.s.stored() >= w.next })
	w.since = 0
}

// writers are the ways in which programs write, one round of each.
var writers = []struct {
	name  string
	round func(w *writer)
}{
	{"append", func(w *writer) { w.some() }},
	{"two writes a record", func(w *writer) {
		for range 1 + w.random.IntN(20) {
			r := w.record()
			at := 1 + w.random.IntN(len(r)-1)
			w.write(r[:at])
			if w.random.IntN(4) == 0 {
				w.rest(4 * time.Millisecond)
			}
			w.write(r[at:])
		}
	}},
	// A file that no reader saw before it was renamed is not known to be one: so
	// the reader is waited for once a round.
	{"rotate by rename", func(w *writer) {
		for range 1 + w.random.IntN(5) {
			w.some()
		}
		w.caughtUp()
		w.some()
		w.check(w.to.rotate())
		w.some()
	}},
	{"copy and truncate", func(w *writer) {
		for range 1 + w.random.IntN(5) {
			w.some()
		}
		w.caughtUp()
		w.check(w.to.replace())
		w.some()
	}},
	{"rewrite", func(w *writer) {
		w.some()
		w.caughtUp()
		w.check(w.to.replace())
	}},
	{"burst", func(w *writer) {
		var b []byte
		for range 500 + w.random.IntN(3000) {
			b = append(b, w.record()...)
		}
		for len(b) > 0 {
			n := min(len(b), 1+w.random.IntN(9000))
			w.write(b[:n])
			b = b[n:]
		}
		w.rest(60 * time.Millisecond)
		if w.since > 2_000_000 {
			w.caughtUp() // else the service has minutes of work in the end
		}
	}},
	{"slow drip", func(w *writer) {
		r := append(w.record(), w.record()...)
		for len(r) > 0 {
			n := min(len(r), 1+w.random.IntN(3))
			w.write(r[:n])
			r = r[n:]
			if w.random.IntN(3) == 0 {
				w.rest(time.Millisecond)
			}
		}
	}},
	{"no end", func(w *writer) { w.some() }},
}
