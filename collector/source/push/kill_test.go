package push

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A request that is sent again after its answer was lost counts once, also when
// the collector was killed in between.
func TestPushKnowsAKeyAgain(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	for _, want := range []string{`{"duplicate":false,"points":1}`, `{"duplicate":true,"points":1}`} {
		if status, text := first.report(`{"loss": 1}`, "Idempotency-Key", "a"); status != 200 || text != want {
			t.Errorf("status %d: %s, want %s", status, text, want)
		}
	}
	first.stop()
	<-first.done

	second := startPush(t, journal)
	second.report(`{"loss": 1}`, "Idempotency-Key", "a")
	second.report(`{"loss": 1}`, "Idempotency-Key", "b")
	second.report(`{"loss": 1}`)
	second.report(`{"loss": 1}`)
	if status, text := second.report(`{"loss": 1}`, "Idempotency-Key", strings.Repeat("k", maxKey+1)); status != 400 {
		t.Errorf("a long key: status %d: %s", status, text)
	}
	if got := second.end(); len(got) != 4 {
		t.Errorf("points: %v, want those of a, b and two without a key", got)
	}
}

// Whatever is left of the last line, the answered requests are all there and the
// torn one is not.
func TestPushSurvivesAKillAtAnyByte(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	p := startPush(t, journal)
	p.report(`[{"loss": 1, "step": 1}, {"loss": 2, "step": 2}]`, "Idempotency-Key", "a")
	answered, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	p.report(`[{"loss": 3, "step": 3}, {"loss": 4, "step": 4}]`, "Idempotency-Key", "b")
	p.end()
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(answered); cut < len(whole); cut++ {
		if err := os.WriteFile(journal, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := startPush(t, journal)
		again.report(`[{"loss": 3, "step": 3}, {"loss": 4, "step": 4}]`, "Idempotency-Key", "b")
		again.report(`[{"loss": 1, "step": 1}, {"loss": 2, "step": 2}]`, "Idempotency-Key", "a")
		want := []string{"loss=1 at 1", "loss=2 at 2", "loss=3 at 3", "loss=4 at 4"}
		if diff := cmp.Diff(want, again.end()); diff != "" {
			t.Fatalf("cut at %d of %d (-want +got):\n%s", cut, len(whole), diff)
		}
		again.stop()
	}
}

// Points have the same identities when the journal is read again.
func TestPushIdentitiesLast(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	first.report(`[{"loss": 1}, {"loss": 2}, {"loss": 3}]`)
	first.report(`{"loss": 4}`)
	first.end()
	second := startPush(t, journal)
	second.report(`{"loss": 5}`)
	second.end()
	for key, p := range first.rec.Points {
		if diff := cmp.Diff(p, second.rec.Points[key]); diff != "" {
			t.Errorf("%v (-first +second):\n%s", key, diff)
		}
	}
	if len(second.rec.Points) != 5 {
		t.Errorf("%d points, want 5", len(second.rec.Points))
	}
}

func TestPushTellsOfALineThatItCannotRead(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	line := `{"p":[{"m":"loss","v":"1","s":1,"t":1}]}` + "\n"
	if err := os.WriteFile(journal, []byte(line+"{broken}\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startPush(t, journal)
	close(p.drain)
	<-p.done
	if len(p.rec.Points) != 2 || len(p.rec.Errs) != 1 || !strings.Contains(p.rec.Errs[0], fmt.Sprint("at ", len(line))) {
		t.Errorf("%d points, errors %q", len(p.rec.Points), p.rec.Errs)
	}
}
