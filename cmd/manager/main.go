// Command manager runs Vernier's controllers, its admission webhook and the
// report service that trials send their measurements to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Set by the linker: the version, and where the images are published.
var (
	version  = "dev"
	registry = "ghcr.io/vernier-ml"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	o, err := parseFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(exitUsage)
	case o.version:
		fmt.Println(version)
		return
	}
	logger := slog.New(logHandler(os.Stderr, o))
	slog.SetDefault(logger)
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
	klog.SetSlogLogger(logger)
	spareMemory()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		logger.Error("manager stopped", "error", err)
		os.Exit(exitFailed)
	}
}

// spareMemory makes the garbage collector keep the heap near what is in use:
// the manager mostly waits, and its memory counts more than its CPU time.
// GOGC and GOMEMLIMIT in the environment win.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit("/sys/fs/cgroup/memory.max"))
	}
}

// memoryLimit is three quarters of the container's limit in a file of the cgroup;
// 256 MiB where there is none.
func memoryLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return defaultMemory
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 { // "max"
		return defaultMemory
	}
	return limit / 4 * 3
}

const defaultMemory = 256 << 20
