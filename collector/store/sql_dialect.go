package store

import (
	"database/sql"
	"math"
	"strconv"
	"strings"
)

// dialect is how the SQL engines differ. All else is written once, with "?" for
// parameters.
type dialect struct {
	// name is that of the folder of migrations, too.
	name string
	// numbered: parameters are $1, $2 and so on.
	numbered bool
	// read makes a transaction see one state of the store, and write one that waits
	// for other processes that write.
	read, write sql.TxOptions
	// known ends an insert of names that passes over those that are there,
	// knownPoint one of points, and ack one that moves the acknowledged sequences of
	// sources forward and adds to their counts.
	known, knownPoint, ack string
	// lockRows ends a select whose rows no other process may change meanwhile.
	lockRows string
	// text makes a parameter of a name or text.
	text func(string) any
	// columns are those of the table point; encode makes the parameters of its
	// column value (and special, where there is one). special is how the latter is
	// selected.
	columns string
	encode  func(v float64) []any
	special string
	// integer is the type that a sum is cast to.
	integer string
	// exclusive are statements that make that one process at a time migrates, and
	// that the table of createVersions exists; release ends it where the end of
	// the transaction does not. applied says of an error that a statement of a
	// migration took effect before a crash, where each is committed by itself.
	exclusive []string
	release   string
	applied   func(error) bool
	// dataVersion, where it is set, is a query whose number changes when another
	// process writes.
	dataVersion string
	// kind tells errors of the engine apart.
	kind func(err error) errorKind
	// version and size are queries for Stat: a text, and a number of bytes. before
	// are statements that make the size right.
	version, size string
	before        []string
}

// errorKind is what an error says about trying again.
type errorKind int

const (
	// lost: the engine did not answer, or not as an engine does.
	lost errorKind = iota
	// refused: the engine refused a statement.
	refused
	// conflict: another transaction was in the way, or deleted what a row refers to;
	// the same may succeed now.
	conflict
)

// sql writes a query in the dialect.
func (d *dialect) sql(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// plain hands a value over as it is, and NaN as NULL.
func plain(v float64) []any {
	if math.IsNaN(v) {
		return []any{nil}
	}
	return []any{v}
}
