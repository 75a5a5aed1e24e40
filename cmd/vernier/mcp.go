package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxToolText bounds an answer, in bytes: what reads it has a small memory.
const maxToolText = 100_000

const mcpHelp = `Serve the Model Context Protocol on standard input and output, so that an assistant
can look at experiments and drive them. It has the rights of who starts it, and runs
the same commands. --read-only leaves out what changes anything.

In the configuration of an assistant: {"command": "vernier", "args": ["mcp"]}`

func newMCPCommand(newRoot func() *cobra.Command, programs bool) *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an assistant look at experiments and drive them (Model Context Protocol)",
		Long:  mcpHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := newMCPServer(newRoot, globalFlags(cmd), readOnly, programs)
			err := server.Run(cmd.Context(), &mcp.StdioTransport{})
			if errors.Is(err, io.EOF) {
				err = nil // the assistant has ended
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "leave out what changes anything")
	return cmd
}

// globalFlags are the root's flags that were given, which each command takes too.
func globalFlags(cmd *cobra.Command) (args []string) {
	// They are parsed with the flags of cmd: those of the root that were set are not its own.
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Changed {
				args = append(args, "--"+f.Name+"="+value)
			}
		}
	})
	return args
}

// The arguments of the tools.
type (
	noArguments   struct{}
	experimentArg struct {
		Experiment string `json:"experiment" jsonschema:"name of the experiment"`
	}
	targetArg struct {
		Target string `json:"target" jsonschema:"EXPERIMENT, or a trial as EXPERIMENT/12, EXPERIMENT/best or EXPERIMENT/latest"`
	}
	logsArg struct {
		Trial string `json:"trial" jsonschema:"trial as EXPERIMENT/12, EXPERIMENT/best or EXPERIMENT/latest"`
		Lines int    `json:"lines,omitempty" jsonschema:"how many of the last lines; 100 if left out"`
	}
	curveArg struct {
		Trial  string `json:"trial" jsonschema:"trial as EXPERIMENT/12, EXPERIMENT/best or EXPERIMENT/latest"`
		Metric string `json:"metric,omitempty" jsonschema:"metric; all if left out"`
		Points int    `json:"points,omitempty" jsonschema:"most points of a curve; 50 if left out"`
	}
	queryArg struct {
		SQL string `json:"sql" jsonschema:"one SELECT of SQLite's SQL"`
	}
	budgetArg struct {
		Experiment string `json:"experiment" jsonschema:"name of the experiment"`
		MaxTrials  int    `json:"maxTrials,omitempty" jsonschema:"how many trials there are in all"`
		Parallel   int    `json:"parallel,omitempty" jsonschema:"how many trials run at a time"`
	}
	stopArg struct {
		targetArg
		Now bool `json:"now,omitempty" jsonschema:"of an experiment: stop the trials that run, too"`
	}
	programArg struct {
		Program    string   `json:"program" jsonschema:"path of a Python script or an executable"`
		Arguments  []string `json:"arguments,omitempty" jsonschema:"its own arguments; {NAME} stands for the value of a parameter"`
		Parameters []string `json:"parameters" jsonschema:"search space: lr=log(1e-5,1e-1), layers=int(1,4), opt=choice(sgd,adam), x=uniform(0,1)"`
		Minimize   string   `json:"minimize,omitempty" jsonschema:"metric to make small"`
		Maximize   string   `json:"maximize,omitempty" jsonschema:"metric to make large"`
		MaxTrials  int      `json:"maxTrials,omitempty" jsonschema:"how many trials; 20 if left out"`
		Parallel   int      `json:"parallel,omitempty" jsonschema:"how many trials run at a time"`
		Name       string   `json:"name,omitempty" jsonschema:"name of the experiment; that of the program if left out"`
	}
)

