package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// display shows an experiment's progress. Its methods may be called concurrently.
type display interface {
	show(v experimentView, now time.Time) error
	// say prints a line that stays on the screen.
	say(line string)
}

// newDisplay makes the display of a mode: auto, live, plain or none. Auto is live
// on a terminal and plain elsewhere.
func newDisplay(mode string, out io.Writer) (display, error) {
	file := onTerminal(out)
	terminal := file != nil
	switch {
	case mode == "live" && !terminal:
		return nil, usageErrorf("--progress live needs a terminal")
	case mode == "live", mode == "auto" && terminal && os.Getenv("TERM") != "dumb":
		return &liveDisplay{out: file, size: func() size { return terminalSize(file) }, color: os.Getenv("NO_COLOR") == ""}, nil
	}
	return &plainDisplay{out: out, silent: mode == "none"}, nil
}

func terminalSize(file *os.File) size {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 || height < 8 {
		return size{width: 80, height: 24}
	}
	return size{width: width, height: height}
}
