package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local"
	"k8s.io/klog/v2/textlogger"
)

func newUpCommand(g *global) *cobra.Command {
	var foreground bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the embedded control plane, or resume it",
		Long: `Start etcd, the Kubernetes API server, controller manager and scheduler, the
manager and a node agent on this machine, without root and without Docker. All
listen on loopback only; all state is in the home, which only you can read. What
was there before goes on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			binaries, err := local.FindBinaries(g.getenv("VERNIER_BIN_DIR"))
			if err != nil {
				return err
			}
			if foreground {
				return supervise(cmd.Context(), home, binaries)
			}
			begin := time.Now()
			started, err := local.Up(cmd.Context(), home, binaries, g.sayProgress)
			if err != nil {
				return err
			}
			if !started {
				fmt.Fprintf(cmd.OutOrStdout(), "running already in %s\n", home)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready after %.1f s in %s\nkubectl --kubeconfig %s get experiments\n", time.Since(begin).Seconds(), home, home.Kubeconfig())
			return nil
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "stay in the foreground and log there; Ctrl-C stops the instance")
	return cmd
}

func newSuperviseCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "Run the supervisor of the embedded control plane (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			binaries, err := local.FindBinaries(g.getenv("VERNIER_BIN_DIR"))
			if err != nil {
				return err
			}
			return supervise(cmd.Context(), home, binaries)
		},
	}
}

func supervise(ctx context.Context, home local.Home, binaries local.Binaries) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return local.Supervise(ctx, local.Options{Home: home, Binaries: binaries, Log: textlogger.NewLogger(textlogger.NewConfig())})
}
