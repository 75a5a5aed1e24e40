package lines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// TestDocumentedCommands holds that the commands in the documentation of the
// algorithms and stopping rules work: that they name what there is, with
// settings that it has, and get a trial for the space that they search.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob("../../docs/algorithms/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, file := range append(files, "../../docs/stopping.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```") {
			language, body, _ := strings.Cut(block, "\n")
			if i%2 == 1 && language == "sh" {
				shown++
				t.Run(filepath.Base(file), func(t *testing.T) { playCommand(t, body) })
			}
		}
	}
	if shown < 30 {
		t.Errorf("%d commands are shown", shown)
	}
}

// TestDocumentedSpace holds that the space file of docs/search-space.md is one.
func TestDocumentedSpace(t *testing.T) {
	text, err := os.ReadFile("../../docs/search-space.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "```json\n")
	body, _, _ = strings.Cut(body, "```")
	st := study(t, body)
	if st.Space.Len() != 5 || !st.Space.Conditional() || !st.Space.Constrained() || len(st.Initial) != 1 {
		t.Errorf("it has %d parameters and %d initial points", st.Space.Len(), len(st.Initial))
	}
}

// command is what a command of the documentation says.
type command struct {
	space, algorithm, stopper string
	settings, stopperSettings suggest.Settings
}

func readCommand(t *testing.T, block string) command {
	t.Helper()
	_, line, found := strings.Cut(block, "vernier optimize ")
	if !found {
		t.Fatalf("no command is shown in\n%s", block)
	}
	c := command{algorithm: "auto"}
	words := strings.Fields(line)
	for i := 0; i+1 < len(words); i += 2 {
		value := words[i+1]
		key, set, _ := strings.Cut(value, "=")
		switch words[i] {
		case "--space":
			c.space = value
		case "--algorithm":
			c.algorithm = value
		case "--setting":
			c.settings = append(c.settings, suggest.Setting{Name: key, Value: set})
		case "--stopper":
			c.stopper = value
		case "--stopper-setting":
			c.stopperSettings = append(c.stopperSettings, suggest.Setting{Name: key, Value: set})
		case "--seed":
		default:
			t.Errorf("unknown flag %s", words[i])
		}
	}
	return c
}

// spaceOf gives the space file of a command: the one that the block writes, else
// one of the repository.
func spaceOf(t *testing.T, block string, c command) string {
	t.Helper()
	if _, rest, here := strings.Cut(block, "<<'EOF'\n"); here {
		written, _, _ := strings.Cut(rest, "\nEOF\n")
		return written
	}
	text, err := os.ReadFile(filepath.Join("../..", c.space))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// playCommand does what the commands of a block say.
func playCommand(t *testing.T, block string) {
	t.Helper()
	c := readCommand(t, block)
	st := study(t, spaceOf(t, block, c))
	r, ok := algorithm.Get(c.algorithm)
	if !ok {
		t.Fatalf("there is no algorithm %s", c.algorithm)
	}
	a, err := r.New(st.Space, c.settings)
	if err != nil {
		t.Fatal(err)
	}
	if c.stopper != "" {
		rule, ok := stop.Get(c.stopper)
		if !ok {
			t.Fatalf("there is no rule %s", c.stopper)
		}
		if _, err := rule.New(c.stopperSettings); err != nil {
			t.Fatal(err)
		}
	}
	got := converse(t, lines.New(lines.Config{Study: st, Algorithm: a}), `{"ask":1}`)
	if !strings.HasPrefix(got[0], `{"trials":[{"number":0`) {
		t.Errorf("the answer is %s", got[0])
	}
}