// newMCPServer makes the tools, each of which runs a command.
func newMCPServer(newRoot func() *cobra.Command, flags []string, readOnly, programs bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "vernier", Version: version}, nil)
	t := toolbox{s, newRoot, flags}
	addTool(t, "list_experiments", "List the experiments: state, algorithm, objective, best trial and value, number of trials", false,
		func(noArguments) []string { return []string{"query", "-o=json", "--", "select * from experiments"} })
	addTool(t, "explain", "Say in a sentence what happens to an experiment or a trial and why: what it waits for, why it failed, was stopped or was proposed", false,
		func(a targetArg) []string { return []string{"explain", "--", a.Target} })
	addTool(t, "describe", "Show an experiment or a trial with its conditions and events", false,
		func(a targetArg) []string { return []string{"describe", "--", a.Target} })
	addTool(t, "list_trials", "All trials of an experiment as CSV: state, times, metrics, parameters", false,
		func(a experimentArg) []string { return []string{"export", "-o=csv", "--", a.Experiment} })
	addTool(t, "best", "The best trial of an experiment, with its parameters and metrics", false,
		func(a experimentArg) []string { return []string{"best", "-o=json", "--", a.Experiment} })
	addTool(t, "importance", "How much each parameter of an experiment matters, in percent", false,
		func(a experimentArg) []string { return []string{"plot", "--ascii", "--", a.Experiment, "importance"} })
	addTool(t, "curve", "The curve of a metric of a trial as CSV", false, func(a curveArg) []string {
		args := []string{"curve", "-o=csv", "--points=" + strconv.Itoa(or(a.Points, 50)), "--", a.Trial}
		if a.Metric != "" {
			args = append(args, a.Metric)
		}
		return args
	})
	addTool(t, "logs", "The last lines of the output of a trial", false,
		func(a logsArg) []string {
			return []string{"logs", "--tail=" + strconv.Itoa(or(a.Lines, 100)), "--", a.Trial}
		})
	addTool(t, "query", strings.TrimSpace(queryHelp), false,
		func(a queryArg) []string { return []string{"query", "-o=json", "--", a.SQL} })
	if readOnly {
		return s
	}
	addTool(t, "edit_budget", "Change how many trials an experiment has, or how many run at a time; more trials let one go on that has ended", true, func(a budgetArg) []string {
		args := []string{"edit"}
		if a.MaxTrials != 0 {
			args = append(args, "--max-trials="+strconv.Itoa(a.MaxTrials))
		}
		if a.Parallel != 0 {
			args = append(args, "--parallel="+strconv.Itoa(a.Parallel))
		}
		return append(args, "--", a.Experiment)
	})
	addTool(t, "suspend", "Make no new trials of an experiment until it is resumed", true,
		func(a experimentArg) []string { return []string{"suspend", "--", a.Experiment} })
	addTool(t, "resume", "Make new trials of a suspended experiment again", true,
		func(a experimentArg) []string { return []string{"resume", "--", a.Experiment} })
	addTool(t, "stop", "End an experiment, or stop one of its trials, and keep the results", true,
		func(a stopArg) []string {
			return []string{"stop", "--now=" + strconv.FormatBool(a.Now), "--", a.Target}
		})
	if programs {
		addTool(t, "run_program", "Tune a program on this machine, and return at once. Show the person the command line first: it runs with their rights", true, runProgramArgs)
	}
	return s
}

func runProgramArgs(a programArg) []string {
	args := []string{"run", "--wait=false"}
	for _, p := range a.Parameters {
		args = append(args, "--param="+p)
	}
	for flag, value := range map[string]string{"minimize": a.Minimize, "maximize": a.Maximize, "name": a.Name} {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	if a.MaxTrials != 0 {
		args = append(args, "--max-trials="+strconv.Itoa(a.MaxTrials))
	}
	if a.Parallel != 0 {
		args = append(args, "--parallel="+strconv.Itoa(a.Parallel))
	}
	return append(append(args, "--", a.Program), a.Arguments...)
}

func or(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return n
}

type toolbox struct {
	server  *mcp.Server
	newRoot func() *cobra.Command
	flags   []string
}

// addTool adds a tool whose arguments become those of a command. What a person gave is
// behind "--" or "=", so that it is never a flag.
func addTool[In any](t toolbox, name, description string, changes bool, args func(In) []string) {
	tool := &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !changes}}
	mcp.AddTool(t.server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := t.call(ctx, args(in))
		if err != nil {
			text = strings.TrimSpace(fmt.Sprintf("%s\nerror (exit code %d): %v", text, exitCode(err), err))
		}
		return &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

// call runs a command, and returns what it prints. A fault in one command is the answer
// to one call: the server goes on.
func (t toolbox) call(ctx context.Context, args []string) (_ string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the command failed by a fault of its own: %v\n%s", fault, debug.Stack())
		}
	}()
	var out bytes.Buffer
	root := t.newRoot()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append(t.flags[:len(t.flags):len(t.flags)], args...))
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(&out)
	err = root.ExecuteContext(ctx)
	text := out.String()
	if len(text) > maxToolText {
		text = strings.ToValidUTF8(text[:maxToolText], "") + fmt.Sprintf("\n... cut: %d bytes in all; ask for less, for instance with query", out.Len())
	}
	return text, err
}
