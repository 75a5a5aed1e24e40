package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// kept is a line as the tests compare it.
type kept struct {
	Offset int64
	Text   string
}

func open(t testing.TB, path string, limit int64, maxLine int) *Journal {
	t.Helper()
	j, err := Open(Config{Path: path, Limit: limit, MaxLine: maxLine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return j
}

func add(t testing.TB, j *Journal, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := j.Append([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// lines returns the lines from an offset on, and what else was said.
func lines(t testing.TB, j *Journal, from int64) (out []kept, said []string) {
	t.Helper()
	for line, err := range j.Lines(t.Context(), from) {
		if err != nil {
			said = append(said, err.Error())
			continue
		}
		out = append(out, kept{line.Offset, string(line.Text)})
	}
	return out, said
}

func wantLines(t testing.TB, j *Journal, from int64, want ...kept) {
	t.Helper()
	got, said := lines(t, j, from)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(said) > 0 {
		t.Errorf("errors %q, lines (-want +got):\n%s", said, diff)
	}
}

func TestLinesAreThereAgainAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	first := open(t, path, 1000, 100)
	add(t, first, "one", "", "größe")
	want := []kept{{0, "one"}, {4, ""}, {5, "größe"}}
	wantLines(t, first, 0, want...)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, path, 1000, 100)
	wantLines(t, second, 0, want...)
	add(t, second, "four")
	wantLines(t, second, 0, append(want, kept{13, "four"})...)
	wantLines(t, second, 5, kept{5, "größe"}, kept{13, "four"})
	wantLines(t, second, second.End())
	info, err := os.Stat(path)
	if err != nil || info.Size() != second.End() || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want %d bytes for the owner alone", info, err, second.End())
	}
}

// Wherever a write was torn, the lines before are whole, what is left of the torn
// one is gone, and the next has its place.
func TestAKillAtAnyByteLeavesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	texts := []string{`{"a":1}`, "", strings.Repeat("x", 100), "last"}
	whole := strings.Join(texts, "\n") + "\n"
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []kept
		end := int64(0)
		for _, text := range texts {
			next := end + int64(len(text)) + 1
			if next > int64(cut) {
				break
			}
			want, end = append(want, kept{end, text}), next
		}
		j := open(t, path, 1000, 200)
		if j.End() != end {
			t.Fatalf("cut at %d: it ends at %d, want %d", cut, j.End(), end)
		}
		wantLines(t, j, 0, want...)
		add(t, j, "new")
		wantLines(t, j, 0, append(want, kept{end, "new"})...)
		left, err := os.ReadFile(path)
		if err != nil || string(left) != whole[:end]+"new\n" {
			t.Fatalf("cut at %d: %q, %v", cut, left, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What is torn off may be much longer than one read of the file.
func TestALongTailWithoutAnEndIsCut(t *testing.T) {
	for _, tail := range []int{64<<10 - 4, 64<<10 - 3, 64 << 10, 64<<10 + 1, 300_000} {
		for _, head := range []string{"", "one\n"} {
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, []byte(head+strings.Repeat("x", tail)), 0o600); err != nil {
				t.Fatal(err)
			}
			if j := open(t, path, 1000, 100); j.End() != int64(len(head)) {
				t.Errorf("a tail of %d after %q: it ends at %d", tail, head, j.End())
			}
			if info, err := os.Stat(path); err != nil || info.Size() != int64(len(head)) {
				t.Errorf("a tail of %d after %q: %v, %v", tail, head, info, err)
			}
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	// The limit leaves room for two lines of three bytes.
	tests := map[string]struct {
		texts []string
		want  error // of the last one
		end   int64
	}{
		"what fills the space to the last byte is taken":  {[]string{"123", "456"}, nil, 8},
		"one byte more than there is space":               {[]string{"123", "4567"}, ErrFull, 4},
		"an empty line where there is no space":           {[]string{"123", "456", ""}, ErrFull, 8},
		"a shorter line fits where a longer one did not":  {[]string{"1234", "56"}, nil, 8},
		"the longest line":                                {[]string{"12345"}, nil, 6},
		"a line that is too long, though there was space": {[]string{"123456"}, ErrLongLine, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			j := open(t, path, 8, 6)
			last := len(tc.texts) - 1
			add(t, j, tc.texts[:last]...)
			if err := j.Append([]byte(tc.texts[last])); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if info, err := os.Stat(path); err != nil || info.Size() != tc.end || j.End() != tc.end {
				t.Errorf("%v, %v and the end %d; want %d bytes", info, err, j.End(), tc.end)
			}
		})
	}
	j := open(t, filepath.Join(t.TempDir(), "journal"), 100, 100)
	if err := j.Append([]byte("two\nlines")); err == nil || j.End() != 0 {
		t.Errorf("two lines in one: %v, the end %d", err, j.End())
	}
}

// A limit that became smaller loses nothing.
func TestAJournalBeyondItsLimitIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path, 100, 10)
	add(t, j, "one", "two", "three")
	again := open(t, path, 5, 10)
	wantLines(t, again, 0, kept{0, "one"}, kept{4, "two"}, kept{8, "three"})
	if err := again.Append(nil); !errors.Is(err, ErrFull) {
		t.Errorf("append: %v", err)
	}
}

// Lines that are too long are not ours. They cost little memory, and what is
// beside them is read.
func TestALongLineIsPassedOver(t *testing.T) {
	const long = 32 << 20
	path := filepath.Join(t.TempDir(), "journal")
	text := append(append([]byte("one\n"), bytes.Repeat([]byte("x"), long)...), "\n123456789\n1234567890\nlast\n"...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, path, long, 10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, said := lines(t, j, 0)
	runtime.ReadMemStats(&after)
	want := []kept{{0, "one"}, {long + 5, "123456789"}, {long + 26, "last"}}
	wantSaid := []string{
		fmt.Sprintf("read %s at 4: the line is too long: %d bytes of at most 10", path, long+1),
		fmt.Sprintf("read %s at %d: the line is too long: 11 bytes of at most 10", path, long+15),
	}
	if diff := cmp.Diff(want, got) + cmp.Diff(wantSaid, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated to read past %d", used, long)
	}
}

// torn is a file whose writes fail half way while broken is set.
type torn struct {
	*os.File
	broken bool
}

var errTorn = errors.New("no space is left")

func (f *torn) WriteAt(b []byte, at int64) (int, error) {
	if !f.broken {
		return f.File.WriteAt(b, at)
	}
	n, err := f.File.WriteAt(b[:len(b)/2], at)
	return n, errors.Join(err, errTorn)
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path, 1000, 100)
	real, ok := j.file.(*os.File)
	if !ok {
		t.Fatalf("the file is a %T", j.file)
	}
	f := &torn{File: real}
	j.file = f
	add(t, j, "one")
	f.broken = true
	if err := j.Append([]byte("a line that is not written whole")); !errors.Is(err, errTorn) {
		t.Errorf("append: %v", err)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != "one\n" {
		t.Errorf("after the failed write: %q, %v", left, err)
	}
	f.broken = false
	add(t, j, "two")
	wantLines(t, j, 0, kept{0, "one"}, kept{4, "two"})
}

func TestAFinishedJournalTakesNothing(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"), 1000, 100)
	add(t, j, "one")
	if j.Finished() {
		t.Error("it was finished from the beginning")
	}
	j.Finish()
	j.Finish()
	if err := j.Append([]byte("two")); !errors.Is(err, ErrFinished) || !j.Finished() {
		t.Errorf("append: %v", err)
	}
	wantLines(t, j, 0, kept{0, "one"})
}

// A follower gets every line of several writers once and in order, and ends
// after the last.
func TestFollowGivesEveryLineOnce(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"), 1<<20, 100)
	add(t, j, "there before")
	const writers, each = 4, 500
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				if err := j.Append(fmt.Appendf(nil, "%d %d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		running.Wait()
		j.Finish()
	}()
	var got []kept
	for line, err := range j.Follow(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, kept{line.Offset, string(line.Text)})
	}
	wantLines(t, j, 0, got...)
	next := map[int]int{}
	for _, line := range got[1:] {
		var w, i int
		if _, err := fmt.Sscanf(line.Text, "%d %d", &w, &i); err != nil || i != next[w] {
			t.Fatalf("line %q, want number %d of the writer (%v)", line.Text, next[w], err)
		}
		next[w]++
	}
	if len(got) != 1+writers*each {
		t.Errorf("%d lines, want %d", len(got), 1+writers*each)
	}
}

func TestFollowEndsEarly(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"), 1000, 100)
	add(t, j, "one", "two")
	ctx, cancel := context.WithCancel(t.Context())
	var errs []error
	n := 0
	for _, err := range j.Follow(ctx) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n++; n == 2 {
			cancel()
		}
	}
	if n != 2 || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("%d lines, errors %v; want 2 and that it was cancelled", n, errs)
	}
	for range j.Follow(t.Context()) {
		break // it does not wait for lines that are not wanted
	}
	cancel()
	for _, err := range j.Lines(ctx, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a line after the end of the context: %v", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, cfg := range map[string]Config{
		"no limit":     {Path: filepath.Join(dir, "a"), MaxLine: 1},
		"no line":      {Path: filepath.Join(dir, "a"), Limit: 1},
		"no directory": {Path: filepath.Join(dir, "b", "c"), Limit: 1, MaxLine: 1},
		"a directory":  {Path: dir, Limit: 1, MaxLine: 1},
	} {
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), cfg.Path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzOpen opens any file: what is whole is read, line by line, and a line that
// is appended follows it.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"", "\n", "one\ntwo", "one\n\n\x00\ntwo\n", strings.Repeat("x", 40) + "\nshort\n"} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, b []byte) {
		const maxLine = 32
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j := open(t, path, int64(len(b)+10), maxLine)
		add(t, j, "appended")
		end := bytes.LastIndexByte(b, '\n') + 1
		var want []kept
		at, long := int64(0), 0
		for line := range bytes.Lines(append(b[:end:end], "appended\n"...)) {
			if len(line) <= maxLine {
				want = append(want, kept{at, string(line[:len(line)-1])})
			} else {
				long++
			}
			at += int64(len(line))
		}
		got, said := lines(t, j, 0)
		if diff := cmp.Diff(want, got); diff != "" || len(said) != long {
			t.Errorf("%d errors, want %d; lines (-want +got):\n%s", len(said), long, diff)
		}
	})
}
