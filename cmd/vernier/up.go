package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local"
	"k8s.io/klog/v2/textlogger"
)

func newUpCommand(g *global) *cobra.Command {
	var foreground bool
	var offer local.Resources
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the embedded control plane, or resume it",
		Long: `Start etcd, the Kubernetes API server, controller manager and scheduler, the
manager and a node agent on this machine, without root and without Docker. All
listen on loopback only; all state is in the home, which only you can read. What
was there before goes on.

The node offers the cores, memory and GPUs that this process may use: limits of
its control group and CUDA_VISIBLE_DEVICES count. --cpu, --memory, --gpus,
--gpu-sharing and --image-command are kept for later starts, until one of them is given
again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			binaries, err := g.binaries(home)
			if err != nil {
				return err
			}
			if flags := cmd.Flags(); flags.Changed("cpu") || flags.Changed("memory") || flags.Changed("gpus") || flags.Changed("gpu-sharing") || flags.Changed("image-command") {
				if err := changeOffer(home, offer); err != nil {
					return err
				}
			}
			if foreground && os.Getpid() == 1 {
				return superviseAsInit()
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
			fmt.Fprintf(cmd.OutOrStdout(), "ready after %.1f s in %s\nkubectl --kubeconfig %s get experiments\n", time.Since(begin).Seconds(), home, shellQuote(home.Kubeconfig()))
			if address := home.DBManager(); address != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "Katib's SDK reads metrics with db_manager_address=%q\n", address)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&foreground, "foreground", false, "stay in the foreground and log there; Ctrl-C stops the instance")
	cmd.Flags().StringVar(&offer.CPU, "cpu", "", "cores that trials may ask for, such as 4 or 500m")
	cmd.Flags().StringVar(&offer.Memory, "memory", "", "memory that trials may ask for, such as 16Gi")
	cmd.Flags().StringVar(&offer.GPUs, "gpus", "", "UUIDs of the GPUs and MIG devices that trials may ask for, joined by commas, or none")
	cmd.Flags().StringArrayVar(&offer.ImageCommands, "image-command", nil, "IMAGE=COMMAND: the program of this machine that trials run whose container names no command; * in IMAGE stands for anything but a slash; may be given several times")
	cmd.Flags().IntVar(&offer.GPUSharing, "gpu-sharing", 0, "how many trials may have one GPU at a time (default 1)")
	return cmd
}

// superviseAsInit is up --foreground as the first process of a container, which reaps
// those that others leave.
func superviseAsInit() error {
	code, err := local.RunAsInit()
	if err == nil && code != 0 {
		err = &exitError{code: code, err: errors.New("the supervisor has ended")}
	}
	return err
}

// changeOffer changes what the node of an instance that is stopped offers to trials.
func changeOffer(home local.Home, offer local.Resources) error {
	if status, err := local.ReadStatus(home); err != nil || status.PID != 0 && status.State != local.StateStopped && status.State != local.StateFailed {
		return errors.Join(err, fmt.Errorf("the instance in %s runs: stop it first, with vernier down, to change what it offers", home))
	}
	if err := home.SetResources(offer); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
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
