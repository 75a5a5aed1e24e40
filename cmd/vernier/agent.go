package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local/agent"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
)

func newAgentCommand() *cobra.Command {
	var config agent.Config
	var kubeconfig, binDir, cpu, memory string
	var gpus []string
	var loopback []uint
	cmd := &cobra.Command{
		Use:    "agent",
		Short:  "Run the node agent of the embedded control plane (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, down, stop := agentSignals(cmd.Context())
			defer stop()
			config.Down = down
			var err error
			if config.REST, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
				return err
			}
			if config.CPU, err = quantity(cpu); err != nil {
				return err
			}
			if config.Memory, err = quantity(memory); err != nil {
				return err
			}
			if cmd.Flags().Changed("gpus") {
				config.GPUs = gpus
			}
			for _, port := range loopback {
				config.LoopbackPorts = append(config.LoopbackPorts, uint16(port))
			}
			config.Path = []string{binDir} // the collector above all
			config.Log = textlogger.NewLogger(textlogger.NewConfig())
			return agent.Run(ctx, config)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the API server")
	f.StringVar(&config.NodeName, "node-name", "local", "name of the node")
	f.StringVar(&config.Root, "root", "", "folder of the agent")
	f.StringVar(&config.ShimBinary, "shim", "", "the shim binary")
	f.StringVar(&binDir, "bin-dir", "", "folder that comes first in every container's PATH")
	f.StringVar(&config.ListenAddress, "listen", "127.0.0.1:0", "address of the kubelet API")
	f.UintSliceVar(&loopback, "loopback-ports", nil, "ports of 127.0.0.1 that pods with a network of their own reach")
	f.StringVar(&config.CertFile, "cert", "", "serving certificate")
	f.StringVar(&config.KeyFile, "key", "", "key of the serving certificate")
	f.StringVar(&config.ClientCAFile, "client-ca", "", "authority of the clients' certificates")
	f.StringVar(&config.Reporting.URL, "report-url", "", "URL of the report service, for what trials use of the machine (default: it is not sampled)")
	f.StringVar(&config.Reporting.KeyFile, "report-key-file", "", "file with the key that signs report tokens")
	f.StringVar(&cpu, "cpu", "", "cores that the node offers (default: all)")
	f.StringVar(&memory, "memory", "", "memory that the node offers (default: all)")
	f.StringSliceVar(&gpus, "gpus", nil, "UUIDs of the GPUs that the node offers (default: all found)")
	f.IntVar(&config.GPUSharing, "gpu-sharing", 1, "how many pods may hold one GPU")
	return cmd
}

// quantity parses the value of a flag; empty is zero.
func quantity(text string) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return q, usageErrorf("%q is not a quantity, such as 4 or 500m or 8Gi: %w", text, err)
	}
	return q, nil
}

// agentSignals end the agent: SIGINT leaves its pods, SIGTERM, which comes when the instance
// stops, ends them too.
func agentSignals(parent context.Context) (ctx context.Context, down <-chan struct{}, stop func()) {
	ctx, leave := signal.NotifyContext(parent, syscall.SIGINT)
	ending, stopEnding := signal.NotifyContext(context.WithoutCancel(parent), syscall.SIGTERM)
	return ctx, ending.Done(), func() { leave(); stopEnding() }
}
