package script

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed inspect.py
var inspector string

// Where flags were found.
const (
	FromHydra = "hydra"
	FromHelp  = "--help"
)

// Flag is something that a program takes on its command line.
type Flag struct {
	// Option is how it is written: "--batch-size", or "model.width" for Hydra.
	Option string `json:"option"`
	// Kind is int, float, bool or str; "" where it is not known.
	Kind string `json:"kind,omitempty"`
	// Default is empty where there is none, or it is not known.
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Required bool     `json:"required,omitempty"`
}

// Interface is how a program takes its parameters.
type Interface struct {
	// Source is argparse, click, hydra or --help; "" where nothing was found.
	Source string `json:"source"`
	Flags  []Flag `json:"flags"`
	// Words are the names of the positional arguments that it needs, in order.
	Words []string `json:"words,omitempty"`
}

// patience bounds how long a program may take to say what its flags are.
const patience = 60 * time.Second

// Detect finds out the flags of a command that runs in the current directory. A
// Python program that imports argparse, click, typer or Hydra is run until it reads
// its command line. With help, any other program is asked with --help. It returns an
// empty Interface where nothing can be found out.
func Detect(ctx context.Context, argv []string, help bool) (Interface, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if i := pythonScript(argv); i > 0 {
		source, err := os.ReadFile(argv[i])
		if err != nil {
			return Interface{}, fmt.Errorf("read the program: %w", err)
		}
		switch {
		case imports(source, "hydra"):
			return fromHydra(ctx, argv)
		case imports(source, "argparse"), imports(source, "click"), imports(source, "typer"), argumentParser.Match(source):
			return fromInspector(ctx, argv, i)
		}
	}
	if !help {
		return Interface{}, nil
	}
	out, err := output(ctx, append(slices.Clone(argv), "--help"), nil)
	if err != nil && len(out) == 0 {
		return Interface{}, nil
	}
	found := Interface{Source: FromHelp, Flags: ParseHelp(string(out))}
	if len(found.Flags) == 0 {
		found.Source = ""
	}
	return found, nil
}

// argumentParser is a class that reads a command line as argparse does, by its name,
// as in transformers or fairseq. A program that only has another parser, of HTML or of a
// configuration, is not run to ask it.
var argumentParser = regexp.MustCompile(`(?m)^[^#\n]*\b\w*Arg(?:ument)?Parser\b`)

func imports(source []byte, module string) bool {
	return regexp.MustCompile(`(?m)^\s*(import|from)\s+([\w., ]+,\s*)?` + module + `\b`).Match(source)
}

// Unread is a hint for a Python script that may not see its parameters, as nothing in it
// reads a command line; empty otherwise.
func (s Spec) Unread() string {
	i, flagged := pythonScript(s.Argv), s.Flagged()
	if i == 0 || s.Pass != AsFlags || s.Flags.Source != "" || len(flagged) == 0 {
		return ""
	}
	source, err := os.ReadFile(s.Argv[i])
	if err != nil || bytes.Contains(source, []byte("argv")) || imports(source, "vernier_hpo") {
		return "" // where it cannot be read, its trials say so
	}
	return fmt.Sprintf("%s may ignore --%s=...: no flags were found in it (argparse, click, typer, Hydra), and it does not read sys.argv. With --pass env it gets %s",
		s.Argv[i], flagged[0].Name, EnvironmentName(flagged[0].Name))
}

// Unknown is a hint for what looks like a macro in the arguments but names no parameter;
// empty where there is none. Words with spaces are programs of their own, whose braces
// mean something else.
func (s Spec) Unknown() string {
	known := s.macros()
	for _, word := range s.Argv {
		if strings.ContainsAny(word, " \t\n") {
			continue
		}
		for _, at := range macro.FindAllStringSubmatchIndex(word, -1) {
			name := word[at[2]:at[3]]
			shells := at[0] > 0 && word[at[0]-1] == '$' // a variable of the shell
			if !known[name] && name != "seed" && !shells {
				return fmt.Sprintf("%s is given to the program as it stands: no parameter has the name %s (there are also {trial} and {seed})", word[at[0]:at[1]], name)
			}
		}
	}
	return ""
}

