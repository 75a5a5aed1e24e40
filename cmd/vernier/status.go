package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/local"
)

func newStatusCommand(g *global) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the components of the embedded control plane",
		Long:  "Show the components of the embedded control plane. The exit code is 7 when it is not ready.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			status, err := local.ReadStatus(home)
			if err != nil {
				return err
			}
			if output == "table" {
				err = statusTable(cmd, home, status)
			} else {
				err = writeValue(cmd.OutOrStdout(), output, status)
			}
			if err == nil && status.State != local.StateReady {
				return &exitError{code: exitUnreachable, err: notReady(home, status)}
			}
			return err
		},
	}
	outputFlag(cmd, &output, "table, json or yaml", "table", "json", "yaml")
	return cmd
}

// notReady says what an instance is that is not ready, why, and what to do.
func notReady(home local.Home, status local.Status) error {
	// The reason is the first line; the end of a log may follow.
	why, _, _ := strings.Cut(status.Message, "\n")
	if why != "" {
		why = ": " + strings.TrimSuffix(why, ":")
	}
	switch status.State {
	case local.StateStarting, local.StateStopping:
		return fmt.Errorf("the instance in %s is %s%s: wait, then ask again", home, status.State, why)
	case local.StateStopped:
		if status.PID > 0 { // it ran before
			return fmt.Errorf("the instance in %s is stopped%s: start it with vernier up; its experiments are kept", home, why)
		}
		return fmt.Errorf("no instance runs in %s%s: start it with vernier up", home, why)
	}
	return fmt.Errorf("the instance in %s is %s%s: start it with vernier up", home, status.State, why)
}

func statusTable(cmd *cobra.Command, home local.Home, status local.Status) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s   %s\n", home, status.State)
	if status.DBManager != "" && status.State == local.StateReady {
		fmt.Fprintf(out, "Katib's db_manager_address   %s\n", status.DBManager)
	}
	if status.API != "" && status.State == local.StateReady {
		fmt.Fprintf(out, "API   %s (token in %s)\n", status.API, home.APIToken())
	}
	if status.PodNetwork != "" && status.State == local.StateReady {
		fmt.Fprintln(out, status.PodNetwork)
	}
	if len(status.Components) == 0 {
		return nil // the error says what to do
	}
	t := &table{header: []string{"COMPONENT", "PID", "RESTARTS", "MEMORY", "AGE", "LAST ERROR"}}
	for _, c := range status.Components {
		t.add(c.Name, strconv.Itoa(c.PID), strconv.Itoa(c.Restarts), fmt.Sprintf("%d MB", c.ResidentBytes>>20), age(time.Since(c.Since)), c.LastError)
	}
	return t.write(out, false)
}
