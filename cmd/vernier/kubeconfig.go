package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newKubeconfigCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the embedded control plane's kubeconfig",
		Example: "  kubectl --kubeconfig $(vernier kubeconfig) get experiments,trials,jobs,pods",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), home.Kubeconfig())
			return nil
		},
	}
}
