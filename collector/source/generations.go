package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// generationShift leaves 1 TiB to each generation of a file.
	generationShift = 40
	// maxGenerations bounds how many are remembered. A program that writes its file
	// anew for each epoch makes one for each.
	maxGenerations = 256
)

// generation is one file, or one life of a file between truncations.
type generation struct {
	Inode uint64 `json:"inode"`
	// Head is the file's first line, or the beginning of it.
	Head []byte `json:"head"`
}

// generations are the files seen at a path.
type generations struct {
	path string // where they are remembered; empty: nowhere
	seen generationsSeen
}

type generationsSeen struct {
	// First is the number of the oldest one that is remembered.
	First int `json:"first"`
	// List is those that are, oldest first.
	List []generation `json:"list"`
}

// load reads what was remembered. What cannot be read counts as nothing.
func (g *generations) load() error {
	if g.path == "" {
		return nil
	}
	b, err := readState(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &g.seen)
	}
	if err != nil {
		g.seen = generationsSeen{}
		return fmt.Errorf("the state of an earlier collector is lost, points may be stored twice or not at all: %w", err)
	}
	return nil
}

// add gives a file the next number and remembers it. The number is valid also
// when remembering fails.
func (g *generations) add(f *openFile) (int, error) {
	g.seen.List = append(g.seen.List, generation{f.inode(), slices.Clone(f.head)})
	if extra := len(g.seen.List) - maxGenerations; extra > 0 {
		g.seen.First += extra
		g.seen.List = slices.Delete(g.seen.List, 0, extra)
	}
	number := g.seen.First + len(g.seen.List) - 1
	if g.path == "" {
		return number, nil
	}
	b, err := json.Marshal(g.seen)
	if err == nil {
		err = replaceFile(g.path, b)
	}
	if err != nil {
		return number, fmt.Errorf("remembering the files that were seen: %w", err)
	}
	return number, nil
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(path string, b []byte) error {
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// find opens the remembered files, oldest first, wherever a rotation has put
// them: any file whose name begins with path's.
func (g *generations) find(path string) []*openFile {
	if len(g.seen.List) == 0 {
		return nil
	}
	dir, base := filepath.Dir(path), filepath.Base(path)
	entries, _ := os.ReadDir(dir) // none can be found in a folder that cannot be read
	var found []*openFile
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base) {
			continue
		}
		f, err := openRegular(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		f.generation = g.match(f)
		twice := slices.ContainsFunc(found, func(o *openFile) bool { return os.SameFile(o.info, f.info) })
		if f.generation < 0 || twice { // a link and what it points to are one file
			f.Close()
			continue
		}
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b *openFile) int { return cmp.Compare(a.generation, b.generation) })
	return found
}

// match returns the number of the newest generation that f is, or -1.
func (g *generations) match(f *openFile) int {
	var b [printSize]byte
	n, _ := f.ReadAt(b[:], 0) // a file that cannot be read matches nothing
	for i, known := range slices.Backward(g.seen.List) {
		if known.Inode == f.inode() && len(known.Head) > 0 && bytes.HasPrefix(b[:n], known.Head) {
			return g.seen.First + i
		}
	}
	return -1
}
