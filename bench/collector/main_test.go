package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The service of the load is this program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestASmallLoadIsStoredWhole(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-only", "load", "-trials", "5", "-metrics", "3", "-seconds", "2", "-max-lag", "1m"}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if want := "| sqlite | 5 | 15 | 30 | 0 | 0 |"; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in:\n%s", want, out.String())
	}
}

// A pass that misses a point is an error, so this checks the data and both ways
// to read it.
func TestAllDataIsReadWhole(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-only", "read", "-mb", "1", "-rounds", "1", "-dir", t.TempDir()}, &out); err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads() {
		if strings.Count(out.String(), w.name) != 2 {
			t.Errorf("%s is not there twice:\n%s", w.name, out.String())
		}
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for _, args := range [][]string{{"-only", "lode"}, {"-trials", "0"}, {"serve", "-store", "nonsense", "-key", "00"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestRatiosAreRoundByRound(t *testing.T) {
	ratios := sample{10, 30, 20}.over(sample{5, 10, 20})
	if d := cmp.Diff(sample{2, 3, 1}, ratios); d != "" {
		t.Error(d)
	}
	if got := ratios.spread(1); got != "2.0 (1.0 to 3.0)" {
		t.Error(got)
	}
}
