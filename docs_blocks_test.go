package vernier_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// block is a fenced part of a page. A comment before it, which readers do not
// see, may say more of it:
//
//	<!-- not run: REASON -->   it cannot be run in the tests; its syntax is checked
//	<!-- file: NAME -->        it is a file that later blocks of the page use
//	<!-- run: COMMANDS -->     no block follows: what the reader has done by then
//
// TestBlocksRun, with the build tag e2e, runs all others.
type block struct {
	page     string
	line     int
	language string // of the fence; "" is what a program prints
	text     string
	file     string
	notRun   string
}

func (b block) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	fence0  = regexp.MustCompile("^( *)```(\\w*)$")
	comment = regexp.MustCompile(`(?s)^<!-- (not run|file|run):\s*(.*?)\s*-->$`)
)

// blocks are those of all pages, in the order of a page, and pages by name.
func blocks(t *testing.T) []block {
	t.Helper()
	texts := pages(t)
	client, err := os.ReadFile("clients/python/README.md")
	if err != nil {
		t.Fatal(err)
	}
	texts["clients/python/README.md"] = string(client)
	var found []block
	for name, text := range texts {
		of, err := blocksOf(name, text)
		if err != nil {
			t.Error(err)
		}
		found = append(found, of...)
	}
	slices.SortFunc(found, func(a, b block) int {
		if n := strings.Compare(a.page, b.page); n != 0 {
			return n
		}
		return a.line - b.line
	})
	return found
}

// blocksOf reads a page line by line.
func blocksOf(page, text string) ([]block, error) {
	var found []block
	next := block{page: page}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		start := i
		switch open := fence0.FindStringSubmatch(lines[i]); {
		case strings.HasPrefix(strings.TrimSpace(lines[i]), "<!-- "):
			for !strings.HasSuffix(lines[i], "-->") && i+1 < len(lines) {
				i++
			}
			mark := comment.FindStringSubmatch(strings.TrimSpace(strings.Join(lines[start:i+1], "\n")))
			if mark == nil {
				continue
			}
			switch mark[1] {
			case "not run":
				next.notRun = mark[2]
			case "file":
				next.file = mark[2]
			case "run":
				found = append(found, block{page: page, line: start + 1, language: "sh", text: mark[2] + "\n"})
			}
		case open != nil:
			next.line, next.language = start+1, open[2]
			var body strings.Builder
			for i++; i < len(lines) && lines[i] != open[1]+"```"; i++ {
				body.WriteString(strings.TrimPrefix(lines[i], open[1]) + "\n")
			}
			if i == len(lines) {
				return found, fmt.Errorf("%s:%d: the block has no end", page, next.line)
			}
			next.text = body.String()
			found, next = append(found, next), block{page: page}
		case strings.TrimSpace(lines[i]) != "" && (next.notRun != "" || next.file != ""):
			return found, fmt.Errorf("%s:%d: a comment is to stand before a block, and this is none", page, start+1)
		}
	}
	return found, nil
}

// TestBlocksParse holds that each block of the pages is written in the language
// that it names, and that it is run, or says why not.
func TestBlocksParse(t *testing.T) {
	all := blocks(t)
	var table strings.Builder
	fates := map[string]int{}
	for _, b := range all {
		if err := b.parse(t); err != nil {
			t.Errorf("%s: %v\n%s", b.at(), err, b.text)
		}
		fates[b.fate()]++
		fmt.Fprintf(&table, "%-34s %-7s %-12s %s\n", b.at(), b.language, b.fate(), b.notRun)
	}
	t.Logf("%d blocks: %v\n%s", len(all), fates, table.String())
	if tried := fates["run"] + fates["admitted"]; tried < 120 {
		t.Errorf("only %d blocks are tried: look at the expressions", tried)
	}
}

// fate is what the tests do with a block.
func (b block) fate() string {
	switch {
	case b.notRun != "":
		return "syntax only"
	case b.language == "yaml":
		return "admitted"
	case b.file != "":
		return "written"
	case b.language == "sh", b.language == "python", b.language == "go", len(b.commands()) > 0:
		return "run"
	case b.language == "json":
		return "parsed"
	}
	return "shown"
}

// commands are those of a block that shows a terminal: its lines with a prompt.
func (b block) commands() []string {
	var found []string
	if b.language == "" {
		for line := range strings.Lines(b.text) {
			if command, prompted := strings.CutPrefix(line, "$ "); prompted {
				found = append(found, command)
			}
		}
	}
	return found
}

func (b block) parse(t *testing.T) error {
	switch b.language {
	case "", "text":
		return nil
	case "python": // where there is Python: in TestBlocksRun
		return nil
	case "sh":
		return command(strings.NewReader(b.text), "bash", "-n")
	case "json":
		return json.Unmarshal([]byte(b.text), new(any))
	case "yaml":
		_, err := b.documents()
		return err
	case "go":
		return b.compile(t)
	}
	return fmt.Errorf("the language %q is not known here: sh, python, go, yaml, json, text, or nothing for what a program prints", b.language)
}

// documents are the objects of a block in YAML.
func (b block) documents() ([]map[string]any, error) {
	var found []map[string]any
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(b.text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return nil, err
		}
		found = append(found, object)
	}
}

// compile vets a program in Go, and holds it to gofmt.
func (b block) compile(t *testing.T) error {
	if formatted, err := format.Source([]byte(b.text)); err != nil || string(formatted) != b.text {
		return fmt.Errorf("it is not what gofmt writes (%w)", err)
	}
	return command(nil, "go", "vet", b.program(t))
}

// program is the file of a program in Go, in the module, so that it finds its packages.
func (b block) program(t *testing.T) string {
	t.Helper()
	// The go command takes a folder with such a name for none of the module's packages.
	dir, err := os.MkdirTemp(".", ".block-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	file, err := filepath.Abs(filepath.Join(dir, "main.go"))
	if err == nil {
		err = os.WriteFile(file, []byte(b.text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func command(stdin io.Reader, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", argv, err, bytes.TrimSpace(out))
	}
	return nil
}
