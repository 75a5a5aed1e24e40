package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats are the formats of Write, by the ending of a file.
var Formats = []string{"svg", "png", "html"}

// The colours of Okabe and Ito, which most people can tell apart.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{213, 94, 0, 255},
}

var grey = color.RGBA{160, 160, 160, 255}

const (
	imageWidth  = 8 * vg.Inch
	imageHeight = 4 * vg.Inch
)

// Write draws charts below each other, as svg, png or html. An HTML file needs no
// other file.
func Write(out io.Writer, format, title string, charts []Chart) error {
	height := vg.Length(len(charts)) * imageHeight
	switch format {
	case "png":
		c := vgimg.New(imageWidth, height)
		if err := drawAll(draw.New(c), charts); err != nil {
			return err
		}
		_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(out)
		return err
	case "svg", "html":
		c := vgsvg.New(imageWidth, height)
		if err := drawAll(draw.New(c), charts); err != nil {
			return err
		}
		if format == "svg" {
			_, err := c.WriteTo(out)
			return err
		}
		var picture bytes.Buffer
		if _, err := c.WriteTo(&picture); err != nil {
			return err
		}
		// The declaration of XML does not belong into HTML.
		_, body, _ := bytes.Cut(picture.Bytes(), []byte("<svg"))
		_, err := fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head>\n<body style=\"font-family:sans-serif;background:#fff\">\n<svg%s\n</body></html>\n",
			html.EscapeString(title), body)
		return err
	}
	return fmt.Errorf("there is no format %q: name a file that ends in .svg, .png or .html", format)
}

func drawAll(c draw.Canvas, charts []Chart) error {
	tiles := draw.Tiles{Rows: len(charts), Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(12), PadY: vg.Points(12)}
	for i, chart := range charts {
		p, err := chart.plot()
		if err != nil {
			return fmt.Errorf("draw %s: %w", chart.Title, err)
		}
		p.Draw(tiles.At(c, 0, i))
	}
	return nil
}

func (c Chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X.Label, c.Y.Label
	if c.Note != "" {
		p.Title.Text += "\n" + c.Note
	}
	p.Legend.Top = true
	if len(c.Bars) > 0 {
		return p, c.plotBars(p)
	}
	if c.Empty() {
		return p, nil
	}
	setAxis(&p.X, c.X)
	setAxis(&p.Y, c.Y)
	for _, behind := range []bool{true, false} {
		n := 0
		for _, s := range c.Series {
			var ink color.Color = grey
			if !s.Faint {
				ink = palette[n%len(palette)]
				n++
			}
			if s.Faint != behind {
				continue
			}
			if err := c.plotSeries(p, s, ink); err != nil {
				return nil, err
			}
		}
	}
	x, y := c.scales()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x.low, x.high, y.low, y.high
	return p, nil
}

func setAxis(to *plot.Axis, a Axis) {
	if a.Log {
		to.Scale, to.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if len(a.Ticks) == 0 {
		return
	}
	var ticks plot.ConstantTicks
	for _, t := range a.Ticks {
		label := t.Label
		if t.Low != "" {
			label += "\n" + t.Low + " to " + t.High
		}
		ticks = append(ticks, plot.Tick{Value: t.At, Label: label})
	}
	to.Tick.Marker = ticks
}

// plotSeries adds the parts of a series that are not interrupted.
func (c Chart) plotSeries(p *plot.Plot, s Series, ink color.Color) error {
	var parts []plotter.XYs
	open := false
	for i := range s.X {
		if !c.drawn(s.X[i], s.Y[i]) {
			open = false
			continue
		}
		if !open {
			parts = append(parts, nil)
		}
		open = true
		last := &parts[len(parts)-1]
		*last = append(*last, plotter.XY{X: s.X[i], Y: s.Y[i]})
	}
	for i, xys := range parts {
		var thumb plot.Thumbnailer
		if s.Shape == Line {
			l, err := plotter.NewLine(xys)
			if err != nil {
				return err
			}
			l.Color, l.Width = ink, vg.Points(1.2)
			p.Add(l)
			thumb = l
		} else {
			dots, err := plotter.NewScatter(xys)
			if err != nil {
				return err
			}
			dots.Color, dots.Shape, dots.Radius = ink, draw.CircleGlyph{}, vg.Points(2.5)
			if s.Shape == Stars {
				dots.Shape, dots.Radius = draw.PyramidGlyph{}, vg.Points(4)
			}
			p.Add(dots)
			thumb = dots
		}
		if i == 0 && s.Name != "" && c.named() <= 12 {
			p.Legend.Add(strings.TrimSpace(c.Each+" "+s.Name), thumb)
		}
	}
	return nil
}

// named is how many series have a name.
func (c Chart) named() (n int) {
	for _, s := range c.Series {
		if s.Name != "" {
			n++
		}
	}
	return n
}

func (c Chart) plotBars(p *plot.Plot) error {
	var values plotter.Values
	var names []string
	for i := len(c.Bars) - 1; i >= 0; i-- { // the first one is on top
		values, names = append(values, c.Bars[i].Share), append(names, c.Bars[i].Label)
	}
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, palette[0], 0
	p.Add(bars)
	p.NominalY(names...)
	p.X.Min = 0
	return nil
}
