// Command throughput measures how many trials a second the embedded control
// plane runs, beside the same work as bare Jobs, in one run.
//
// Each round runs both, in alternating order, on one instance in a temporary
// home. The program ends at once, so that what is measured is everything
// around it. It prints trials a second, the ratio of the medians with its
// spread over the rounds, and the time from apply to the first training
// process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		if err := child(os.Args[2], time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.trials, "trials", 200, "trials (and Jobs) of each round")
	flag.IntVar(&o.parallel, "parallel", 8, "how many at once")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.StringVar(&o.vernier, "vernier", "vernier", "the vernier binary")
	flag.Parse()
	if o.rounds < 1 || o.trials < 1 || o.parallel < 1 {
		fmt.Fprintln(os.Stderr, "throughput: -rounds, -trials and -parallel are at least 1")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := bench(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	trials, parallel, rounds int
	vernier                  string
}

// child is the training program: it leaves a stamp of when it started, and
// prints its objective.
func child(dir string, started time.Time) error {
	fmt.Println("loss=0.5")
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%d", started.UnixNano(), os.Getpid())), nil, 0o600)
}

// firstStamp is the time of the earliest stamp in dir, and how many there are.
func firstStamp(dir string) (first time.Time, count int, err error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil || len(entries) == 0 {
		return first, 0, err
	}
	var nanos int64
	_, err = fmt.Sscanf(entries[0].Name(), "%d-", &nanos)
	return time.Unix(0, nanos), len(entries), err
}
