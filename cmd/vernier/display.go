package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// display shows an experiment's progress.
type display interface {
	show(v experimentView, now time.Time) error
}

// newDisplay makes the display that mode names: auto, live, plain or none.
// Auto is live on a terminal and plain elsewhere.
func newDisplay(mode string, out io.Writer) (display, error) {
	file, isFile := out.(*os.File)
	isTerminal := isFile && term.IsTerminal(int(file.Fd()))
	switch mode {
	case "auto":
		if isTerminal && os.Getenv("TERM") != "dumb" {
			return newLiveDisplay(file), nil
		}
		return &plainDisplay{out: out}, nil
	case "live":
		if !isTerminal {
			return nil, usageErrorf("--progress live needs a terminal")
		}
		return newLiveDisplay(file), nil
	case "plain":
		return &plainDisplay{out: out}, nil
	case "none":
		return noDisplay{}, nil
	}
	return nil, usageErrorf("--progress %q: write auto, live, plain or none", mode)
}

type plainDisplay struct {
	out      io.Writer
	progress plainProgress
}

func (d *plainDisplay) show(v experimentView, now time.Time) error {
	for _, line := range d.progress.update(v, now) {
		if _, err := fmt.Fprintln(d.out, line); err != nil {
			return err
		}
	}
	return nil
}

type liveDisplay struct {
	file     *os.File
	progress liveProgress
}

func newLiveDisplay(file *os.File) *liveDisplay {
	return &liveDisplay{file: file, progress: liveProgress{out: file, color: os.Getenv("NO_COLOR") == ""}}
}

func (d *liveDisplay) show(v experimentView, now time.Time) error {
	width, height, err := term.GetSize(int(d.file.Fd()))
	if err != nil || width < 20 || height < 8 {
		width, height = 80, 24
	}
	return d.progress.draw(v, now, size{width: width, height: height})
}

type noDisplay struct{}

func (noDisplay) show(experimentView, time.Time) error { return nil }
