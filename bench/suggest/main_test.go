package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/bench/suggest/play"
)

func TestOracle(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"value":     {`{"eval":{"problem":"sphere-10","params":{"x00":1,"x01":1,"x02":1,"x03":1,"x04":1,"x05":1,"x06":1,"x07":1,"x08":1,"x09":3}}}`, `{"value":4,"values":[4]}`},
		"crash":     {`{"eval":{"problem":"crashing-branin-2","params":{"x00":9,"x01":2}}}`, `{"failed":true}`},
		"word":      {`{"eval":{"problem":"no-such","params":{}}}`, `{"error":"there is no problem \"no-such\"; the command list shows what there is"}`},
		"outside":   {`{"eval":{"problem":"branin-2","params":{"x00":99,"x01":2}}}`, `{"error":"map[x00:99 x01:2] is not in the space"}`},
		"superflux": {`{"eval":{"problem":"branin-2","params":{"x00":1,"x01":2,"y":3}}}`, `{"error":"map[x00:1 x01:2 y:3] has parameters that the space does not have"}`},
		"no JSON":   {`{`, `{"error":"unexpected end of JSON input"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := oracle(t.Context(), strings.NewReader(c.in+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+"\n", out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRunPlaysEachGameOnce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.jsonl")
	args := []string{"-q", "-suite", "s1", "-problem", "branin-2,hartmann", "-method", "random,sobol:random_state=3", "-seeds", "3", "-budget", "12", "-out", out, "-version", "v1"}
	for range 2 {
		if err := runCommand(t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	records, err := play.ReadRecords([]string{out})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[play.Key]bool{}
	for _, r := range records {
		if r.Error != "" || seen[r.Key] {
			t.Errorf("%+v: seen %v, error %q", r.Key, seen[r.Key], r.Error)
		}
		seen[r.Key] = true
	}
	if want := 3 * 2 * 3; len(records) != want {
		t.Errorf("%d records, want %d", len(records), want)
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"3": {0, 1, 2}, "10-12": {10, 11, 12}, "0": nil, "x": nil, "": nil} {
		got, err := parseSeeds(text)
		if (err != nil) != (want == nil) {
			t.Errorf("%q: error %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestJoinSettings(t *testing.T) {
	got := joinSettings([]string{"random", "tpe:a=1", "b=2", "sobol"})
	if diff := cmp.Diff([]string{"random", "tpe:a=1,b=2", "sobol"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
