// Command shim owns the processes of one pod of the embedded node. The node agent
// starts it; see package local/shim.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/vernier-ml/vernier/local/podnet"
	"github.com/vernier-ml/vernier/local/shim"
)

const usage = `usage: shim serve --dir DIR --pod-uid UID [flags]   own the processes of one pod
       shim network --dir DIR                      hold the networks of a node's pods
       shim probe                                  say how mounts can be made here
       shim version                                print the protocol's version
`

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	var err error
	switch command {
	case "enter": // started by serve in a fresh namespace
		return shim.Enter()
	case "serve":
		err = serve(args[1:])
	case "network":
		err = network(args[1:])
	case "probe":
		err = probe()
	case "version":
		fmt.Println(shim.Version)
	default:
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if errors.Is(err, flag.ErrHelp) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shim:", err)
		return 1
	}
	return 0
}

func serve(args []string) error {
	// One shim runs for each pod: a small heap matters more than its speed.
	debug.SetGCPercent(25)
	var o shim.Options
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&o.Dir, "dir", "", "the pod's directory")
	flags.StringVar(&o.PodUID, "pod-uid", "", "the pod's UID")
	mounts := flags.String("mounts", "", "root, user or none; see probe")
	flags.DurationVar(&o.IdleExit, "idle-exit", 0, "end after so long without containers and requests (default 10m)")
	readyFD := flags.Int("ready-fd", 0, "descriptor to write a line to once clients can connect")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch o.Mounts = shim.MountMode(*mounts); o.Mounts {
	case shim.MountsRoot, shim.MountsUser, shim.MountsNone:
	default:
		return fmt.Errorf("--mounts %q: want root, user or none", *mounts)
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return shim.Serve(ctx, o, logger(), func() error { return announce(*readyFD) })
}

// network ends by a request, not by a signal: when the whole machine or session
// ends, the pods still have their grace.
func network(args []string) error {
	flags := flag.NewFlagSet("network", flag.ContinueOnError)
	dir := flags.String("dir", "", "the holder's directory")
	try := flags.Bool("probe", false, "only find out whether it works here")
	readyFD := flags.Int("ready-fd", 0, "descriptor to write a line to once clients can connect")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *try {
		return podnet.TryNetwork()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT)
	return podnet.Serve(context.Background(), *dir, logger(), func() error { return announce(*readyFD) })
}

func logger() *log.Logger {
	// SIGHUP is caught, not ignored: the containers would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	return log.New(os.Stderr, "", log.LstdFlags|log.LUTC|log.Lmicroseconds)
}

// announce tells the parent that clients can connect.
func announce(fd int) error {
	if fd == 0 {
		return nil
	}
	f := os.NewFile(uintptr(fd), "ready")
	defer f.Close()
	if _, err := io.WriteString(f, "ready\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("say that the shim is ready: %w", err)
	}
	return nil
}

func probe() error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	mode, why := shim.ProbeMounts(context.Background(), binary, os.TempDir())
	fmt.Println(mode)
	return why
}
