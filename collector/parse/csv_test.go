package parse

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func newCSV(t testing.TB, metrics ...string) *CSV {
	t.Helper()
	return NewCSV(metrics)
}

// readTable reads a whole table; each sample is told as row:offset metric=value.
func readTable(t testing.TB, c *CSV, text string) []string {
	t.Helper()
	var out []string
	rest := []byte(text)
	for len(rest) > 0 {
		record, n := CSVRecord(rest)
		parse := c.Parse
		if n == 0 {
			record, n, parse = rest, len(rest), c.ParseCut
		}
		var samples []collector.Point
		var err error
		CheckMemory(t, len(record), func() { samples, err = parse(nil, record) })
		if err != nil {
			t.Fatal(err)
		}
		checkSamples(t, string(record), samples)
		for _, s := range samples {
			line := fmt.Sprintf("%d:%d %s=%v", c.Rows()-1, s.Seq, s.Metric, s.Value)
			if s.Text != "" {
				line += " (" + s.Text + ")"
			}
			if s.Step != collector.NoStep {
				line += fmt.Sprintf(" step %d", s.Step)
			}
			if !s.Time.IsZero() {
				line += " at " + s.Time.Format(time.RFC3339Nano)
			}
			out = append(out, line)
		}
		rest = rest[n:]
	}
	return out
}

func TestCSV(t *testing.T) {
	tests := map[string]struct {
		metrics []string // default: loss
		text    string
		want    []string
	}{
		"a table":                  {text: "step,loss\n0,1\n5,0.5\n", want: []string{"0:0 loss=1 step 0", "1:0 loss=0.5 step 5"}},
		"carriage returns":         {text: "step,loss\r\n0,1\r\n", want: []string{"0:0 loss=1 step 0"}},
		"no end of the last line":  {text: "step,loss\n0,1", want: []string{"0:0 loss=1 step 0"}},
		"a last line that was cut": {metrics: []string{"loss", "acc"}, text: "loss,acc,x\n1,2,3\n1,2", want: []string{"0:0 acc=2", "0:1 loss=1", "1:0 loss=1"}},
		"a cut first cell":         {text: "loss,acc\n1", want: nil},
		"empty cells":              {metrics: []string{"loss", "acc"}, text: "step,loss,acc\n0,1,\n1,,2\n,,\n", want: []string{"0:0 loss=1 step 0", "1:0 acc=2 step 1"}},
		"quoted cells":             {metrics: []string{`a "b", c`, "loss"}, text: "\"a \"\"b\"\", c\",\"loss\"\n\"1\",\"2\"\n", want: []string{`0:0 a "b", c=1`, "0:1 loss=2"}},
		"a line feed in quotes":    {text: "note,loss\n\"a\nb, \"\"c\"\"\",1\nx,2\n", want: []string{"0:0 loss=1", "1:0 loss=2"}},
		"an empty quoted cell":     {text: "note,loss\n\"\",1\n,\"\"\n", want: []string{"0:0 loss=1"}},
		"a quote within a cell":    {text: "note,loss\n5\" wide,1\n", want: []string{"0:0 loss=1"}},
		"text after a quoted cell": {text: "note,loss\n\"a\" b,1\n", want: []string{"0:0 loss=1"}},
		"spaces":                   {text: "step, loss\n 3 , 1 \n", want: []string{"0:0 loss=1 step 3"}},
		"a mark of the byte order": {text: "\xef\xbb\xbfloss,x\n1,2\n", want: []string{"0:0 loss=1"}},
		"rows longer and shorter":  {text: "a,loss\n1,2,3,4\n1\n1,2\n", want: []string{"0:0 loss=2", "2:0 loss=2"}},
		"two columns of one name":  {text: "loss,loss\n1,2\n3,\n", want: []string{"0:0 loss=2", "1:0 loss=3"}},
		"numbers as people write":  {text: "loss\n\"1,234.5\"\n97.5%\n1e-3\n", want: []string{"0:0 loss=1234.5 (1,234.5)", "1:0 loss=97.5 (97.5%)", "2:0 loss=0.001 (1e-3)"}},
		"texts":                    {text: "loss,x\nbad,1\n", want: []string{"0:0 loss=NaN (bad)"}},
		"Keras without validation": {metrics: []string{"val_loss"}, text: "epoch,loss,val_loss\n0,1,NA\n1,1,0.5\n2,1,NA\n", want: []string{"1:0 val_loss=0.5 step 1"}},
		"cells that say none":      {text: "step,loss\nNone,1\n2,None\n3,null\n4,N/A\n5,none\n", want: []string{"0:0 loss=1", "4:0 loss=NaN (none) step 5"}},
		"NaN and the infinities":   {text: "loss\nNaN\n-inf\n", want: []string{"0:0 loss=NaN", "1:0 loss=-Inf (-inf)"}},
		"the finest step":          {text: "epoch,global_step,loss,iter\n1,500,1,7\n2,,1,9\n3,,1,\n", want: []string{"0:0 loss=1 step 500", "1:0 loss=1 step 9", "2:0 loss=1 step 3"}},
		"a step of pandas":         {text: "step,loss\n3.0,1\n3.5,1\n", want: []string{"0:0 loss=1 step 3", "1:0 loss=1"}},
		"times":                    {text: "time,loss,timestamp\n2026-03-04T05:06:07Z,1,\n12.5,1,1772600767.25\n12.5,1,\n", want: []string{"0:0 loss=1 at 2026-03-04T05:06:07Z", "1:0 loss=1 at 2026-03-04T05:06:07.25Z", "2:0 loss=1"}},
		"another header":           {text: "epoch,loss\n0,1\nepoch,x,loss\n1,5,2\n", want: []string{"0:0 loss=1 step 0", "1:0 loss=2 step 1"}},
		"a line before the header": {text: "#{\"t_start\": 17.5, \"env_id\": \"CartPole-v1\"}\nr,loss,t\n12.0,1,0.5\n", want: []string{"0:0 loss=1"}},
		"a name that is no header": {text: "monitor,loss\nloss,1\n", want: []string{"0:0 loss=1"}},
		"no wanted column":         {text: "x,y\n1,2\n"},
		"empty lines":              {text: "\n\nloss\n\n1\n\r\n2\n", want: []string{"0:0 loss=1", "1:0 loss=2"}},
		"a single line feed":       {text: "\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.metrics == nil {
				tc.metrics = []string{"loss"}
			}
			c := newCSV(t, tc.metrics...)
			for range 2 { // the second time after a reset
				if diff := cmp.Diff(tc.want, readTable(t, c, tc.text)); diff != "" {
					t.Errorf("samples (-want +got):\n%s", diff)
				}
				c.Reset()
			}
		})
	}
}

