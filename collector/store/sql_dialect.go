package store

import (
	"context"
	"database/sql"
	"math"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// dialect is in what the SQL engines differ. All else is written once, with "?"
// for parameters.
type dialect struct {
	// name is that of the folder of migrations, too.
	name string
	// numbered: parameters are $1, $2 and so on.
	numbered bool
	// begin begins a transaction that writes, and session prepares a connection
	// for such.
	begin   string
	session []string
	// read is how transactions that read see one state of the store.
	read sql.TxOptions
	// known ends an insert of names that passes over those that are there,
	// knownPoint one of points, and ack one that moves the acknowledged sequences of
	// sources forward.
	known, knownPoint, ack string
	// lockRows ends a select whose rows nobody else may change meanwhile.
	lockRows string
	// text makes a parameter of a name or text.
	text func(string) any
	// columns are those of the table point; encode makes the parameters of its
	// column value (and special, where there is one). special is how the latter is
	// selected.
	columns string
	encode  func(v float64) []any
	special string
	// pointRows are the numbers of rows of the inserts into point, largest first
	// and 1 last.
	pointRows []int
	// points, where it is set, inserts points in another way than by rows.
	points func(ctx context.Context, c *sqlConn, rows []row) error
	// exclusive are statements that make that one process at a time migrates, and
	// that the table of createVersions exists; release ends it where the end of
	// the transaction does not.
	exclusive []string
	release   string
	// changed, where it is set, says whether somebody else wrote since c was asked
	// last.
	changed func(ctx context.Context, c *sqlConn) (bool, error)
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
	// conflict: another transaction was in the way, and the same may succeed now.
	conflict
	// orphan: a row refers to one that was deleted.
	orphan
)

// row is a point with numbers for names.
type row struct {
	source, metric int64
	collector.Point
}

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

// plain hands a value over as it is. NaN is NULL.
func plain(v float64) []any {
	if math.IsNaN(v) {
		return []any{nil}
	}
	return []any{v}
}

// tuples are n rows of parameters: "(?,?),(?,?)".
func tuples(n, columns int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", columns), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}
