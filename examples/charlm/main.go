// Command charlm trains a small language model on Go source: it predicts the next
// character from the last few. It is the program that the demo tunes.
//
// After each epoch it prints a line such as
//
//	epoch=3 train_loss=2.3112 val_loss=2.2954 lr=0.003 weights=7423
//
// where a loss is the mean cross entropy in nats per character. With --logdir it
// also writes these numbers as TensorBoard scalars. Runs with the same flags, data
// and build give the same numbers. It uses one core.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	runtime.GOMAXPROCS(1)
	cfg, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(context.Background(), cfg, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "charlm:", err)
		os.Exit(1)
	}
}

// config has the values of the flags.
type config struct {
	lr        float64
	width     int
	context   int
	optimizer string
	epochs    int
	examples  int
	batch     int
	seed      uint64
	data      string
	logdir    string
	now       func() time.Time
}

func parseFlags(args []string, usage io.Writer) (config, error) {
	c := config{now: time.Now}
	f := flag.NewFlagSet("charlm", flag.ContinueOnError)
	f.SetOutput(usage)
	f.Float64Var(&c.lr, "lr", 0.003, "learning rate, above 0")
	f.IntVar(&c.width, "width", 48, "units of the hidden layer, 1 to 4096")
	f.IntVar(&c.context, "context", 5, "characters that the model sees, 1 to 64")
	f.StringVar(&c.optimizer, "optimizer", "adam", "sgd, momentum or adam")
	f.IntVar(&c.epochs, "epochs", 8, "epochs")
	f.IntVar(&c.examples, "examples", 24000, "training examples of an epoch")
	f.IntVar(&c.batch, "batch", 16, "examples of one update")
	f.Uint64Var(&c.seed, "seed", 1, "seed of the weights and of the order of examples")
	f.StringVar(&c.data, "data", "", "directory with .go files (default: GOROOT, as the environment or `go env` say)")
	f.StringVar(&c.logdir, "logdir", "", "directory for TensorBoard events (default: none are written)")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case !(c.lr > 0):
		return c, fmt.Errorf("--lr is %v: it must be above 0", c.lr)
	case c.width < 1 || c.width > 4096:
		return c, fmt.Errorf("--width is %d: it must be from 1 to 4096", c.width)
	case c.context < 1 || c.context > 64:
		return c, fmt.Errorf("--context is %d: it must be from 1 to 64", c.context)
	case c.epochs < 1 || c.examples < 1 || c.batch < 1:
		return c, errors.New("--epochs, --examples and --batch must be at least 1")
	}
	_, err := newOptimizer(c.optimizer, c.lr, 0)
	return c, err
}

// run trains the model and reports each epoch.
func run(ctx context.Context, cfg config, out io.Writer) (err error) {
	dir, err := dataDir(ctx, cfg.data)
	if err != nil {
		return err
	}
	train, validation, err := load(dir, cfg.context)
	if err != nil {
		return err
	}
	var events *eventWriter
	if cfg.logdir != "" {
		if events, err = newEventWriter(cfg.logdir, cfg.now()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, events.Close()) }()
	}
	t, err := newTrainer(cfg, train, validation)
	if err != nil {
		return err
	}
	for epoch := 1; epoch <= cfg.epochs; epoch++ {
		trainLoss, valLoss := t.epoch(), t.validate()
		lr := strconv.FormatFloat(cfg.lr, 'g', -1, 64)
		if _, err := fmt.Fprintf(out, "epoch=%d train_loss=%.4f val_loss=%.4f lr=%s weights=%d\n", epoch, trainLoss, valLoss, lr, t.model.size()); err != nil {
			return err
		}
		if events == nil {
			continue
		}
		err := events.Scalars(cfg.now(), int64(epoch), scalar{"train_loss", trainLoss}, scalar{"val_loss", valLoss})
		if err != nil {
			return err
		}
	}
	return nil
}

// dataDir is the directory of the training text: the flag, else GOROOT.
func dataDir(ctx context.Context, flagged string) (string, error) {
	if flagged != "" {
		return flagged, nil
	}
	if dir := os.Getenv("GOROOT"); dir != "" {
		return dir, nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
		return dir, nil
	}
	return "", fmt.Errorf("there is nothing to train on: give --data a directory with .go files, or set GOROOT (asking `go env GOROOT`: %w)", err)
}
