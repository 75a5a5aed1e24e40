package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// console is a terminal that obeys nothing in what is written to it but line ends and
// tabs: names, messages and metrics come from programs and from other people. What is
// not a terminal gets its bytes as they are.
type console struct {
	// Not embedded: its ReadFrom and WriteString would go round Write.
	file *os.File
	// colored lets colours through, and carriage returns, by which progress bars move.
	colored bool
	rest    []byte // the beginning of a character or a colour
	failed  error  // the last write that did: not all commands look
}

func newConsole(file *os.File) *console { return &console{file: file} }

// onTerminal is the terminal behind a writer, or nil.
func onTerminal(out io.Writer) *os.File {
	file, _ := out.(*os.File)
	if c, ok := out.(*console); ok {
		file = c.file
	}
	if file == nil || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// withColors is out, which lets colours through.
func withColors(out io.Writer) io.Writer {
	if c, ok := out.(*console); ok {
		return &console{file: c.file, colored: true}
	}
	return out
}

// Write implements io.Writer.
func (c *console) Write(p []byte) (int, error) {
	n, err := c.write(p)
	if err != nil {
		c.failed = err
	}
	return n, err
}

func (c *console) write(p []byte) (int, error) {
	if onTerminal(c) == nil {
		return c.file.Write(p)
	}
	text := append(c.rest, p...)
	end := len(text) - unfinished(text)
	c.rest = append([]byte(nil), text[end:]...)
	if _, err := c.file.WriteString(visible(string(text[:end]), c.colored)); err != nil {
		return 0, err
	}
	return len(p), nil
}

const colorCode = `(?:[0-4]|2[2-4]|3[0-79]|9[0-7]|38;5;\d{1,3})`

var (
	// colorForm sets the colour or weight of letters. Hidden letters, and backgrounds
	// that hide them, are left out.
	colorForm  = regexp.MustCompile(`^\x1b\[(?:` + colorCode + `(?:;` + colorCode + `)*)?m`)
	colorBegin = regexp.MustCompile(`\x1b(?:\[[0-9;]{0,30})?$`)
)

// unfinished is how many bytes at the end of a text may belong to what comes next.
func unfinished(text []byte) int {
	if at := colorBegin.FindIndex(text); at != nil {
		return at[1] - at[0]
	}
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// visible writes what a terminal would obey as \x1b and the like: control characters,
// what is not UTF-8, and what turns the direction of writing.
func visible(text string, colored bool) string {
	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\x1b' && colored && colorForm.MatchString(text):
			size = len(colorForm.FindString(text))
			b.WriteString(text[:size])
		case r == '\n' || r == '\t' || r == '\r' && (colored || strings.HasPrefix(text, "\r\n")):
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1, r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// oneLine is visible, without line ends.
func oneLine(text string) string {
	return visible(strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", " ").Replace(text), false)
}
