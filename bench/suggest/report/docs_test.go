package report

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const docs = "../../../docs"

// TestThePagesSayWhatWasMeasured holds that the page of each algorithm has the
// rows that the report wrote, and no others.
func TestThePagesSayWhatWasMeasured(t *testing.T) {
	file, err := os.Open(filepath.Join(docs, "benchmarks", "algorithms.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][][]string{}
	for _, r := range records {
		rows[r[0]] = append(rows[r[0]], r[1:])
	}
	for _, r := range algorithm.All() {
		t.Run(r.Name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(docs, "algorithms", r.Name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, ok := strings.Cut(string(text), "\n## Benchmark\n\n"+begin+"\n\n")
			block, _, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				t.Fatalf("there is no section Benchmark with the lines %q and %q", begin, end)
			}
			if len(rows[r.Name]) == 0 {
				if strings.TrimSpace(block) != unplayed(r.Name) {
					t.Errorf("it has no results, and its page says %q", block)
				}
				return
			}
			var table [][]string
			for text := range strings.Lines(block) {
				if text = strings.TrimSpace(text); strings.HasPrefix(text, "| ") {
					table = append(table, strings.Split(strings.Trim(text, "|"), "|"))
				}
			}
			for _, cells := range table {
				for i := range cells {
					cells[i] = strings.TrimSpace(cells[i])
				}
			}
			if len(table) == 0 {
				t.Fatalf("there is no table:\n%s", block)
			}
			if diff := cmp.Diff(rows[r.Name], table[1:]); diff != "" {
				t.Errorf("write it anew with bench/suggest report (-measured +documented):\n%s", diff)
			}
		})
	}
}
