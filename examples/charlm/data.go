package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxText      = 2 << 20  // bytes of text to read
	maxFile      = 32 << 10 // of one file
	maxFiles     = 6        // of one directory, for variety
	validateEach = 10       // one file in ten is for validation
)

// classes is the size of the alphabet: tab, newline, the printable ASCII
// characters, and one class for everything else.
const classes = 3 + '~' - ' ' + 1

func class(c byte) uint8 {
	switch {
	case c == '\t':
		return 1
	case c == '\n':
		return 2
	case ' ' <= c && c <= '~':
		return c - ' ' + 3
	default:
		return 0
	}
}

// load reads a bounded sample of the Go files below dir, in lexical order, and
// splits it into texts for training and for validation.
func load(dir string, context int) (train, validation []uint8, err error) {
	root := filepath.Join(dir, "src")
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = dir
	}
	files, perDir := 0, map[string]int{}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch name := entryName(e); {
		case err != nil:
			return err
		case e.IsDir() && path != root && (name == "cmd" || name == "testdata" || name == "vendor" || name == "internal"):
			return fs.SkipDir
		case !e.Type().IsRegular() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		case len(train)+len(validation) >= maxText:
			return fs.SkipAll
		}
		if perDir[filepath.Dir(path)]++; perDir[filepath.Dir(path)] > maxFiles {
			return nil
		}
		text, err := readSome(path)
		if err != nil {
			return err
		}
		if files++; files%validateEach == 0 {
			validation = append(validation, text...)
		} else {
			train = append(train, text...)
		}
		return nil
	})
	if err == nil && (len(train) <= 2*context || len(validation) <= 2*context) {
		err = errors.New("too few .go files")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the training text below %s: %w", root, err)
	}
	return train, validation, nil
}

// entryName is the name of an entry. WalkDir passes a nil entry if it cannot read
// the root.
func entryName(e fs.DirEntry) string {
	if e == nil {
		return ""
	}
	return e.Name()
}

// readSome returns the classes of the first bytes of a file.
func readSome(path string) ([]uint8, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	for i, c := range b {
		b[i] = class(c)
	}
	return b, err
}
