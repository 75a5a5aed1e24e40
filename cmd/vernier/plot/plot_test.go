package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
)

var update = flag.Bool("update", false, "write the golden files")

// samples are charts of each kind.
func samples() map[string]Chart {
	every, best, wave := Series{Name: "trial"}, Series{Name: "best so far", Shape: Line}, Series{Name: "7", Shape: Line}
	for i := range 30 {
		x := float64(i)
		every.X, every.Y = append(every.X, x), append(every.Y, math.Exp(-x/10)+math.Mod(x*7, 5)/20)
		best.X, best.Y = append(best.X, x), append(best.Y, math.Exp(-x/10))
		wave.X, wave.Y = append(wave.X, x), append(wave.Y, math.Sin(x/4))
	}
	diverged := Series{Name: "trial", X: every.X, Y: append([]float64{}, every.Y...)}
	diverged.Y[3], diverged.Y[17], diverged.Y[18] = 900, 1.5e6, -70
	first := Series{Name: "best so far", Shape: Line, X: best.X, Y: append([]float64{}, best.Y...)}
	first.Y[0] = 4000
	gap := wave
	gap.Name, gap.Y = "with a gap", append([]float64{}, wave.Y...)
	gap.Y[12] = math.NaN()
	return map[string]Chart{
		"history":  {Title: "charlm: loss of 30 trials", X: Axis{Label: "trial", Whole: true}, Y: Axis{Label: "loss"}, Series: []Series{every, best}},
		"outliers": {Title: "charlm: loss of 30 trials", X: Axis{Label: "trial", Whole: true}, Y: Axis{Label: "loss", Near: true}, Series: []Series{diverged, first}},
		"curves":   {Title: "charlm: a curve", X: Axis{Label: "step"}, Y: Axis{Label: "loss"}, Series: []Series{gap}},
		"slice": {Title: "charlm: loss by lr", X: Axis{Label: "lr", Log: true}, Y: Axis{Label: "loss"}, Series: []Series{
			{Name: "trial", X: []float64{1e-5, 1e-3, 0.1, 0}, Y: []float64{3, 1, 2, 9}}, {Name: "best", Shape: Stars, X: []float64{0.01}, Y: []float64{0.5}},
		}},
		"choice":     {Title: "charlm: loss by optimizer", X: Axis{Ticks: []Tick{{At: 0, Label: "sgd"}, {At: 1, Label: "adam"}, {At: 2, Label: "a very long name of an optimizer"}}}, Series: []Series{{X: []float64{0, 1, 2}, Y: []float64{5, 5, 5}}}},
		"importance": {Title: "charlm: importance", Bars: []Bar{{"lr", 0.625}, {"a parameter with a very long name that does not fit", 0.25}, {"several together", 0.125}}},
		"nothing":    {Title: "charlm: nothing", Series: []Series{{X: []float64{1}, Y: []float64{math.NaN()}}}},
	}
}

func TestText(t *testing.T) {
	styles := map[string]Style{"80": {Width: 80, Height: 14}, "200": {Width: 200, Height: 14}, "ascii": {Width: 60, Height: 12, ASCII: true}, "color": {Width: 60, Height: 12, Color: true}}
	for name, chart := range samples() {
		for of, style := range styles {
			t.Run(name+"-"+of, func(t *testing.T) {
				lines := chart.Text(style)
				for _, line := range lines {
					if w := runewidth.StringWidth(line); !style.Color && w > style.Width {
						t.Errorf("a line has %d characters, more than %d: %s", w, style.Width, line)
					}
					if i := strings.IndexFunc(line, func(r rune) bool { return r > 127 }); style.ASCII && i >= 0 {
						t.Errorf("not ASCII: %s", line)
					}
				}
				got, file := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", name+"-"+of+".txt")
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatalf("%v: go test -update writes it", err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestTheRangeWithoutFarOutliers(t *testing.T) {
	among := func(others ...float64) []float64 {
		return append([]float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9}, others...)
	}
	tests := map[string]struct {
		points, line []float64
		low, high    float64
	}{
		"no outlier":                     {among(2.5), nil, 1, 2.5},
		"one above":                      {among(900), nil, 1, 1.9},
		"one on each side":               {among(900, -900), nil, 1, 1.9},
		"one that is the best":           {among(900), []float64{1, 900}, 1, 900},
		"one that the best was at first": {among(900), []float64{900, 1}, 1, 1.9},
		"ten points":                     {append([]float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8}, 1e6), nil, 1, 1.8},
		"two of twenty":                  {append(among(1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7), 900, 900), nil, 1, 1.9},
		"few points":                     {[]float64{1, 1, 1, 900}, nil, 1, 900},
		"points that are equal, and one": {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 900}, nil, 0.5, 1.5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			numbers := make([]float64, len(test.points))
			c := Chart{Y: Axis{Near: true}, Series: []Series{{X: numbers, Y: test.points}, {Shape: Line, X: numbers[:len(test.line)], Y: test.line}}}
			_, y := c.scales()
			y = c.near(y)
			if diff := cmp.Diff([]float64{test.low, test.high}, []float64{y.low, y.high}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPictures(t *testing.T) {
	var charts []Chart
	for _, name := range []string{"history", "curves", "slice", "choice", "importance", "nothing"} {
		charts = append(charts, samples()[name])
	}
	pictures := map[string]*bytes.Buffer{}
	for _, format := range Formats {
		pictures[format] = &bytes.Buffer{}
		if err := Write(pictures[format], format, "<charlm>", charts); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
	if size, err := png.DecodeConfig(pictures["png"]); err != nil || size.Width < 500 || size.Height < 500 {
		t.Errorf("png: %+v, %v", size, err)
	}
	page := pictures["html"].String()
	for _, want := range []string{"&lt;charlm&gt;", "<svg", "loss by optimizer", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, other := range []string{"<script", "src=", "<?xml", "<charlm>"} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %s", other)
		}
	}
	d := xml.NewDecoder(pictures["svg"])
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("svg: %v", err)
		}
	}
	if err := Write(io.Discard, "pdf", "", nil); err == nil || !strings.Contains(err.Error(), ".svg") {
		t.Errorf("another format: %v", err)
	}
}
