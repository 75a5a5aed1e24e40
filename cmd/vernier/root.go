package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

type global struct {
	home      string
	namespace string
	getenv    func(string) string
	err       io.Writer
}

const rootHelp = `Vernier tunes hyperparameters, on Kubernetes and on this machine.

  vernier run train.py -p 'lr=log(1e-5,1e-1)' --minimize loss    tune a program
  vernier run -f experiment.yaml                                 or an experiment

Exit codes: 0 done; 1 error; 2 usage; 3 invalid spec; 4 not found; 5 not allowed;
6 conflict; 7 server not reachable; 8 experiment failed; 9 goal not reached (with
--require-goal); 10 a suggestion differs (replay); 124 time-out; 130 and 143 ended by
a signal.`

// newRootCommand makes the command line. As a plugin of kubectl it takes
// kubectl's flags and leaves out what concerns the embedded instance.
func newRootCommand(plugin bool) *cobra.Command {
	g := &global{getenv: os.Getenv, err: newConsole(os.Stderr)}
	root := &cobra.Command{Use: "vernier", Short: "Tune hyperparameters, on Kubernetes and on this machine", Long: rootHelp,
		// The flags before a command's name are the root's, also where the command
		// leaves the parsing of its own to kubectl.
		TraverseChildren: true,
		Args:             knownCommand,
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(meantFlag)
	open := opener(g.embedded)
	stop, own, programs := g.stop, ownStore(g.instanceStore), g
	if plugin {
		root.Use = "kubectl-vernier"
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl vernier"}
		flags := genericclioptions.NewConfigFlags(true)
		flags.AddFlags(root.PersistentFlags())
		open = pluginOpener(flags)
		stop, own, programs = func(context.Context, *session) error { return nil }, noInstanceStore, nil
		root.AddCommand(newMigrateCommand(open), newRestoreCommand(open))
	} else {
		root.PersistentFlags().StringVar(&g.home, "home", "", "home of the embedded instance (default $VERNIER_HOME, then $XDG_STATE_HOME/vernier, then ~/.local/state/vernier)")
		root.PersistentFlags().StringVarP(&g.namespace, "namespace", "n", "", "namespace (default \"default\")")
		root.AddCommand(g.instanceCommands()...)
	}
	root.AddCommand(
		newBestCommand(open),
		newCollectCommand(),
		newCurveCommand(open, own),
		newDeleteCommand(open),
		newDescribeCommand(open),
		newEditCommand(open),
		newEnqueueCommand(open),
		newExplainCommand(open),
		newExportCommand(open, own),
		newGetCommand(open),
		newImportCommand(open),
		newLogsCommand(open),
		newMCPCommand(func() *cobra.Command { return newRootCommand(plugin) }, !plugin),
		newDemoCommand(),
		newOptimizeCommand(),
		newPlotCommand(open, own),
		newQueryCommand(open, own),
		newRenderCommand(),
		newReplayCommand(open, own),
		newRunCommand(programs, open, stop),
		newStopCommand(open),
		newStoreCommand(own),
		newSuspendCommand(open, true),
		newSuspendCommand(open, false),
		newTensorboardCommand(open, own),
		newVersionCommand(),
		newWatchCommand(open),
	)
	completeNames(root, open)
	return root
}

// instanceCommands are those that concern the embedded instance.
func (g *global) instanceCommands() []*cobra.Command {
	return []*cobra.Command{
		newAgentCommand(),
		newDashboardCommand(g),
		newDoctorCommand(g),
		newDownCommand(g),
		newKubeconfigCommand(g),
		newKubectlCommand(g),
		newStatusCommand(g),
		newSuperviseCommand(g),
		newUpCommand(g),
	}
}

// instanceHome is the home that --home or VERNIER_HOME names, or the default.
func (g *global) instanceHome() (local.Home, error) {
	home := g.home
	if home == "" {
		home = g.getenv("VERNIER_HOME")
	}
	if home == "" {
		return local.DefaultHome(g.getenv)
	}
	absolute, err := filepath.Abs(home)
	return local.Home(absolute), err
}

func (g *global) sayProgress(component string) {
	fmt.Fprintf(g.err, "waiting for %s\n", component)
}

func (g *global) stop(ctx context.Context, s *session) error {
	return local.Down(ctx, local.Home(s.home))
}
