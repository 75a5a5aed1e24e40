package file

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/source"
)

const (
	// generationShift leaves 1 TiB to each generation of a file, and as many rows to
	// each table.
	generationShift = 40
	// maxGenerations bounds how many are remembered. A program that writes its file
	// anew for each epoch makes one for each.
	maxGenerations = 256
)

// numbers gives each of the things that were seen at a path its number, in the
// order in which they came, and remembers the newest of them.
type numbers[T any] struct {
	state string // where they are remembered; empty: nowhere
	seen  struct {
		// First is the number of the oldest that is remembered.
		First int `json:"first"`
		// List is those that are, oldest first.
		List []T `json:"list"`
	}
}

// load reads what was remembered. What cannot be read counts as nothing.
func (n *numbers[T]) load() error {
	if err := source.LoadState(n.state, &n.seen); err != nil {
		n.seen.First, n.seen.List = 0, nil
		return fmt.Errorf("the state of an earlier collector is lost, points may be stored twice or not at all: %w", err)
	}
	return nil
}

// find returns the number of the newest one that is the same, or -1.
func (n *numbers[T]) find(same func(T) bool) int {
	for i, known := range slices.Backward(n.seen.List) {
		if same(known) {
			return n.seen.First + i
		}
	}
	return -1
}

// add gives one the next number and remembers it. The number is valid also when
// remembering fails.
func (n *numbers[T]) add(one T) (int, error) {
	n.seen.List = append(n.seen.List, one)
	if extra := len(n.seen.List) - maxGenerations; extra > 0 {
		n.seen.First += extra
		n.seen.List = slices.Delete(n.seen.List, 0, extra)
	}
	number := n.seen.First + len(n.seen.List) - 1
	if err := source.SaveState(n.state, n.seen); err != nil {
		return number, fmt.Errorf("remembering what was seen of the file: %w", err)
	}
	return number, nil
}

// generation is one file, or one life of a file between truncations.
type generation struct {
	Inode uint64 `json:"inode"`
	// Head is the file's first line, or the beginning of it.
	Head []byte `json:"head"`
}

// generations are the files seen at a path.
type generations struct{ numbers[generation] }

func (g *generations) number(f *reading) (int, error) {
	return g.add(generation{source.IDOf(f.Info).Inode, slices.Clone(f.head)})
}

// match returns the number of the newest generation that f is, or -1.
func (g *generations) match(f *reading) int {
	var b [source.PrintSize]byte
	n, _ := f.ReadAt(b[:], 0) // a file that cannot be read matches nothing
	inode := source.IDOf(f.Info).Inode
	return g.find(func(known generation) bool {
		return known.Inode == inode && len(known.Head) > 0 && bytes.HasPrefix(b[:n], known.Head)
	})
}

// reopen opens the remembered files, oldest first, wherever a rotation has put
// them: any file whose name begins with path's.
func (g *generations) reopen(path string) []*reading {
	if len(g.seen.List) == 0 {
		return nil
	}
	dir, base := filepath.Dir(path), filepath.Base(path)
	entries, _ := os.ReadDir(dir) // none can be found in a folder that cannot be read
	var found []*reading
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base) {
			continue
		}
		f, err := open(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		f.generation = g.match(f)
		twice := slices.ContainsFunc(found, func(o *reading) bool { return os.SameFile(o.Info, f.Info) })
		if f.generation < 0 || twice { // a link and what it points to are one file
			f.Close()
			continue
		}
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b *reading) int { return cmp.Compare(a.generation, b.generation) })
	return found
}
