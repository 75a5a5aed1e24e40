package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

// echoRoot has commands that print their arguments.
func echoRoot() *cobra.Command {
	root := &cobra.Command{Use: "vernier"}
	root.PersistentFlags().String("home", "", "")
	for _, name := range []string{"query", "explain", "best", "logs", "stop", "run", "export", "describe", "plot", "curve", "edit", "suspend", "resume"} {
		root.AddCommand(&cobra.Command{Use: name, DisableFlagParsing: true, RunE: func(cmd *cobra.Command, args []string) error {
			if name == "export" {
				cmd.Print(strings.Repeat("x", maxToolText+1))
				return nil
			}
			cmd.Println(name, strings.Join(args, "|"))
			if name == "best" {
				return notFoundErrorf("no experiment")
			}
			return nil
		}})
	}
	return root
}

func connect(t *testing.T, readOnly bool) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	server := newMCPServer(echoRoot, nil, readOnly, true)
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func callTool(ctx context.Context, t *testing.T, s *mcp.ClientSession, name string, args map[string]any) (string, bool) {
	t.Helper()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestMCPToolsRunCommands(t *testing.T) {
	s := connect(t, false)
	tests := map[string]struct {
		tool string
		args map[string]any
		want string
	}{
		"a question":           {"query", map[string]any{"sql": "select 1"}, "query -o=json|--|select 1\n"},
		"a flag in an answer":  {"explain", map[string]any{"target": "--kubeconfig=/etc/x"}, "explain --|--kubeconfig=/etc/x\n"},
		"a default":            {"logs", map[string]any{"trial": "a/1"}, "logs --tail=100|--|a/1\n"},
		"a switch":             {"stop", map[string]any{"target": "a", "now": true}, "stop --now=true|--|a\n"},
		"a trial":              {"stop", map[string]any{"target": "a/3"}, "stop --now=false|--|a/3\n"},
		"a program":            {"run_program", map[string]any{"program": "train.py", "parameters": []string{"lr=log(1,2)"}, "minimize": "loss", "arguments": []string{"--x"}}, "run --wait=false|--param=lr=log(1,2)|--minimize=loss|--|train.py|--x\n"},
		"the code of an error": {"best", map[string]any{"experiment": "a"}, "best -o=json|--|a\n\nerror (exit code 4): no experiment"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, failed := callTool(t.Context(), t, s, test.tool, test.args)
			if diff := cmp.Diff(test.want, got); diff != "" || failed != (test.tool == "best") {
				t.Errorf("failed %v (-want +got):\n%s", failed, diff)
			}
		})
	}
	if got, _ := callTool(t.Context(), t, s, "list_trials", map[string]any{"experiment": "a"}); len(got) > maxToolText+200 || !strings.Contains(got, "... cut") {
		t.Errorf("%d bytes were answered", len(got))
	}
}

func TestAFaultInACommandLeavesTheMCPServer(t *testing.T) {
	broken := toolbox{newRoot: func() *cobra.Command {
		return &cobra.Command{Use: "vernier", RunE: func(*cobra.Command, []string) error { panic("index out of range") }}
	}}
	if _, err := broken.call(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("the call ends with %v", err)
	}
}

// A tool that leaves one of them out looks at another instance, or drives another cluster.
func TestMCPToolsGetTheGlobalFlags(t *testing.T) {
	tests := map[string]struct {
		plugin     bool
		args, want []string
	}{
		"none":            {args: []string{"mcp"}},
		"before the name": {args: []string{"--home", "/a [1],b", "-n", "team", "mcp"}, want: []string{"--home=/a [1],b", "--namespace=team"}},
		"behind the name": {args: []string{"mcp", "--read-only", "--home=/a", "--namespace="}, want: []string{"--home=/a", "--namespace="}},
		"those of a plugin": {plugin: true, args: []string{"mcp", "--context=b", "--as=ann", "--as-group=x,y", "--as-group=z", "--insecure-skip-tls-verify"},
			want: []string{"--as=ann", "--as-group=x,y", "--as-group=z", "--context=b", "--insecure-skip-tls-verify=true"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(test.plugin)
			cmd, _, err := root.Find([]string{"mcp"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { got = globalFlags(cmd); return nil }
			root.SetArgs(test.args)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMCPReadOnly(t *testing.T) {
	for readOnly, want := range map[bool]bool{true: false, false: true} {
		tools, err := connect(t, readOnly).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, tool := range tools.Tools {
			found[tool.Name] = true
			if readOnly && !tool.Annotations.ReadOnlyHint {
				t.Errorf("%s changes things", tool.Name)
			}
		}
		for _, name := range []string{"edit_budget", "stop", "suspend", "resume", "run_program"} {
			if found[name] != want {
				t.Errorf("read only %v: %s is there: %v", readOnly, name, found[name])
			}
		}
		if !found["query"] || !found["explain"] {
			t.Errorf("read only %v: only %v", readOnly, found)
		}
	}
}

// TestMCPToolsAreCommands holds that each tool runs a command that there is, with flags
// that it has.
func TestMCPToolsAreCommands(t *testing.T) {
	var lines bytes.Buffer
	s := connect(t, false)
	for tool, args := range map[string]map[string]any{
		"list_experiments": {}, "explain": {"target": "a"}, "describe": {"target": "a"}, "best": {"experiment": "a"}, "importance": {"experiment": "a"},
		"curve": {"trial": "a/1", "metric": "m"}, "logs": {"trial": "a/1"}, "query": {"sql": "x"}, "edit_budget": {"experiment": "a", "maxTrials": 3, "parallel": 2},
		"suspend": {"experiment": "a"}, "resume": {"experiment": "a"}, "stop": {"target": "a"},
		"run_program": {"program": "p", "parameters": []string{"x=int(1,2)"}, "maximize": "m", "maxTrials": 3, "parallel": 2, "name": "n"},
	} {
		text, _ := callTool(t.Context(), t, s, tool, args)
		line, _, _ := strings.Cut(text, "\n")
		lines.WriteString(line + "\n")
		if problem := misunderstood(strings.Fields(strings.ReplaceAll(line, "|", " "))); problem != "" {
			t.Errorf("%s: %s: %s", tool, line, problem)
		}
	}
	if !strings.Contains(lines.String(), "run --wait=false") {
		t.Errorf("the tools ran %s", &lines)
	}
}
