package play

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStoreGoesOnAfterAKill(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.jsonl")
	first := NewRecord(Key{Suite: "s1", Problem: "a", Method: "m", Seed: 1, Budget: 9}, Played{Path: Path{{1, 5}, {4, 2.5}}, Spent: []Cost{{3, 4}}}, nil)
	second := first
	second.Seed = 2
	s, err := OpenStore(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Record{first, second} {
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The program is killed in the middle of its second line.
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data[:len(data)-7], 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = OpenStore(name)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Has(first.Key) || s.Has(second.Key) {
		t.Errorf("has the first: %v, has the second: %v; want the first alone", s.Has(first.Key), s.Has(second.Key))
	}
	if err := s.Add(second); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecords([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Record{first, second}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPathAfter(t *testing.T) {
	r := NewRecord(Key{}, Played{Path: Path{{2, 5}, {4, 2.5}}}, nil)
	for at, want := range map[float64]float64{2: 5, 3: 5, 4: 2.5, 100: 2.5} {
		if got := r.After(at); got != want {
			t.Errorf("after %v: %v, want %v", at, got, want)
		}
	}
	if got := r.After(1); got < 1e300 {
		t.Errorf("before the first: %v, want +Inf", got)
	}
}

func TestOursPlayTheSameGameTwice(t *testing.T) {
	for _, r := range []string{Sequential, BatchOf8, Async32} {
		var paths []Path
		for range 2 {
			o, err := NewOurs("sobol")
			if err != nil {
				t.Fatal(err)
			}
			played, err := Play(t.Context(), o, newRun(t, r, 40))
			if err != nil || len(played.Spent) != 40 {
				t.Fatalf("%d suggestions, %v", len(played.Spent), err)
			}
			paths = append(paths, played.Path)
		}
		if diff := cmp.Diff(paths[0], paths[1]); diff != "" {
			t.Errorf("%s: -first +second:\n%s", r, diff)
		}
	}
}
