package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func newKubectlCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "Run kubectl against the embedded control plane",
		Long:  "Run kubectl, the real one, built in, against the embedded control plane. Put --home before the word kubectl; everything behind it is kubectl's.",
		Example: `  vernier kubectl get experiments,trials,jobs,pods
  vernier kubectl apply -f experiment.yaml`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			path := home.Kubeconfig()
			flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50.0)
			flags.KubeConfig = &path
			command := kubectl.NewKubectlCommand(kubectl.KubectlOptions{
				Arguments:   append([]string{"kubectl"}, args...),
				ConfigFlags: flags,
				IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
			})
			command.SetArgs(args)
			return command.ExecuteContext(cmd.Context())
		},
	}
}
