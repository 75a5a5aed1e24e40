// Command suggest measures the suggestion algorithms on problems whose answers
// are known, beside other tuners, in one run.
//
//	suggest run -suite s1 -method tpe,bayesianoptimization -seeds 20 -budget 100
//	suggest run -out results.jsonl -peers optuna-tpe,optuna-gp
//	suggest list
//	suggest oracle
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// command is one of the words that may follow the program's name.
type command struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"run", "play games and print a table; with -out, append the results to a file and skip what is there", runCommand},
		{"smoke", "play a small part of everything, and write a report under bin", smokeCommand},
		{"full", "play everything with all peers, and write the report into the documentation; it goes on where it was stopped", fullCommand},
		{"paired", "play the part of the protocol that 30 seeds of the cheap peers finish in hours, seed by seed; it goes on where it was stopped", pairedCommand},
		{"latency", "measure the CPU time for a suggestion after 100, 1,000 and 10,000 trials", latencyCommand},
		{"report", "write scores, tables and plots of results into the documentation", reportCommand},
		{"list", "show problems, regimes, methods and peers", listCommand},
		{"oracle", "evaluate problems for another program: JSON Lines on standard input and output", oracleCommand},
	}
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := dispatch(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suggest:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	var help strings.Builder
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:])
		}
		fmt.Fprintf(&help, "  %-8s %s\n", c.name, c.help)
	}
	return fmt.Errorf("name a command:\n%s", help.String())
}

// words is a flag that holds a list, separated by commas.
type words []string

// String implements flag.Value.
func (w *words) String() string { return strings.Join(*w, ",") }

// Set implements flag.Value.
func (w *words) Set(text string) error {
	*w = append(*w, strings.Split(text, ",")...)
	return nil
}

// parse reads flags and nothing else.
func parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", set.Name(), set.Arg(0))
	}
	return nil
}
