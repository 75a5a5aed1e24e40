package probe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/probe"
)

func TestProbeQuotesWhatIsNoNumber(t *testing.T) {
	r := run(t, probe.Config{Path: write(t, "train.log", "epoch=1 loss=tensor(0.5)\n")}, "loss")
	want := []probe.Missing{{Name: "loss", Near: []string{}, Hint: `it is written "loss=tensor(0.5)", which is not a number: print the number alone, as .item() gives it`}}
	if d := cmp.Diff(want, r.Missing); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestProbeSaysWhyNothingIsFound(t *testing.T) {
	const colon = `it is written "loss: ...": print loss=..., or add --filter '` + parse.ColonFilter + `'`
	tests := map[string]struct {
		name, text string
		want       string // the name and the hint
	}{
		"a word before the name":      {"train.log", "mean loss: 0.5\n", "loss/" + colon},
		"semicolons":                  {"metrics.csv", "step;loss\n1;0,5\n", "/the table is separated by ;: only commas are read"},
		"tabs":                        {"metrics.csv", "step\tloss\n1\t0.5\n", "/the table is separated by tabs: only commas are read"},
		"a table with semicolons":     {"metrics.txt", "step;loss\n1;0,5\n", "/this looks like a table that is separated by ;: only commas are read, as CSV"},
		"a table with another's name": {"metrics.txt", "step,loss\n1,0.5\n", "/this looks like CSV: add --format CSV"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.name, tc.text)
			all := run(t, probe.Config{Path: path})
			if len(all.Unread) != 1 || all.Unread[0].Name+"/"+all.Unread[0].Hint != tc.want || len(all.Metrics) > 0 {
				t.Errorf("metrics %v, unread %v, want %s", all.Metrics, all.Unread, tc.want)
			}
			one := run(t, probe.Config{Path: path}, "loss")
			if _, hint, _ := strings.Cut(tc.want, "/"); len(one.Missing) != 1 || one.Missing[0].Hint != hint || len(one.Unread) > 0 {
				t.Errorf("missing %v, unread %v, want %s", one.Missing, one.Unread, hint)
			}
		})
	}
}

func TestProbeSaysWhatATrialHasLate(t *testing.T) {
	const hint = `it is written "loss: ...": print loss=..., or add --filter '` + parse.ColonFilter + `'`
	for text, want := range map[string]string{"loss: 0.5\n": hint, "loss: 0.5\nloss=0.25\n": ""} {
		r := run(t, probe.Config{Path: write(t, "train.log", text)}, "loss")
		if len(r.Metrics) != 1 || r.Metrics[0].Hint != want || r.Metrics[0].Late != (want != "") || len(r.Missing) > 0 {
			t.Errorf("%q: metrics %+v, missing %v, want the hint %q", text, r.Metrics, r.Missing, want)
		}
	}
	if all := run(t, probe.Config{Path: write(t, "train.log", "lr=1\nloss: 0.5 - acc: [1]\n")}); len(all.Metrics) != 2 || !all.Metrics[1].Late || len(all.Missing)+len(all.Unread) > 0 {
		t.Errorf("without metrics: %+v", all)
	}
}
