// Command collector (bench/collector) measures the collector: how fast it reads,
// beside TensorBoard's own readers in the same run; what the sidecar takes; and
// how the report service bears a thousand trials at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sort"

	"golang.org/x/sys/unix"
)

const usage = `usage: go run ./bench/collector COMMAND [flags]

  all       all of these; writes docs/benchmarks-collector.md
  load      1,000 trials that report 10 metrics a second into a store
  peers     TensorBoard's data server and Python loader beside our reader
  read      each parser, by itself and in its source
  sidecar   memory on a large input, and CPU when idle

"go run ./bench/collector COMMAND -h" lists the flags.
`

// command does one part; its error ends the program.
type command func(ctx context.Context, args []string, out io.Writer) error

func commands() map[string]command {
	return map[string]command{
		"all":     allCommand,
		"load":    loadCommand,
		"peers":   peersCommand,
		"read":    readCommand,
		"sidecar": sidecarCommand,
		"serve":   serveCommand, // the service that load measures
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench/collector:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("name a command\n%s", usage)
	}
	run, known := commands()[args[0]]
	if !known {
		var names []string
		for name := range commands() {
			names = append(names, name)
		}
		sort.Strings(names)
		return fmt.Errorf("unknown command %q; there are %v\n%s", args[0], names, usage)
	}
	return run(ctx, args[1:], out)
}
