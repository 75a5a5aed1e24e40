package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// asked answers a question about one experiment with three trials.
func asked(ctx context.Context, t *testing.T, output, text string) (string, error) {
	t.Helper()
	if err := onlyReads(text); err != nil {
		return "", err
	}
	return answered(ctx, t, output, text)
}

// answered is asked without the look at the text.
func answered(ctx context.Context, t *testing.T, output, text string) (string, error) {
	t.Helper()
	return answeredOf(ctx, t, output, text, "3", "0.5", "")
}

// answeredOf is answered with these results of the trials.
func answeredOf(ctx context.Context, t *testing.T, output, text string, values ...string) (string, error) {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range append(queryTables[:len(queryTables):len(queryTables)], "SELECT 1") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	view := aView(withBest(anExperiment(), aTrial(1, v1beta1.TrialSucceeded, "0.5")), values...)
	if err := fillExperiment(t.Context(), db, view, noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := readOnly(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = queryOptions{output: output}.answer(ctx, db, text, &out)
	return out.String(), err
}

func TestQuery(t *testing.T) {
	tests := map[string]struct{ output, text, want string }{
		"a table":     {"table", "select trial, value, best from trials order by trial;", "trial   value   best\n0       3       0\n1       0.5     1\n2               0\n"},
		"csv":         {"csv", "select trial, name, value from params where value >= 0.1", "trial,name,value\n1,lr,0.1\n2,lr,0.2\n"},
		"json":        {"json", "select value from metrics where trial = 2", "[]\n"},
		"experiments": {"csv", "select name, objective, best_value from experiments", "name,objective,best_value\ncharlm,loss,0.5\n"},
		"a comment":   {"csv", "-- what is best; what is not\nselect 1 as [a;b];", "a;b\n1\n"},
		"a semicolon": {"csv", "select ';' as x", "x\n;\n"},
		"json with columns of one name": {"json", "select t.value, p.value, p.name, 7 as \"value:1\" from trials t join params p using (experiment, trial) where t.trial = 1",
			"[\n  {\n    \"name\": \"lr\",\n    \"value\": 0.5,\n    \"value:1\": 7,\n    \"value:2\": 0.1\n  }\n]\n"},
		"json without a number that is finite": {"json", "select 9e999 as a, -9e999 as b", "[\n  {\n    \"a\": null,\n    \"b\": null\n  }\n]\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := asked(t.Context(), t, test.output, test.text)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestQueryHasNoTextForANumber(t *testing.T) {
	got, err := answeredOf(t.Context(), t, "json", `select count(*) as n, count(t.value) as known, max(t.value) as most, avg(t.value) as mean, max(m.value) as metric
		from trials t join metrics m using (experiment, trial) where m.name = 'loss'`, "1", "NaN", "nan", "+Inf", "-inf", "much", "3")
	want := `[
  {
    "known": 2,
    "mean": 2,
    "metric": 3,
    "most": 3,
    "n": 7
  }
]
`
	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestQueryOnlyReads(t *testing.T) {
	for _, text := range []string{
		"", "delete from trials", "attach database '/tmp/x' as y", "pragma query_only = off", "select 1; attach database ':memory:' as y",
		"with a as (select 1) delete from trials", "with a as (select 1) insert into params select 'a', 1, 'b', 2", "select * from nothing",
		"select 1 /* ' */; attach database '/tmp/x' as y; -- '", "select 1 -- '\n; pragma query_only = off; -- '", "select 1 as [']; delete from trials; --']",
		"select 1\x00", "/* select */ delete from trials",
	} {
		if _, err := asked(t.Context(), t, "table", text); exitCode(err) != exitUsage {
			t.Errorf("%s: %v, want a usage error", text, err)
		}
	}
}

func TestAQuestionAboutUnknownNamesSaysWhichThereAre(t *testing.T) {
	tests := map[string]struct {
		text  string
		lists bool
	}{
		"a table":             {"select * from trial", true},
		"a column":            {"select lr from trials", true},
		"a column of a table": {"select t.loss from trials t", true},
		"a fault of grammar":  {"select from trials", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := asked(t.Context(), t, "table", test.text)
			if exitCode(err) != exitUsage {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitUsage)
			}
			if got := strings.Contains(err.Error(), queryColumns[:40]); got != test.lists {
				t.Errorf("lists the columns: %t, want %t: %v", got, test.lists, err)
			}
		})
	}
}

// TestTheHelpHasTheColumnsThatThereAre compares the help with the tables that are made.
func TestTheHelpHasTheColumnsThatThereAre(t *testing.T) {
	for _, statement := range queryTables {
		table, columns, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(statement, "CREATE TABLE "), ")"), "(")
		var names []string
		for column := range strings.SplitSeq(columns, ", ") {
			name, _, _ := strings.Cut(column, " ")
			names = append(names, name)
		}
		requireText(t, queryColumns, "  "+table+"("+strings.Join(names, ", ")+")")
	}
}

// TestQueryReachesNoFile holds that SQLite itself refuses what onlyReads looks for.
func TestQueryReachesNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	for _, text := range []string{
		"pragma query_only = off; attach database '%s' as y; create table y.t(a)", "pragma query_only = off; vacuum into '%s'", "delete from trials",
	} {
		if got, err := answered(t.Context(), t, "csv", strings.Replace(text, "%s", file, 1)); err == nil {
			t.Errorf("%s: answered %q", text, got)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: wrote a file", text)
		}
	}
}

func TestQueryIsBounded(t *testing.T) {
	const endless = "with recursive c(x) as (select 1 union all select x+1 from c) select %s from c"
	if _, err := asked(t.Context(), t, "csv", strings.Replace(endless, "%s", "x", 1)); err == nil || !strings.Contains(err.Error(), "add a limit") {
		t.Errorf("too many rows: %v", err)
	}
	const large = "select hex(zeroblob(%s)) from (select 1 union all select 2 union all select 3)"
	for size, want := range map[string]string{"15000000": "is larger than", "90000000": "too big"} {
		if _, err := asked(t.Context(), t, "csv", strings.Replace(large, "%s", size, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values of %s bytes: %v", size, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := asked(ctx, t, "csv", strings.Replace(endless, "%s", "max(x)", 1)); err == nil {
		t.Error("a question without an end was answered")
	}
}
