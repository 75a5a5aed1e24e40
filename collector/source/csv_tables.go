package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
)

// maxTables bounds how many tables of a path are remembered. A program that
// writes its file anew for each epoch makes one for each.
const maxTables = 32

// tables are the tables seen at a path, each known by its first row.
type tables struct {
	path string // where they are remembered; empty: nowhere
	seen tablesSeen
}

type tablesSeen struct {
	// First is the number of the oldest table that is remembered.
	First int `json:"first"`
	// Rows are the first rows of the tables, by column, oldest first.
	Rows []map[string]string `json:"rows"`
}

// load reads what was remembered. What cannot be read counts as nothing.
func (t *tables) load() error {
	if t.path == "" {
		return nil
	}
	b, err := readState(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t.seen)
	}
	if err != nil {
		t.seen = tablesSeen{}
		return fmt.Errorf("the state of an earlier collector is lost, points may be stored twice or not at all: %w", err)
	}
	return nil
}

// number returns the number of the table with a first row: that of the newest
// with an equal one, else the next. The number is valid also when remembering it
// fails.
func (t *tables) number(row map[string]string) (int, error) {
	for i, known := range slices.Backward(t.seen.Rows) {
		if sameRow(known, row) {
			return t.seen.First + i, nil
		}
	}
	t.seen.Rows = append(t.seen.Rows, row)
	if extra := len(t.seen.Rows) - maxTables; extra > 0 {
		t.seen.First += extra
		t.seen.Rows = slices.Delete(t.seen.Rows, 0, extra)
	}
	number := t.seen.First + len(t.seen.Rows) - 1
	if t.path == "" {
		return number, nil
	}
	b, err := json.Marshal(t.seen)
	if err == nil {
		err = replaceFile(t.path, b)
	}
	if err != nil {
		return number, fmt.Errorf("remembering the tables that were seen: %w", err)
	}
	return number, nil
}

// sameRow reports whether two first rows may be of one table: they have equal
// cells, and no cell in which both have something differs.
func sameRow(a, b map[string]string) bool {
	same := false
	for name, x := range a {
		y := b[name]
		switch {
		case x == "" || y == "":
		case x == y || sameNumber(x, y):
			same = true
		default:
			return false
		}
	}
	return same
}

func sameNumber(x, y string) bool {
	v, errX := strconv.ParseFloat(x, 64)
	w, errY := strconv.ParseFloat(y, 64)
	return errX == nil && errY == nil && (v == w || v != v && w != w)
}
