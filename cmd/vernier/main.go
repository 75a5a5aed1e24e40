// Command vernier tunes hyperparameters: it runs an embedded control plane on
// this machine, runs experiments on it, and shows what they do. Under the name
// kubectl-vernier it is a kubectl plugin for any cluster.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(execute(context.Background(), os.Args, os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, out, errs *os.File) int {
	root := newRootCommand(strings.HasPrefix(filepath.Base(args[0]), "kubectl-"))
	root.SetArgs(args[1:])
	// What the Kubernetes libraries log is for services; a command says itself
	// what a person should know.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	stdout, stderr := newConsole(out), newConsole(errs)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = stdout.failed
	}
	if err != nil {
		fmt.Fprintf(stderr, "vernier: %v\n", err)
		if exitCode(err) == exitUsage {
			fmt.Fprintf(stderr, "Run '%s --help' for how it is used.\n", cmd.CommandPath())
		}
	}
	return exitCode(err)
}
