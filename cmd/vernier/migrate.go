package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

const migrateHelp = `Take a cluster on which Katib is installed, or was, to Vernier, which has to be
installed. Without --yes only the plan is shown. It may be broken off at any time
and run again, and does only what is left.

Katib's controller is stopped before Vernier acts on anything. Experiments that have
ended stay as they are. Nothing is begun while experiments run, unless --wait or
--restart-running says what becomes of them. Katib's Deployments, its database and
its definitions are not deleted.

Exit codes: 0 done, or the plan was shown; 6 experiments run.`

func newMigrateCommand(open opener) *cobra.Command {
	var m katib.Migration
	var yes bool
	cmd := &cobra.Command{
		Use: "katib [--yes]", Short: "Take a cluster from Katib to Vernier", Long: migrateHelp,
		Example: "  kubectl vernier migrate katib\n  kubectl vernier migrate katib --yes --wait",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			m.Client, m.Refuses = session.client, refusal(cmd.Context(), session.client)
			return migrateKatib(cmd.Context(), &m, yes, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this the plan is shown")
	cmd.Flags().BoolVar(&m.Wait, "wait", false, "wait until Katib has brought the experiments that run to their ends")
	cmd.Flags().BoolVar(&m.Restart, "restart-running", false, "go on with the experiments that run under Vernier; their trials that run start again, with the same parameters")
	cmd.MarkFlagsMutuallyExclusive("wait", "restart-running")
	parent := &cobra.Command{Use: "migrate", Short: "Take a cluster from another tuner to Vernier"}
	parent.AddCommand(cmd)
	return parent
}

// refusal says why Vernier cannot go on with an experiment, as admission and the
// controller would.
func refusal(ctx context.Context, c client.Reader) func(*v1beta1.Experiment) error {
	return func(e *v1beta1.Experiment) error {
		e = e.DeepCopy()
		webhook.DefaultNamespace(e)
		webhook.Default(e)
		rules, err := webhook.Rules{Reader: c, Entrypoints: true}.For(ctx, e)
		if err != nil {
			return err
		}
		_, errs := rules.Validate(e, nil)
		if t := e.Spec.TrialTemplate; len(errs) == 0 && t != nil && t.ConfigMap != nil {
			text, err := rules.ReadTemplate(ctx, e)
			if err != nil {
				return err
			}
			_, errs = rules.ValidateTemplate(e, text)
		}
		return errs.ToAggregate()
	}
}

func migrateKatib(ctx context.Context, m *katib.Migration, yes bool, out io.Writer) error {
	survey, err := katib.Inspect(ctx, m.Client)
	if err != nil {
		return err
	}
	steps := survey.Plan()
	showSurvey(out, survey, m.Refuses)
	for i, step := range steps {
		fmt.Fprintf(out, "%-12s %d. %s\n", []string{"To do", ""}[min(i, 1)], i+1, step.Text)
	}
	if len(steps) > 0 && !yes {
		if err := m.Check(survey); err != nil {
			fmt.Fprintln(out, "Before       ", err)
		}
		fmt.Fprintln(out, "Nothing was changed. --yes does it.")
		return nil
	}
	m.Say = func(text string) { fmt.Fprintln(out, text) }
	if err := m.Run(ctx); errors.Is(err, katib.ErrRunning) {
		return &exitError{code: exitConflict, err: err}
	} else if err != nil {
		return err
	}
	fmt.Fprintln(out, "Nothing is left to do: Vernier acts on the Experiments.")
	for _, d := range append(survey.Controllers, survey.Others...) {
		fmt.Fprintf(out, "Delete when you no longer need it: kubectl -n %s delete deployment %s\n", d.Namespace, d.Name)
	}
	return nil
}

func showSurvey(out io.Writer, s *katib.Survey, refuses func(*v1beta1.Experiment) error) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	state := "is not installed"
	switch {
	case s.Acts():
		state = "acts on all Experiments"
	case s.Owns():
		state = "does not run, and keeps Vernier from acting"
	}
	line("Katib", "%s", state)
	for _, d := range append(s.Controllers, s.Others...) {
		line("", "Deployment %s/%s", d.Namespace, d.Name)
	}
	running := s.Running()
	line("Experiments", "%d, %d have not ended", len(s.Experiments), len(running))
	for _, e := range running {
		text := ""
		if err := refuses(e); err != nil {
			text = "; cannot go on under Vernier: " + err.Error()
		}
		algorithm := "no algorithm"
		if a := e.Spec.Algorithm; a != nil {
			algorithm = cmp.Or(a.AlgorithmName, algorithm)
		}
		line("", "%s/%s: %s, %d trials, %d run%s", e.Namespace, e.Name, algorithm, e.Status.Trials, e.Status.TrialsRunning, text)
	}
	line("Trials", "%d", len(s.Trials))
}
