package parse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
)

func TestTextSkips(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		filters []string
		want    int
	}{
		"nothing":                         {text: ""},
		"no line is whole":                {text: "loading"},
		"lines without a sign":            {text: "loading\ndone\nnext", want: 13},
		"lines before one with the name":  {text: "loading\ndone\nx loss=3\nmore\n", want: 13},
		"the name in the first line":      {text: "loss=1\nloading\n"},
		"a name with the same end":        {text: "loading\nbliss=1\n", want: 8},
		"other names":                     {text: "a=1\nx y = 2 =\n=\n", want: 14},
		"a name in colours":               {text: "loading\n\x1b[1mloss\x1b[0m=1\n", want: 8},
		"a name after a line without end": {text: strings.Repeat("x", maxSkip) + " loss=1\n"},
		"a line longer than a look":       {text: "a\n" + strings.Repeat("x", 3*maxSkip) + "\nb\n", want: 2},
		"a line longer than any look":     {text: strings.Repeat("x", 2*maxSkip) + "\n"},
		"a heading":                       {text: "loading\nEpoch 3/10\nmore\n", want: 8},
		"a heading in a frame":            {text: "loading\n--- epoch 3\n", want: 8},
		"a heading in colours":            {text: "loading\n\x1b[1mEpoch 3\n", want: 8},
		"a heading after a hole":          {text: "loading\n\x00\x00Epoch 3\n", want: 8},
		"empty lines":                     {text: "\n\nloading\n", want: 10},
		"filters may need no sign at all": {text: "loading\nloss: 3\n", filters: []string{`(loss): (\d)`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newText(t, []string{"loss"}, tc.filters).Skip([]byte(tc.text)); got != tc.want {
				t.Errorf("%d bytes of %q, want %d", got, tc.text, tc.want)
			}
		})
	}
}

// samplesOf reads a text without carriage returns, with Skip or without.
func samplesOf(p *Text, text string, skip bool) (all []collector.Point, errors int) {
	p.Reset()
	for len(text) > 0 {
		if skip {
			text = text[p.Skip([]byte(text)):]
		}
		line, rest, _ := strings.Cut(text, "\n")
		samples, err := p.Parse(nil, []byte(line))
		if all = append(all, samples...); err != nil {
			errors++
		}
		text = rest
	}
	return all, errors
}

func checkSkip(t *testing.T, p *Text, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\r", "\n")
	want, wantErrors := samplesOf(p, text, false)
	got, gotErrors := samplesOf(p, text, true)
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || wantErrors != gotErrors {
		t.Fatalf("%q: %d errors without Skip, %d with; samples (-without +with):\n%s", text, wantErrors, gotErrors, diff)
	}
}

func TestSkippingLosesNothing(t *testing.T) {
	p := newText(t, []string{"loss", "val/loss"}, nil)
	pieces := []string{"loss=1", "val/loss = 0.5", "loss=1,5", "Epoch 3/10", "== epoch 4 ==", "\x1b[1m", "\x1b[0m", "\x00", "\n", "\n", "\n", " ", "=", "step 7", "chatter", "e"}
	randomLines(30000, pieces, func(text string) { checkSkip(t, p, text) })
}

// Texts longer than a look, so that lines lie across its end.
func TestSkippingLongTextsLosesNothing(t *testing.T) {
	p := newText(t, []string{"loss"}, nil)
	pieces := []string{"loss=1\n", "Epoch 3/10\n", "\n", "x=1 ", strings.Repeat("chatter ", 40), strings.Repeat("y\n", maxSkip), strings.Repeat("z", maxSkip)}
	randomLines(300, pieces, func(text string) { checkSkip(t, p, text) })
}

func FuzzSkip(f *testing.F) {
	for _, s := range []string{"loading\nloss=0.5\n", "Epoch 3\nloss=1\n\nmore\n", "a\nb\n\x1b[1mepoch 2\nloss=1"} {
		f.Add(s)
	}
	p := newText(f, []string{"loss", "val/loss"}, nil)
	f.Fuzz(func(t *testing.T, text string) { checkSkip(t, p, text) })
}
