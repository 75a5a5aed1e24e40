package events

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

func TestSameParameter(t *testing.T) {
	tests := map[string]struct {
		given, value string
		want         bool
	}{
		"the same text":                             {"adam", "adam", true},
		"another text":                              {"adam", "sgd", false},
		"a text in other letters":                   {"adam", "Adam", false},
		"the same number":                           {"0.1", "0.1", true},
		"a number in another form":                  {"1e-3", "0.001", true},
		"a number as a text in another form":        {"0.10", "0.1", true},
		"a number that went through 32 bits":        {"0.1", "0.10000000149011612", true},
		"a number that was printed short":           {"0.12345678901", "0.123457", true},
		"a number that is a hundredth off":          {"0.1", "0.101", false},
		"a tenth of the number":                     {"0.01", "0.1", false},
		"the number with another sign":              {"0.1", "-0.1", false},
		"a whole number with a point":               {"32", "32.0", true},
		"whole numbers are exact":                   {"1000000", "1000001", false},
		"but not those that are printed short":      {"1234567", "1.23457e+06", true},
		"nor those that 32 bits do not hold":        {"123456789", "1.23456792e+08", true},
		"zero and something":                        {"0", "1e-12", false},
		"no number twice":                           {"nan", "NaN", true},
		"an infinity and a number":                  {"inf", "1", false},
		"infinities of both signs":                  {"inf", "-Inf", false},
		"a number and a text":                       {"adam", "1", false},
		"a text and a number":                       {"1", "adam", false},
		"true in Python's letters":                  {"True", "true", true},
		"true as 1":                                 {"1", "true", true},
		"1 as true":                                 {"true", "1", true},
		"false as 1":                                {"1", "false", false},
		"true and false":                            {"true", "false", false},
		"true as a text":                            {"true", "True", true},
		"2 is not true":                             {"2", "true", false},
		"nothing was recorded where text was given": {"adam", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := sameParameter(tc.given, tc.value); got != tc.want {
				t.Errorf("given %q, recorded %q: %t", tc.given, tc.value, got)
			}
		})
	}
}

// recordedFile is an event file as a program writes it with its parameters.
func recordedFile(parameters ...string) []byte {
	s := tensorboard.Session{Group: "g", Started: time.Unix(100, 0)}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		s.Parameters = append(s.Parameters, tensorboard.Parameter{Name: name, Value: value})
	}
	return append(tensorboard.Start(s), tensorboard.End(tensorboard.StatusSuccess, time.Unix(101, 0))...)
}

// As PyTorch's add_hparams does: a run of its own, with the metrics.
const subRun = "1763000000.1234567/events.out.tfevents.1763000000.host.1.1"

func TestEventDirRecordedParameters(t *testing.T) {
	tests := map[string]struct {
		given    map[string]string
		files    map[string][]byte
		want     []string // the points
		wantErr  []string
		recorded []string
	}{
		"what was given is not mentioned": {
			given:    map[string]string{"lr": "0.1", "opt": "adam"},
			files:    map[string][]byte{"tfevents": append(recordedFile("lr=0.1", "opt=adam", "seed=3"), sourcetest.Event(102, 1, "loss", 2)...)},
			want:     []string{"0: loss=2 in tfevents"},
			recorded: []string{". lr=0.1", ". opt=adam", ". seed=3"},
		},
		"another value is": {
			given:    map[string]string{"lr": "0.01"},
			files:    map[string][]byte{"tfevents": append(recordedFile("lr=0.1"), sourcetest.Event(102, 1, "loss", 2)...)},
			want:     []string{"0: loss=2 in tfevents"},
			wantErr:  []string{"tfevent: the program recorded lr=0.1, the trial was given 0.01: does it read its arguments?"},
			recorded: []string{". lr=0.1"},
		},
		"in a run of its own, whose scalars are read": {
			given:    map[string]string{"lr": "0.01"},
			files:    map[string][]byte{"tfevents": sourcetest.EventFile(90, "acc=1"), subRun: append(recordedFile("lr=0.1"), sourcetest.Event(102, 0, "loss", 3)...)},
			want:     []string{"0: loss=3 in " + subRun},
			wantErr:  []string{"the program recorded lr=0.1, the trial was given 0.01"},
			recorded: []string{"1763000000.1234567 lr=0.1"},
		},
		"all in one note": {
			given: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": strings.Repeat("5", 50)},
			files: map[string][]byte{"tfevents": append(recordedFile("a=2", "b=x", "c=4", "d=5", "e=6"), sourcetest.Event(102, 1, "loss", 2)...)},
			want:  []string{"0: loss=2 in tfevents"},
			wantErr: []string{"tfevent: the program recorded a=2, the trial was given 1; recorded b=x, given 2; recorded c=4, given 3; and 2 more" +
				": does it read its arguments?"},
			recorded: []string{". a=2", ". b=x", ". c=4", ". d=5", ". e=6"},
		},
		"a program that records several models was given one of them": {
			given: map[string]string{"lr": "0.01"},
			files: map[string][]byte{
				"a/tfevents": append(recordedFile("lr=0.1"), sourcetest.Event(102, 1, "loss", 2)...), "b/tfevents": recordedFile("lr=0.01")},
			want:     []string{"0: loss=2 in a/tfevents"},
			recorded: []string{"a lr=0.1", "b lr=0.01"},
		},
		"what the collector wrote is not the program's": {
			given: map[string]string{"lr": "0.01"},
			files: map[string][]byte{HparamsFile + ".t": recordedFile("lr=0.1"), "tfevents": sourcetest.EventFile(90, "loss=1")},
			want:  []string{"0: loss=1 in tfevents"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, b := range tc.files {
				sourcetest.Put(t, dir, path, b)
			}
			var recorded []string
			got, errs := play(t, Config{Dir: dir, Metrics: []string{"loss"}, Given: tc.given, Recorded: func(run string, p parse.Recorded) {
				recorded = append(recorded, fmt.Sprintf("%s %s=%s", stdcmp.Or(run, "."), p.Name, p.Value))
			}}, map[int]func(){0: func() {}})
			slices.Sort(recorded)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.recorded, recorded); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			wantErrors(t, errs, tc.wantErr...)
		})
	}
}

// Parameters of an earlier run say nothing of this one.
func TestRecordedBeforeTheProgram(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	sourcetest.Put(t, dir, "tfevents", append(recordedFile("lr=0.1"), sourcetest.Event(102, 1, "loss", 2)...))
	before, err := source.RecordBefore(dir+"/", state+"/before.json", false, IsEventFile)
	if err != nil {
		t.Fatal(err)
	}
	got, errs := play(t, Config{Dir: dir, Metrics: []string{"loss"}, Before: before, Given: map[string]string{"lr": "0.01"}}, map[int]func(){0: func() {
		sourcetest.Put(t, dir, "later/tfevents", append(recordedFile("lr=0.01"), sourcetest.Event(202, 1, "loss", 3)...))
	}})
	if diff := cmp.Diff([]string{"0: loss=3 in later/tfevents"}, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, "recorded") }) {
		t.Errorf("errors %q", errs)
	}
}
