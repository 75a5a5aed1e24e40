package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/file"
)

// maxGuessed is how much of a file is looked at for its format, in bytes, and
// maxHead how much for its first record.
const (
	maxGuessed = 256 << 10
	maxHead    = 4 << 10
)

// textValue is a value as text has it.
var textValue = regexp.MustCompile(`[\w\]"]\s*=\s*[-+]?\.?\d`)

// guessBinary says whether a file is one of TensorBoard's (TensorFlowEvent) or of
// W&B's (file.FormatWandb), by its first record, else by its name; empty: neither.
func guessBinary(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, maxHead)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	base := filepath.Base(path)
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte(":W&B")):
		return file.FormatWandb, nil
	case isEvents(head):
		return TensorFlowEvent, nil
	case strings.HasSuffix(base, ".wandb"):
		return file.FormatWandb, nil
	case strings.Contains(base, "tfevents"):
		return TensorFlowEvent, nil
	}
	return "", nil
}

// isEvents tells event files by the checksum of their first record.
func isEvents(head []byte) bool {
	nothing := parse.NewWanted(nil, func([]byte) {})
	// What is wrong with the file is said by the source.
	next, _ := parse.NewEvents().Read(bytes.NewReader(head), 0, nothing, func(parse.Scalar) bool { return false })
	return next > 0
}

// logfmtKeys are keys that loggers write; two of them in a line that begins with a
// pair are not what a program prints of its metrics as text.
var logfmtKeys = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|\s)(?:ts|time|timestamp)=\S`), regexp.MustCompile(`(?:^|\s)(?:level|lvl|severity)=\S`), regexp.MustCompile(`(?:^|\s)(?:msg|message)=\S`),
}

var beginsWithPair = regexp.MustCompile(`^[^\s="]+=\S`)

func isLogfmt(line []byte) bool {
	keys := 0
	for _, key := range logfmtKeys {
		if key.Match(line) {
			keys++
		}
	}
	return keys > 1 && beginsWithPair.Match(line)
}

// guess looks at the name and the first lines of a file: it is JSON when at least
// as many of them are objects as have name=value, and logfmt when all that have
// name=value are as loggers write them. A program may log before it writes
// objects, and print its configuration as one before it writes text. A dictionary of
// Python is text.
func guess(path string, filters []string) (string, error) {
	if len(filters) > 0 {
		return parse.FormatText, nil // which alone has filters
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxGuessed))
	if err != nil {
		return "", err
	}
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	objects, logs, texts := 0, 0, 0
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		switch line = bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("{")) && json.Valid(line):
			objects++
		case isLogfmt(line):
			logs++
		case textValue.Match(line):
			texts++
		}
	}
	named := slices.Contains([]string{".json", ".jsonl", ".ndjson"}, filepath.Ext(path))
	if objects == 0 && bytes.HasPrefix(b, []byte("{")) && !bytes.HasPrefix(b, []byte("{'")) || objects > 0 && (named || objects >= texts+logs) {
		return parse.FormatJSON, nil
	}
	if logs > 0 && texts == 0 && objects == 0 {
		return parse.FormatLogfmt, nil
	}
	return parse.FormatText, nil
}
