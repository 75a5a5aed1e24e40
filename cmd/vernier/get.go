package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newGetCommand(open opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get experiments|trials",
		Short: "List experiments, or the trials of one",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("say what to list: vernier get experiments, or vernier get trials EXPERIMENT")
			}
			return usageErrorf("there are no %q to list: write experiments, or trials EXPERIMENT", args[0])
		},
	}
	cmd.AddCommand(newGetExperimentsCommand(open), newGetTrialsCommand(open))
	return cmd
}

type listOptions struct {
	output    string
	noHeaders bool
	allSpaces bool
	sort      string
}

func (o *listOptions) register(cmd *cobra.Command) {
	outputFlag(cmd, &o.output, "table, wide, name, json or yaml", "table", "wide", "name", "json", "yaml")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave the header out")
}

func newGetExperimentsCommand(open opener) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "experiments [NAME...]",
		Aliases: []string{"experiment", "exp", "exps"},
		Short:   "List experiments",
		RunE: func(cmd *cobra.Command, names []string) error {
			return apiError(getExperiments(cmd.Context(), o, names, cmd.OutOrStdout(), open))
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&o.allSpaces, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

func getExperiments(ctx context.Context, o listOptions, names []string, out io.Writer, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	c, err := newClient(session.config)
	if err != nil {
		return err
	}
	var list v1beta1.ExperimentList
	scope := []client.ListOption{client.InNamespace(session.namespace)}
	if o.allSpaces {
		scope = nil
	}
	if err := c.List(ctx, &list, scope...); err != nil {
		return fmt.Errorf("list experiments: %w", err)
	}
	if len(names) > 0 {
		list.Items, err = named(list.Items, names)
		if err != nil {
			return err
		}
	}
	if done, err := writeObjects(out, o.output, "ExperimentList", list.Items, func(e v1beta1.Experiment) string { return "experiment/" + e.Name }); done {
		return err
	}
	return experimentTable(list.Items, o.allSpaces, time.Now()).write(out, o.noHeaders)
}

func named(items []v1beta1.Experiment, names []string) ([]v1beta1.Experiment, error) {
	var found []v1beta1.Experiment
	for _, name := range names {
		i := slices.IndexFunc(items, func(e v1beta1.Experiment) bool { return e.Name == name })
		if i < 0 {
			return nil, notFoundErrorf("no experiment %q: leave the name out to see what there is", name)
		}
		found = append(found, items[i])
	}
	return found, nil
}

func experimentTable(items []v1beta1.Experiment, namespaces bool, now time.Time) *table {
	t := &table{header: []string{"NAME", "STATE", "DONE", "RUNNING", "FAILED", "BEST", "BEST TRIAL", "ALGORITHM", "AGE"}}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for _, e := range items {
		view := newExperimentView(&e, nil)
		c := statusCounts(&e.Status)
		best, bestTrial := "", ""
		if b, ok := view.best(); ok {
			best, bestTrial = shortNumber(b.objective()), b.Name
		}
		algorithm := ""
		if e.Spec.Algorithm != nil {
			algorithm = e.Spec.Algorithm.AlgorithmName
		}
		row := []string{
			e.Name, view.State, c.progress(&e), strconv.Itoa(c.Running), strconv.Itoa(c.Failed),
			best, bestTrial, algorithm, age(now.Sub(e.CreationTimestamp.Time)),
		}
		if namespaces {
			row = append([]string{e.Namespace}, row...)
		}
		t.add(row...)
	}
	return t
}

func newGetTrialsCommand(open opener) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "trials EXPERIMENT",
		Aliases: []string{"trial"},
		Short:   "List the trials of an experiment",
		Args:    oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return apiError(getTrials(cmd.Context(), o, args[0], cmd.OutOrStdout(), open))
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.sort, "sort", "number", "number, or objective: the best first")
	return cmd
}

func getTrials(ctx context.Context, o listOptions, name string, out io.Writer, open opener) error {
	if o.sort != "number" && o.sort != "objective" {
		return usageErrorf("--sort %q: write number or objective", o.sort)
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	c, err := newClient(session.config)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: session.namespace, Name: name}
	view, err := loadExperiment(ctx, c, key)
	if err != nil {
		return err
	}
	if o.output == "json" || o.output == "yaml" {
		var trials v1beta1.TrialList
		if err := c.List(ctx, &trials, client.InNamespace(key.Namespace), client.MatchingLabels{v1beta1.LabelExperiment: key.Name}); err != nil {
			return fmt.Errorf("list the trials of experiment %s: %w", key, err)
		}
		_, err := writeObjects(out, o.output, "TrialList", trials.Items, nil)
		return err
	}
	if o.sort == "objective" {
		sortByObjective(view)
	}
	if done, err := writeObjects(out, o.output, "TrialList", view.Trials, func(t trialView) string { return "trial/" + t.Name }); done {
		return err
	}
	rows := trialTable(view, view.Trials, time.Now())
	if o.output == "wide" {
		rows.header = append(rows.header, "METRICS", "MESSAGE")
		for i, t := range view.Trials {
			rows.rows[i] = append(rows.rows[i], metricText(t), t.Message)
		}
	}
	return rows.write(out, o.noHeaders)
}

// sortByObjective puts the best trial first, then those that break a bound on a
// metric, and those without a value last.
func sortByObjective(v experimentView) {
	sign := 1.0
	if o := v.Experiment.Spec.Objective; o != nil && o.Type == v1beta1.ObjectiveTypeMaximize {
		sign = -1
	}
	slices.SortStableFunc(v.Trials, func(a, b trialView) int {
		x, okX := a.score()
		y, okY := b.score()
		switch {
		case okX != okY:
			return rank(okX) - rank(okY)
		case v.feasible(a) != v.feasible(b):
			return rank(v.feasible(a)) - rank(v.feasible(b))
		case sign*x < sign*y:
			return -1
		case sign*x > sign*y:
			return 1
		}
		return 0
	})
}

func metricText(t trialView) string {
	parts := make([]string, len(t.Metrics))
	for i, m := range t.Metrics {
		parts[i] = m.Name + "=" + shortNumber(m.Value)
	}
	return strings.Join(parts, " ")
}
