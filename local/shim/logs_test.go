package shim

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var logEntry = regexp.MustCompile(`(?s)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)$`)

// logTexts returns the text of each entry, with its newline where it is full.
func logTexts(t testing.TB, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return texts(t, data)
}

func texts(t testing.TB, data []byte) []string {
	t.Helper()
	var out []string
	for line := range bytes.Lines(data) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		m := logEntry.FindSubmatch(line)
		if m == nil || !whole {
			if !whole {
				continue // being written
			}
			t.Fatalf("not a CRI log entry: %q", line)
		}
		text := string(m[3])
		if string(m[2]) == "F" {
			text += "\n"
		}
		out = append(out, text)
	}
	return out
}

func TestLogEntriesOfAStream(t *testing.T) {
	long := strings.Repeat("x", maxLogLine)
	cases := map[string]struct {
		chunks []string
		want   string // tag and text of each entry
	}{
		"nothing":                              {nil, ""},
		"a line":                               {[]string{"a\n"}, "F a\n"},
		"an empty line":                        {[]string{"\n\n"}, "F \nF \n"},
		"a line in two writes":                 {[]string{"a", "b\n"}, "F ab\n"},
		"two lines in one write":               {[]string{"a\nb\n"}, "F a\nF b\n"},
		"no newline at the end":                {[]string{"a\nb"}, "F a\nP b\n"},
		"a carriage return stays":              {[]string{"50%\r100%\r\n"}, "F 50%\r100%\r\n"},
		"binary junk stays":                    {[]string{"\x00\xff\xfe\n"}, "F \x00\xff\xfe\n"},
		"a line that just fits":                {[]string{long[1:] + "\n"}, "F " + long[1:] + "\n"},
		"a line two bytes longer":              {[]string{long + "y\n"}, "P " + long + "\nF y\n"},
		"a line of twice the limit":            {[]string{long, long, "\n"}, "P " + long + "\nP " + long + "\nF \n"},
		"a long line without newline":          {[]string{long + "y"}, "P " + long + "\nP y\n"},
		"a long line that ends at its newline": {[]string{long, "\n"}, "P " + long + "\nF \n"},
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := logged(t, "stderr", now, c.chunks...)
			want := ""
			for line := range strings.Lines(c.want) {
				want += "2026-01-02T03:04:05.000000600Z stderr " + line
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// logged is what is logged of a stream that comes in chunks.
func logged(t *testing.T, stream string, now time.Time, chunks ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, err := openLog(path, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	l.maxBytes = 1 << 30
	var readers []io.Reader
	for _, chunk := range chunks {
		readers = append(readers, strings.NewReader(chunk))
	}
	l.copyStream(stream, io.MultiReader(readers...))
	data, err := os.ReadFile(path)
	if lost := l.close(); err != nil || lost != "" {
		t.Fatal(err, lost)
	}
	return data
}

func FuzzLogKeepsEveryByte(f *testing.F) {
	f.Add([]byte("a\nb"), 1)
	f.Add(bytes.Repeat([]byte("long"), maxLogLine), 5000)
	f.Add([]byte("\n\n\x00\xff"), 3)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		if step < 1 {
			step = 1
		}
		var chunks []string
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			chunks = append(chunks, string(rest[:n]))
			rest = rest[n:]
		}
		out := logged(t, "stdout", time.Unix(0, 0), chunks...)
		parts := texts(t, out)
		for _, part := range parts {
			if len(part) > maxLogLine+1 {
				t.Errorf("an entry of %d bytes", len(part))
			}
		}
		if got := strings.Join(parts, ""); got != string(data) {
			t.Errorf("got %q, want %q", got, data)
		}
	})
}

func TestLogIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "0.log")
	l, err := openLog(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l.maxBytes = 1000
	var in bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&in, "line %d\n", i)
	}
	for line := range bytes.Lines(in.Bytes()) {
		l.copyStream("stdout", bytes.NewReader(line))
	}
	if lost := l.close(); lost != "" {
		t.Error(lost)
	}
	var kept []string
	for _, name := range []string{path + ".2", path + ".1", path} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1000 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		kept = append(kept, logTexts(t, name)...)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 3 {
		t.Errorf("files %v, want 3", files)
	}
	all := strings.SplitAfter(strings.TrimSpace(in.String()), "\n")
	all[len(all)-1] += "\n"
	if diff := cmp.Diff(all[len(all)-len(kept):], kept); diff != "" || len(kept) < 30 {
		t.Errorf("%d lines kept (-want +got)\n%s", len(kept), diff)
	}
}
