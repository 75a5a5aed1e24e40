package push

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// A request that would make a line of endless length is refused whole, and the
// next one is taken.
func TestPushRefusesWhatMakesALineTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var applied []string
	j, err := openJournal(path, 0, func(e entry) { applied = append(applied, e.Run) })
	if err != nil {
		t.Fatal(err)
	}
	push := func(run string) error {
		return j.append(func() (entry, bool) { return entry{Run: run}, true })
	}
	if err := push(strings.Repeat("x", maxJournalLine)); !errors.Is(err, errJournalLine) {
		t.Errorf("too long: %v", err)
	}
	if err := push("a"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a"}, applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != `{"r":"a"}`+"\n" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A line that is no entry of ours, of whatever length, costs itself alone.
func TestPushReadsOnAfterAForeignLine(t *testing.T) {
	ours := `{"r":"run","p":[{"m":"loss","v":"1","s":1,"t":1}]}` + "\n"
	for name, foreign := range map[string]string{
		"no JSON":  "{broken}",
		"too long": strings.Repeat("x", maxJournalLine),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, []byte(ours+foreign+"\n"+ours), 0o600); err != nil {
				t.Fatal(err)
			}
			replayed := 0
			j, err := openJournal(path, 0, func(e entry) { replayed += len(e.Points) })
			if err != nil {
				t.Fatal(err)
			}
			j.close()
			var seqs []int64
			var errs []error
			j.points(t.Context(), func(p collector.Point, err error) bool {
				if err != nil {
					errs = append(errs, err)
				} else {
					seqs = append(seqs, p.Seq)
				}
				return true
			})
			want := []int64{0, int64(len(ours) + len(foreign) + 1)}
			if diff := cmp.Diff(want, seqs); diff != "" || replayed != 2 || len(errs) != 1 {
				t.Errorf("%d replayed, errors %v, places (-want +got):\n%s", replayed, errs, diff)
			}
		})
	}
}
