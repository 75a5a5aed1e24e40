package file

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// A program that is killed leaves half a number behind.
func TestATornNumberIsLeftOut(t *testing.T) {
	const well, badly, unknown = "well", "badly", "unknown"
	for name, tc := range map[string]struct {
		format, text, ended string
		filters             []string
		want                []string
		torn                bool
	}{
		"a number at the end, after a kill":        {text: "loss=1\nloss=0.51", ended: badly, want: []string{"loss=1"}, torn: true},
		"the same of a program that ended well":    {text: "loss=1\nloss=0.51", ended: well, want: []string{"loss=1", "loss=0.51"}},
		"the same of an unknown end":               {text: "loss=1\nloss=0.51", ended: unknown, want: []string{"loss=1", "loss=0.51"}},
		"a whole line, after a kill":               {text: "loss=0.51\n", ended: badly, want: []string{"loss=0.51"}},
		"words after the number":                   {text: "loss=0.51 done", ended: badly, want: []string{"loss=0.51"}},
		"a blank after the number":                 {text: "loss=0.51 ", ended: badly, want: []string{"loss=0.51"}},
		"a step that is cut off":                   {text: "loss=0.51 step=3", ended: badly, torn: true},
		"a number before the last":                 {text: "loss=0.5 acc=0.9", ended: badly, want: []string{"loss=0.5"}, torn: true},
		"a number that ends in its point":          {text: "loss=0.", ended: well, torn: true},
		"the same where its end is unknown":        {text: "loss=0.", ended: unknown, torn: true},
		"a number that ends in an exponent's e":    {text: "loss=1e", ended: unknown, torn: true},
		"a number that ends in an exponent's sign": {text: "loss=1e-", ended: unknown, torn: true},
		"a word's point is none of a number":       {text: "loss=0.5 end.", ended: badly, want: []string{"loss=0.5"}},
		"not a number":                             {text: "loss=nan", ended: badly, want: []string{"loss=NaN"}},
		"a hole before it":                         {text: "\x00\x00loss=0.5", ended: badly, torn: true},
		"nothing":                                  {ended: badly},
		"what a filter finds":                      {text: "loss: 0.5", filters: []string{`(loss): (\S+)`}, ended: badly, torn: true},
		"what a filter finds with an end":          {text: "{loss: 0.5}", filters: []string{`{(loss): ([\d.]+)}`}, ended: badly, want: []string{"loss=0.5"}},
		"a whole object of JSON":                   {format: parse.FormatJSON, text: `{"loss": 0.5}`, ended: badly, want: []string{"loss=0.5"}},
		"half an object":                           {format: parse.FormatJSON, text: `{"loss": 0.5`, ended: badly},
		"logfmt":                                   {format: parse.FormatLogfmt, text: "acc=1 loss=0.5", ended: badly, want: []string{"acc=1"}, torn: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.format == "" {
				tc.format = parse.FormatText
			}
			parser, err := parse.NewLine(tc.format, []string{"loss", "acc"}, tc.filters)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			torn := false
			l := newLines(parser, "x", time.Now, func(p collector.Point, err error) bool {
				if err == nil {
					got = append(got, fmt.Sprintf("%s=%v", p.Metric, p.Value))
				} else if strings.Contains(err.Error(), "in the middle of a number") {
					torn = true
				}
				return true
			})
			l.kept = true
			if tc.ended == badly && tc.text != "" && !strings.HasSuffix(tc.text, "\n") {
				tc.text += noEnd + "\n" // as a StreamWriter keeps it
			}
			l.feed(0, []byte(tc.text))
			for range 2 { // the second has nothing to do
				if !l.last() {
					t.Error("the consumer had enough")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || torn != tc.torn {
				t.Errorf("torn %v, want %v; points (-want +got):\n%s", torn, tc.torn, diff)
			}
		})
	}
}

// Looking whether a line is torn teaches the parser nothing: what follows in
// another file has the step that was announced.
func TestATornHeadingIsForgotten(t *testing.T) {
	var steps []int64
	l := newLines(lossParser(t), "x", time.Now, func(p collector.Point, err error) bool {
		if err != nil {
			t.Error(err)
		}
		steps = append(steps, p.Step)
		return true
	})
	l.feed(0, []byte("Epoch 3\nloss=1\nEpoch "))
	l.last()
	l.feed(30, []byte("loss=0.5\n"))
	if diff := cmp.Diff([]int64{3, 3}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
