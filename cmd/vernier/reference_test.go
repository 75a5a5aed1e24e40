package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestTheReferenceIsUpToDate holds that docs/cli-reference.md is made of the commands.
func TestTheReferenceIsUpToDate(t *testing.T) {
	const page = "../../docs/cli-reference.md"
	var b strings.Builder
	b.WriteString("# Reference of the command line\n\nMade from the commands' own help. [cli.md](cli.md) explains how they are used.\n")
	root := newRootCommand(false)
	fmt.Fprintf(&b, "\nFlags of all commands:\n\n```\n%s```\n", root.PersistentFlags().FlagUsages())
	writeReference(&b, root)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("docs/cli-reference.md is not that of the commands; run: make generate\n(-page +commands):\n%s", diff)
	}
}

func writeReference(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		about := c.Long
		if about == "" {
			about = c.Short
		}
		fmt.Fprintf(b, "\n## %s\n\n```\n%s\n\n%s\n", c.CommandPath(), c.UseLine(), strings.TrimSpace(about))
		if c.HasExample() {
			fmt.Fprintf(b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
		}
		if flags := c.LocalFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(b, "\nFlags:\n%s", flags.FlagUsages())
		}
		b.WriteString("```\n")
		writeReference(b, c)
	}
}
