package probe

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/vernier-ml/vernier/collector/parse"
)

// maxGuessed is how much of a file is looked at for its format, in bytes.
const maxGuessed = 256 << 10

// textValue is a value as text has it.
var textValue = regexp.MustCompile(`[\w\]"]\s*=\s*[-+]?\.?\d`)

// guess looks at the name and the first lines of a file: it is JSON when at least
// as many of them are objects as have name=value. A program may log before it writes
// objects, and print its configuration as one before it writes text.
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
	objects, texts := 0, 0
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		switch line = bytes.TrimSpace(line); {
		case bytes.HasPrefix(line, []byte("{")) && json.Valid(line):
			objects++
		case textValue.Match(line):
			texts++
		}
	}
	named := slices.Contains([]string{".json", ".jsonl", ".ndjson"}, filepath.Ext(path))
	if objects == 0 && bytes.HasPrefix(b, []byte("{")) || objects > 0 && (named || objects >= texts) {
		return parse.FormatJSON, nil
	}
	return parse.FormatText, nil
}
