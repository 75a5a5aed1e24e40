package main

import (
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/local"
	"github.com/vernier-ml/vernier/local/statefile"
)

func newDashboardCommand(g *global) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Print the address of the dashboard, with its token",
		Long: `Print the address of the dashboard of the embedded control plane. The token in it lets
its reader do everything there: keep it secret. Browsers do not send that part of an
address to servers. --open gives the browser a file of the home, which leads there: the
token is not among the arguments of a program. A browser that may not read the home,
as one in a sandbox, needs the address above.`,
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
			page := filepath.Join(string(home), "run", "dashboard.html")
			if err := writeRedirect(page, address); err != nil {
				return err
			}
			return browse(cmd, page)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open it in the browser, too")
	return cmd
}

// writeRedirect writes a page, which only this user can read, that leads to an address
// with a token. The arguments of a browser can be read by every user of the machine.
func writeRedirect(page, address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "https" && u.Scheme != "http" {
		err = fmt.Errorf("the scheme is %q", u.Scheme)
	}
	if err != nil {
		return fmt.Errorf("the address of the dashboard is not one of a web server: %w", err)
	}
	text := fmt.Sprintf("<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer><meta http-equiv=refresh content=\"0;url=%s\"><title>Vernier</title>\n", html.EscapeString(u.String()))
	if err := statefile.Replace(page, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the page that opens the dashboard: %w", err)
	}
	return nil
}

// browse opens a page in the user's browser.
func browse(cmd *cobra.Command, page string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	err := exec.CommandContext(cmd.Context(), program, page).Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("there is no %s here: open the address above in a browser", program)
	}
	if err != nil {
		return fmt.Errorf("%s found no browser (%w): open the address above in one", program, err)
	}
	return nil
}
