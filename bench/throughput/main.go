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
	"strconv"
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
	flag.StringVar(&o.home, "home", "", "home of the instance; a temporary one by default")
	flag.StringVar(&o.csv, "csv", "", "file to append the rounds to")
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
	vernier, home, csv       string
}

// child is the training program: it leaves a stamp of when it started, and
// prints its objective.
func child(dir string, started time.Time) error {
	name := filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(started.UnixNano(), 10))
	fmt.Println("loss=0.5")
	return os.WriteFile(name, []byte(strconv.FormatInt(started.UnixNano(), 10)), 0o600)
}

// firstStamp is the time of the earliest stamp in dir, and how many there are.
func firstStamp(dir string) (first time.Time, count int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return time.Time{}, 0, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return time.Time{}, 0, err
		}
		nanos, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return time.Time{}, 0, fmt.Errorf("stamp %s: %w", e.Name(), err)
		}
		if t := time.Unix(0, nanos); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first, len(entries), nil
}
