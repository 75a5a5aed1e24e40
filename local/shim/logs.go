package shim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// maxLogLine is the length from which a line is written in parts.
	maxLogLine = 16 << 10
	// logTime has a fixed width, so that lines sort as text.
	logTime = "2006-01-02T15:04:05.000000000Z07:00"
)

// criLog is a container's log: "<time> stdout|stderr F|P <text>" a line. P marks a
// part of a line that goes on in the next entry of the same stream.
type criLog struct {
	path     string
	maxBytes int64
	now      func() time.Time

	mu      sync.Mutex
	file    *os.File // nil: output is discarded
	size    int64
	lost    int64
	lostErr error
}

func openLog(path string, now func() time.Time) (*criLog, error) {
	l := &criLog{path: path, maxBytes: LogMaxBytes, now: now}
	if l.path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return l, nil
}

func (l *criLog) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// write appends whole entries. The log never stops the container: what cannot be
// written is counted and dropped.
func (l *criLog) write(entries []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" || len(entries) == 0 {
		return
	}
	if l.size > 0 && l.size+int64(len(entries)) > l.maxBytes {
		if err := l.rotate(); err != nil {
			l.lostErr = err
		}
	}
	if l.file == nil {
		l.lost += int64(len(entries))
		return
	}
	n, err := l.file.Write(entries)
	l.size += int64(n)
	if err != nil {
		l.lost += int64(len(entries) - n)
		l.lostErr = err
	}
}

// rotate moves path to path.1, path.1 to path.2 and so on; the oldest is replaced.
func (l *criLog) rotate() error {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	name := func(i int) string {
		if i == 0 {
			return l.path
		}
		return fmt.Sprintf("%s.%d", l.path, i)
	}
	for i := LogMaxFiles - 1; i > 0; i-- {
		if err := os.Rename(name(i-1), name(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

// close ends the log and says what of the output was lost.
func (l *criLog) close() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	if l.lost == 0 {
		return ""
	}
	return fmt.Sprintf("%d bytes of output were lost: %v", l.lost, l.lostErr)
}

// copyStream logs what r yields until it ends. A line that is longer than
// maxLogLine, and a last line without newline, are written in parts, so that readers
// give back the exact bytes.
func (l *criLog) copyStream(stream string, r io.Reader) {
	in := bufio.NewReaderSize(r, maxLogLine)
	var out []byte
	for {
		text, err := in.ReadSlice('\n')
		if len(text) > 0 {
			text, full := bytes.CutSuffix(text, []byte{'\n'})
			tag := " P "
			if full {
				tag = " F "
			}
			out = l.now().UTC().AppendFormat(out, logTime+" ")
			out = append(append(out, stream...), tag...)
			out = append(append(out, text...), '\n')
		}
		over := err != nil && !errors.Is(err, bufio.ErrBufferFull)
		// Before it waits for more, all that is complete is written.
		if rest, _ := in.Peek(in.Buffered()); over || !bytes.Contains(rest, []byte{'\n'}) || len(out) > maxLogLine {
			l.write(out)
			out = out[:0]
		}
		if over {
			return
		}
	}
}
