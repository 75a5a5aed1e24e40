package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// display shows an experiment's progress. Its methods may be called side by side.
type display interface {
	show(v experimentView, now time.Time) error
	// say prints a line that stays, whatever is shown afterwards.
	say(line string)
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
		return noDisplay{out: out}, nil
	}
	return nil, usageErrorf("--progress %q: write auto, live, plain or none", mode)
}

type plainDisplay struct {
	mu       sync.Mutex
	out      io.Writer
	progress plainProgress
}

func (d *plainDisplay) say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(d.out, line)
}

func (d *plainDisplay) show(v experimentView, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.progress.update(v, now) {
		if _, err := fmt.Fprintln(d.out, line); err != nil {
			return err
		}
	}
	return nil
}

type liveDisplay struct {
	mu       sync.Mutex
	file     *os.File
	progress liveProgress
}

func newLiveDisplay(file *os.File) *liveDisplay {
	return &liveDisplay{file: file, progress: liveProgress{out: file, color: os.Getenv("NO_COLOR") == ""}}
}

func (d *liveDisplay) say(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress.say(line)
}

func (d *liveDisplay) show(v experimentView, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	width, height, err := term.GetSize(int(d.file.Fd()))
	if err != nil || width < 20 || height < 8 {
		width, height = 80, 24
	}
	return d.progress.draw(v, now, size{width: width, height: height})
}

type noDisplay struct{ out io.Writer }

func (d noDisplay) say(line string) { fmt.Fprintln(d.out, line) }

func (noDisplay) show(experimentView, time.Time) error { return nil }
