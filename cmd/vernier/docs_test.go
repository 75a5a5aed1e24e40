package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsInThePagesAreUnderstood holds that each command line of the pages
// names a command that there is, with flags that it has.
func TestCommandsInThePagesAreUnderstood(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	shown := regexp.MustCompile("(?m)(?:^ *(?:\\$ )?|`|\\$\\()vernier ([^`#)\n]+)")
	lines := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range shown.FindAllStringSubmatch(string(text), -1) {
			lines++
			if problem := misunderstood(strings.Fields(found[1])); problem != "" {
				t.Errorf("%s: vernier %s: %s", page, found[1], problem)
			}
		}
	}
	if lines < 50 {
		t.Errorf("only %d command lines were found: look at the expression", lines)
	}
}

// misunderstood says what is wrong with a command line.
func misunderstood(words []string) string {
	if len(words) == 0 || strings.HasSuffix(words[0], ":") {
		return "" // an error message: "vernier: ..."
	}
	root := newRootCommand(false)
	root.InitDefaultCompletionCmd()
	command, _, err := root.Find(words)
	if err != nil {
		return err.Error()
	}
	if command == root && !strings.HasPrefix(words[0], "-") && words[0] != "COMMAND" {
		return "there is no such command"
	}
	for _, word := range words {
		name, long := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case strings.Trim(word, "[]") == "--" || word == "|" || command.DisableFlagParsing:
			return "" // what follows is another program's, or another command
		case long && name != "help" && command.Flag(name) == nil && command.InheritedFlags().Lookup(name) == nil:
			return "there is no flag --" + name
		}
	}
	return ""
}
