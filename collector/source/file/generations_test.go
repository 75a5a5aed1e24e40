package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A program may write its file anew for every epoch. What is remembered of it is
// written each time, and must not grow with their number.
func TestGenerationsAreForgotten(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "log"), filepath.Join(dir, "state")
	rewrite := func(n int) *reading {
		if err := os.WriteFile(path, fmt.Appendf(nil, "epoch %d\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		f.head = fmt.Appendf(nil, "epoch %d\n", n)
		return f
	}
	known := generations{numbers[generation]{state: state}}
	const many = 2 * maxGenerations
	var newest *reading
	for n := range many {
		if newest != nil {
			newest.Close()
		}
		newest = rewrite(n)
		if got, err := known.number(newest); err != nil || got != n {
			t.Fatalf("file %d has the number %d, %v", n, got, err)
		}
	}
	info, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(maxGenerations * 100); info.Size() > limit {
		t.Errorf("%d bytes are remembered of %d files, want at most %d", info.Size(), many, limit)
	}
	again := generations{numbers[generation]{state: state}}
	if err := again.load(); err != nil {
		t.Fatal(err)
	}
	if got := again.match(newest); got != many-1 {
		t.Errorf("a collector that starts again takes the newest file for number %d, want %d", got, many-1)
	}
	if got, err := again.number(rewrite(many)); err != nil || got != many {
		t.Errorf("the next file has the number %d, %v, want %d", got, err, many)
	}
	if found := again.reopen(path); len(found) != 1 || found[0].generation != many {
		t.Errorf("found %v, want the newest file", found)
	} else {
		found[0].Close()
	}
}