func TestCSVTellsWhatItSaw(t *testing.T) {
	c := newCSV(t, "loss")
	if c.Columns() != nil || c.FirstRow() != nil || c.Wanted() {
		t.Error("columns before the header")
	}
	readTable(t, c, "step,loss,note,val\n0,0.5,\""+strings.Repeat("x", 100)+"\",NA\n1,2,3,4\n")
	c.Skip()
	if diff := cmp.Diff([]string{"step", "loss", "note", "val"}, c.Columns()); diff != "" || !c.Wanted() || c.Rows() != 3 {
		t.Errorf("wanted %v, rows %d, columns (-want +got):\n%s", c.Wanted(), c.Rows(), diff)
	}
	want := map[string]string{"step": "0", "loss": "0.5", "note": strings.Repeat("x", maxSignCell), "val": ""}
	if diff := cmp.Diff(want, c.FirstRow()); diff != "" {
		t.Errorf("first row (-want +got):\n%s", diff)
	}
}

// checkCSV compares with encoding/csv, where that reads the text.
func checkCSV(t *testing.T, text string) {
	t.Helper()
	var got [][]string
	c := newCSV(t, "loss")
	rest := []byte(text)
	for len(rest) > 0 {
		record, n := CSVRecord(rest)
		if n == 0 {
			record, n = bytes.TrimSuffix(rest, []byte("\r")), len(rest)
		}
		if n > len(rest) || len(record) > n {
			t.Fatalf("%q: a record of %d bytes of %d", text, n, len(rest))
		}
		if len(record) > 0 {
			c.split(record)
			var cells []string // at most maxCells
			for _, cell := range c.cells {
				cells = append(cells, strings.TrimSpace(strings.ReplaceAll(string(cell), "\r\n", "\n")))
			}
			got = append(got, cells)
		}
		rest = rest[n:]
	}
	c = newCSV(t, "loss")
	readTable(t, c, text)
	CheckHeld(t, c)

	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	var want [][]string
	for {
		cells, err := reader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return // what is no CSV may be read in any way
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		want = append(want, cells[:min(len(cells), maxCells)])
	}
	if !slices.EqualFunc(want, got, slices.Equal) {
		t.Fatalf("%q is %q, want %q", text, got, want)
	}
}

func TestCSVAgreesWithTheStandardLibrary(t *testing.T) {
	pieces := []string{"loss", "1.5", ",", ",", "\n", "\r\n", `"`, `""`, " ", "x", "é"}
	randomLines(40000, pieces, func(text string) { checkCSV(t, text) })
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"step,loss\r\n0,1\r\n1,\r\n", "\"a\nb\",loss\n\"x\"\"y\",2\n", "loss\n\n\"1", "a,loss\n1,2\nloss,b\n3,4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkCSV(t, text) })
}
