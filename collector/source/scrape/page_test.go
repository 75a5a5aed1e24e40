package scrape

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// What a page that broke off does not show may be the better series, and the
// choice is for good.
func TestPageThatBreaksOffChoosesNothing(t *testing.T) {
	const whole, broken = "loss{split=\"test\"} 9\nloss 3\n", "loss{split=\"test\"} 9\nlos"
	tests := map[string]struct {
		pages []string
		last  bool // the last of them is the endpoint's last
		want  string
	}{
		"a whole page":                       {pages: []string{whole}, want: "loss"},
		"a broken page":                      {pages: []string{broken}},
		"a broken page, then a whole one":    {pages: []string{broken, whole}, want: "loss"},
		"two broken pages in a row":          {pages: []string{broken, broken}, want: `loss{split="test"}`},
		"a broken page after a whole one":    {pages: []string{"up 1\n", broken}},
		"broken pages with a whole one amid": {pages: []string{broken, "up 1\n", broken}},
		"a broken page that is the last":     {pages: []string{broken}, last: true, want: `loss{split="test"}`},
		"a broken page after it was decided": {pages: []string{whole, broken}, want: "loss"},
		"a whole page after it was decided":  {pages: []string{broken, broken, whole}, want: `loss{split="test"}`},
		"a whole page that is also the last": {pages: []string{broken, whole}, last: true, want: "loss"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := parse.NewSelector("loss")
			if err != nil {
				t.Fatal(err)
			}
			p := newPage([]parse.Selector{s})
			for i, text := range test.pages {
				p.begin(false)
				if err := p.readAll(strings.NewReader(text)); (err != nil) != (text == broken) {
					t.Fatalf("page %d: error %v", i, err)
				}
				p.choose(test.last && i == len(test.pages)-1)
			}
			if got := p.owners["loss"]; got != test.want {
				t.Errorf("it reads %q for good, want %q", got, test.want)
			}
		})
	}
}

// FuzzScrapePage holds that no page makes the reader fail, and that what it
// finds is what the page says.
func FuzzScrapePage(f *testing.F) {
	f.Add([]byte("loss 1\nstep 3\nloss{a=\"b\"} 2\n# EOF\n"), true)
	f.Add([]byte("loss NaN 12\r\n\r\nloss_step 3\nepoch{a=\"b\"} 2"), false)
	f.Add([]byte("{\"loss\"} 1\nloss{\xff} 1\n"), false)
	f.Fuzz(func(t *testing.T, body []byte, openMetrics bool) {
		s, err := New(Config{URL: "http://x/", Metrics: []string{"loss", `loss{a="b"}`}})
		if err != nil {
			t.Fatal(err)
		}
		p := newPage(s.selectors)
		for range 2 {
			p.begin(openMetrics)
			_ = p.readAll(bytes.NewReader(body)) // the errors are the page's own
			p.choose(false)
			for _, m := range s.cfg.Metrics {
				r, _ := p.read(m)
				if r == nil {
					continue
				}
				if !bytes.Contains(body, []byte("loss")) {
					t.Fatalf("%q holds no loss, but %+v was found", body, r)
				}
				if step := p.step(r); step < collector.NoStep || float64(step) > math.Exp2(53) {
					t.Fatalf("step %d", step)
				}
			}
		}
		if len(p.errs) > maxPageErrors || len(p.hints) > source.MaxNames {
			t.Fatalf("%d errors, %d names", len(p.errs), len(p.hints))
		}
	})
}
