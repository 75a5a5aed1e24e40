package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A manager that is killed after every few writes, and started again, runs the
// same experiment: nothing is lost and nothing is done twice.
func TestManagerKilledAtEveryWrite(t *testing.T) {
	for writes := range 3 {
		t.Run(fmt.Sprintf("after %d writes", writes+1), func(t *testing.T) { killAtEvery(t, writes+1) })
	}
}

func killAtEvery(t *testing.T, writes int) {
	w := newWorld(t, byNumber(1))
	e := w.experiment("exp", budget(5))
	w.create(e)
	lives := 0
	for ; lives < 200 && !w.read(e).IsCompleted(); lives++ {
		change, died := dieAfter(writes)
		stop := w.start(change)
		w.eventually("the manager dies or is done", func() string {
			select {
			case <-died:
				return ""
			default:
			}
			if w.read(e).IsCompleted() {
				return ""
			}
			return "it lives"
		})
		stop()
	}
	got := w.read(e)
	if !got.IsSucceeded() || got.Status.TrialsSucceeded != 5 || got.Status.CurrentOptimalTrial.BestTrialName != "exp-0001" {
		t.Fatalf("after %d lives: %+v", lives, got.Status)
	}
	if lives < 5 {
		t.Errorf("the manager died %d times only: the test tests nothing", lives)
	}
	trials := w.trialsOf(e)
	if diff := cmp.Diff(numbered("exp", 5), names(trials)); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	for _, tr := range trials {
		attempts, err := w.store.Attempts(t.Context(), string(tr.UID))
		if err != nil {
			t.Fatal(err)
		}
		if len(attempts) != 1 {
			t.Errorf("trial %s was run %d times", tr.Name, len(attempts))
		}
	}
	if w.peak > 2 {
		t.Errorf("%d jobs ran at once", w.peak)
	}
	w.start()
	w.noJobs()
}
