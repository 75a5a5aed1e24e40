// Command throughput measures how many trials a second a control plane runs,
// beside the same work as bare Jobs, in one run.
//
// Each round runs both, in alternating order, on one instance in a temporary
// home, or with -kubeconfig on a cluster whose node has the files of this
// machine, as that of make node-up. The program ends at once, or after -work, so
// that what is measured is everything around it. It prints trials a second, the
// ratio of the medians with its spread over the rounds, and the time from apply
// to the first training process.
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
	if len(os.Args) > 3 && os.Args[1] == "child" {
		if err := child(os.Args[2], os.Args[3], time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.trials, "trials", 200, "trials (and Jobs) of each round")
	flag.IntVar(&o.parallel, "parallel", 8, "how many at once")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&o.work, "work", 0, "how long each program works")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "cluster to measure instead of an embedded control plane")
	flag.StringVar(&o.image, "image", "vernier.test/busybox:1", "image of the programs on a cluster: any that the node has")
	flag.StringVar(&o.ask, "ask", "", "measure the programmatic API with this algorithm instead: -parallel workers ask for -trials")
	flag.StringVar(&o.vernier, "vernier", "vernier", "the vernier binary")
	flag.Parse()
	if o.rounds < 1 || o.trials < 1 || o.parallel < 1 {
		fmt.Fprintln(os.Stderr, "throughput: -rounds, -trials and -parallel are at least 1")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	measured := bench
	if o.ask != "" {
		measured = asks
	}
	err := measured(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	trials, parallel, rounds int
	work                     time.Duration
	vernier                  string
	kubeconfig, image        string
	ask                      string
}

// child is the training program: it leaves a stamp of when it started, prints its
// objective and works. The host name tells processes apart that have one number.
func child(dir, work string, started time.Time) error {
	d, err := time.ParseDuration(work)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("loss=0.5")
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s-%d", started.UnixNano(), host, os.Getpid())), nil, 0o600); err != nil {
		return err
	}
	time.Sleep(d) //nolint:forbidigo // this is the work
	return nil
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
