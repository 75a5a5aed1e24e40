package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/local"
)

func newDashboardCommand(g *global) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Print the address of the dashboard, with its token",
		Long: `Print the address of the dashboard of the embedded control plane. The token in it lets
its reader do everything there: keep it secret. Browsers do not send that part of an
address to servers.`,
		Example: "  vernier dashboard --open\n  ssh -L 20443:127.0.0.1:20443 gpu-box    # then open the address that it prints there",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			status, err := local.ReadStatus(home)
			if err != nil {
				return err
			}
			if status.State != local.StateReady {
				return &exitError{code: exitUnreachable, err: notReady(home, status)}
			}
			token, err := os.ReadFile(home.APIToken())
			if err != nil {
				return fmt.Errorf("read the token of the API: %w", err)
			}
			address := status.API + "/#token=" + strings.TrimSpace(string(token))
			fmt.Fprintln(cmd.OutOrStdout(), address)
			if !open {
				return nil
			}
			return browse(cmd, address)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open it in the browser, too")
	return cmd
}

// browse opens an address in the user's browser.
func browse(cmd *cobra.Command, address string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	err := exec.CommandContext(cmd.Context(), program, address).Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("there is no %s here: open the address above in a browser", program)
	}
	if err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	return nil
}
