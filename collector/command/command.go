// Package command holds the commands of the program collector, which runs in the
// pods of trials: run is the sidecar, which reports the points that it finds; exec
// and env start the measured program, and meet the sidecar in a shared directory. Where
// pods mount the collector, run does both.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/vernier-ml/vernier/collector/contract"
)

const usage = `usage:
  collector install DST                        copy this program to DST
  collector exec [--dir D] [--cap BYTES] -- COMMAND [ARGUMENT...]
                                               run a program and keep its output for "collector run"
  collector env [--dir D] -- COMMAND [ARGUMENT...]
                                               run a program that knows where to push its metrics
  collector run --kind KIND [flags]            report the metrics of a trial
  collector run --kind StdOut [flags] -- COMMAND [ARGUMENT...]
                                               run a program and report its metrics, without a sidecar
  collector await [--dir D]                    wait until "collector run" can be stopped without loss
  collector checkpoints --to DIR [--from DIR]  make a trial's directory of checkpoints, with those of another trial
  collector metrics [--dir D]                  print how "collector run" is doing, for Prometheus
  collector version                            say which build this is
  collector help                               print this

"collector run -h" and "collector exec -h" list the flags.
`

// Exit codes. "collector exec" otherwise exits as its program does.
const (
	exitFailed        = 1
	exitUsage         = 2
	exitNotKept       = 125 // exec: the output cannot be kept
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignalled     = 128 // plus the signal's number
)

// command is a sub-command; it returns the exit code.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) int

func commands() map[string]command {
	return map[string]command{
		"await":       awaitCommand,
		"checkpoints": checkpointsCommand,
		"env":         envCommand,
		"exec":        execCommand,
		"install":     installCommand,
		"metrics":     metricsCommand,
		"run":         runCommand,
	}
}

// Main runs the command that args name, and returns the exit code. build is the
// version of the program.
func Main(build string, args []string) int {
	if len(args) > 0 && args[0] == "version" {
		sayVersion(build, os.Stdout)
		return 0
	}
	return dispatch(context.Background(), args, os.Stdout, os.Stderr)
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	run, known := commands()[args[0]]
	if !known {
		fmt.Fprintf(stderr, "collector: unknown command %q\n%s", args[0], usage)
		return exitUsage
	}
	return run(ctx, args[1:], stdout, stderr)
}

func sayVersion(build string, stdout io.Writer) {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	fmt.Fprintf(stdout, "collector %s (revision %s, %s, %s/%s)\n", build, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// parseDir reads the flags of a command that meets the sidecar in a directory, and
// those that more adds.
func parseDir(name string, args []string, stderr io.Writer, more func(*flag.FlagSet)) (dir string, rest []string, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&dir, contract.FlagDir, contract.DefaultDir, "directory shared with the sidecar")
	if more != nil {
		more(flags)
	}
	if flags.Parse(args) != nil {
		return "", nil, errSaid
	}
	return dir, flags.Args(), nil
}

func noArguments(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("argument %q is not understood; everything is a flag", rest[0])
	}
	return nil
}

// fail says what went wrong and returns code.
func fail(stderr io.Writer, code int, what string, err error) int {
	if err != nil && !errors.Is(err, errSaid) {
		fmt.Fprintf(stderr, "collector %s: %v\n", what, err)
	}
	return code
}

// errSaid is an error that the user has seen already.
var errSaid = errors.New("said already")
