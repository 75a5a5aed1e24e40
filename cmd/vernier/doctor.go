package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/local"
)

func newDoctorCommand(g *global) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and the instance, and say what to do",
		Long: `Check what the embedded mode needs of this machine (programs, disk, memory,
namespaces, networks of pods, GPUs, limits, clock, ports), and the instance if one
runs. Nothing is changed. The exit code is 1 if a line says fail.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := g.instanceHome()
			if err != nil {
				return err
			}
			findings := append([]local.Finding{{Name: "version", Level: local.LevelOK, Found: "vernier " + version}},
				local.Diagnose(cmd.Context(), home, g.getenv("VERNIER_BIN_DIR"))...)
			if asJSON {
				err = writeValue(cmd.OutOrStdout(), "json", findings)
			} else {
				err = writeFindings(cmd.OutOrStdout(), findings)
			}
			failed := 0
			for _, f := range findings {
				if f.Level == local.LevelFail {
					failed++
				}
			}
			if err == nil && failed > 0 {
				err = &exitError{code: exitFailure, err: fmt.Errorf("%d of %d checks failed", failed, len(findings))}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list in JSON")
	return cmd
}

func writeFindings(w io.Writer, findings []local.Finding) error {
	for _, f := range findings {
		_, err := fmt.Fprintf(w, "%-4s  %-23s  %s\n", f.Level, f.Name, f.Found)
		if err == nil && f.Remedy != "" {
			_, err = fmt.Fprintf(w, "%31s-> %s\n", "", f.Remedy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