// pythonScript is the index of a Python script that a command runs, or 0.
func pythonScript(argv []string) int {
	if !strings.HasPrefix(filepath.Base(argv[0]), "python") {
		return 0
	}
	for i, word := range argv[1:] {
		switch {
		case word == "-u":
		case strings.HasSuffix(word, ".py"):
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// output runs a command to its end, in a process group of its own, and returns what
// it printed. pipe, if any, is its file descriptor 3.
func output(ctx context.Context, argv []string, pipe *os.File) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if pipe != nil {
		cmd.ExtraFiles = []*os.File{pipe}
	}
	return cmd.CombinedOutput()
}

func fromInspector(ctx context.Context, argv []string, at int) (Interface, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return Interface{}, fmt.Errorf("ask the program for its flags: %w", err)
	}
	defer read.Close()
	answer := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(read, 1<<20))
		answer <- data
	}()
	words := append(slices.Clone(argv[:at]), "-c", inspector)
	out, runErr := output(ctx, append(words, argv[at:]...), write)
	write.Close()
	_ = read.SetReadDeadline(time.Now().Add(time.Second)) // a process that was left behind may hold it open
	data := <-answer
	var found Interface
	if len(data) == 0 {
		if runErr == nil {
			return Interface{}, nil // it ended without reading its command line
		}
		return Interface{}, fmt.Errorf("%s ended before it read its command line: %s", argv[at], reason(ctx, out, runErr))
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return Interface{}, fmt.Errorf("read the flags of %s: %w", argv[at], err)
	}
	return found, nil
}

// reason is the last line that a program printed, or else how it ended.
func reason(ctx context.Context, out []byte, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("it took longer than %s", patience)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

func fromHydra(ctx context.Context, argv []string) (Interface, error) {
	cmd := exec.CommandContext(ctx, argv[0], append(slices.Clone(argv[1:]), "--cfg", "job")...)
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		return Interface{}, fmt.Errorf("Hydra does not print the configuration (--cfg job): %s", reason(ctx, stderr.Bytes(), err))
	}
	var config map[string]any
	if err := yaml.Unmarshal(out, &config); err != nil {
		return Interface{}, fmt.Errorf("read the configuration that Hydra prints: %w", err)
	}
	return Interface{Source: FromHydra, Flags: flatten("", config)}, nil
}

func flatten(prefix string, config map[string]any) (flags []Flag) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		switch v := config[name].(type) {
		case map[string]any:
			flags = append(flags, flatten(prefix+name+".", v)...)
		case []any:
		case bool:
			flags = append(flags, Flag{Option: prefix + name, Default: strconv.FormatBool(v)})
		case nil:
			flags = append(flags, Flag{Option: prefix + name})
		default:
			text := fmt.Sprint(v)
			flags = append(flags, Flag{Option: prefix + name, Kind: kindOf(text), Default: text})
		}
	}
	return flags
}

func kindOf(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "int"
	}
	if isNumber(text) {
		return "float"
	}
	return ""
}

var (
	helpLine    = regexp.MustCompile(`^\s{0,12}(?:-\w(?: [A-Z_]+)?, *)?(--?[A-Za-z][\w.-]*)(?:(?: |=)([\[{(<]?[\w|,.<>-]+[\]})>]?(?: RANGE)?))?(?:,.*)?(?:\s{2,}(.*)|\s*)$`)
	helpDefault = regexp.MustCompile(`(?i)[\[(]default[:=]? *"?([^;\])"]*)"?[;\])]`)
	helpChoices = regexp.MustCompile(`^[\[{(]([\w.-]+(?:[|,][\w.-]+)+)[\]})]$`)
)

// ParseHelp reads the flags from what a program prints for --help, as argparse,
// click, Go's flag and cobra, clap and their kin lay it out.
func ParseHelp(text string) (flags []Flag) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		m := helpLine.FindStringSubmatch(line)
		if m == nil || m[1] == "--help" || m[1] == "-h" || m[1] == "--version" || m[1] == "-help" {
			if d := helpDefault.FindStringSubmatch(line); d != nil && len(flags) > 0 && m == nil {
				flags[len(flags)-1].setDefault(d[1])
			}
			continue
		}
		f := Flag{Option: m[1]}
		switch value := strings.ToLower(strings.Trim(m[2], "<>")); {
		case helpChoices.MatchString(m[2]):
			f.Choices = strings.FieldsFunc(helpChoices.FindStringSubmatch(m[2])[1], func(r rune) bool { return r == '|' || r == ',' })
		case strings.HasPrefix(value, "int"), value == "uint":
			f.Kind = "int"
		case strings.HasPrefix(value, "float"), value == "double":
			f.Kind = "float"
		}
		if d := helpDefault.FindStringSubmatch(m[3]); d != nil {
			f.setDefault(d[1])
		}
		flags = append(flags, f)
	}
	return flags
}

func (f *Flag) setDefault(text string) {
	if f.Default != "" || text == "None" {
		return
	}
	f.Default = strings.TrimSpace(text)
	if f.Kind == "" && f.Default != "" {
		f.Kind = kindOf(f.Default)
	}
}
