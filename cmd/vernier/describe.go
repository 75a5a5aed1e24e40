package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

func newDescribeCommand(open opener) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "describe EXPERIMENT[/TRIAL]",
		Short: "Show an experiment or a trial: its state, why, and its events",
		Example: `  vernier describe charlm
  vernier describe charlm/12
  vernier describe charlm/best
  vernier describe charlm/12 -o command`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return describe(cmd.Context(), args[0], output, cmd.OutOrStdout(), open)
		},
	}
	outputFlag(cmd, &output, "text, or of a trial what vernier best has: args, command, env, json or yaml", "text", "args", "command", "env", "json", "yaml")
	return cmd
}

func describe(ctx context.Context, text, output string, out io.Writer, open opener) error {
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	t, err := parseTarget(text)
	if err != nil {
		return err
	}
	if t.Trial == "" && output != "text" {
		return usageErrorf("-o %s is of a trial: write %s/best, or %s/12; vernier get experiments %s -o yaml prints the experiment", output, text, text, text)
	}
	view, err := loadExperiment(ctx, session.client, session.key(t.Experiment))
	if err != nil {
		return err
	}
	if t.Trial == "" {
		view.BestStep = session.bestStep(ctx, view)
		describeExperiment(out, view, time.Now())
		return describeEvents(ctx, session, out, "Experiment", view.Experiment)
	}
	trial, err := t.find(view)
	if err != nil {
		return err
	}
	if output != "text" {
		return writeBest(out, output, view.Experiment, trial)
	}
	describeTrial(out, view.Experiment, trial, time.Now())
	if trial.Object == nil { // it was deleted, and its events with it
		return nil
	}
	return describeEvents(ctx, session, out, "Trial", trial.Object)
}

func describeExperiment(out io.Writer, v experimentView, now time.Time) {
	e := v.Experiment
	fmt.Fprintf(out, "Experiment  %s/%s\n", e.Namespace, e.Name)
	fmt.Fprintf(out, "State       %s\n", experimentLine(v))
	fmt.Fprintf(out, "            %s\n", headline(v, now))
	fmt.Fprintf(out, "Trials      %s\n", countsLine(v))
	if best, ok := v.best(); ok {
		fmt.Fprintf(out, "Best        %s  %s\n", best.Name, metricText(best))
		if len(best.Metrics) > 0 && best.Metrics[0].origin(v.BestStep) != "" {
			fmt.Fprintf(out, "            %s is %s\n", best.Metrics[0].Name, strings.Trim(best.Metrics[0].origin(v.BestStep), "()"))
		}
		fmt.Fprintf(out, "            %s\n", paramText(best.Params))
	}
	for i, c := range e.Spec.Constraints {
		fmt.Fprintf(out, "%-11s %s\n", []string{"Bounds", ""}[min(i, 1)], boundText(c))
	}
	for i, w := range e.Spec.WarmStartFrom {
		fmt.Fprintf(out, "%-11s %s\n", []string{"Warm start", ""}[min(i, 1)], w.Experiment)
	}
	for i, t := range v.front() {
		fmt.Fprintf(out, "%-11s %s  %s\n", []string{"Front", ""}[min(i, 1)], t.Name, metricText(t))
	}
	if waiting := v.waiting(); waiting != "" {
		fmt.Fprintf(out, "Waiting     %s\n", waiting)
	}
	if failure := firstFailure(v, false); failure != "" {
		fmt.Fprintf(out, "Failures    %s\n", failure[len("; "):])
	}
	if lacks := cmp.Or(v.lacks(), v.lacksYet()); lacks != "" {
		fmt.Fprintf(out, "Missing     %s\n", lacks)
	}
	fmt.Fprintln(out, "Parameters")
	t := &table{}
	for _, p := range e.Spec.Parameters {
		t.add("  "+p.Name, string(p.ParameterType), spaceText(p.FeasibleSpace))
	}
	_ = t.write(out, true)
	fmt.Fprintln(out, "Conditions")
	t = &table{}
	for _, c := range e.Status.Conditions {
		t.add("  "+string(c.Type), string(c.Status), c.Reason, age(now.Sub(c.LastTransitionTime.Time))+" ago", script.InFlags(e, v.brief(c.Message)))
	}
	_ = t.write(out, true)
}

func spaceText(s v1beta1.FeasibleSpace) string {
	if len(s.List) > 0 {
		return fmt.Sprint(s.List)
	}
	text := s.Min + " to " + s.Max
	if s.Step != "" {
		text += " by " + s.Step
	}
	if s.Distribution != "" && s.Distribution != v1beta1.DistributionUniform {
		text += ", " + string(s.Distribution)
	}
	return text
}

func describeTrial(out io.Writer, e *v1beta1.Experiment, t trialView, now time.Time) {
	fmt.Fprintf(out, "Trial       %s\n", t.Name)
	fmt.Fprintf(out, "State       %s\n", strings.TrimLeft(t.shownState(), "·✓✗■▶ "))
	if why := cmp.Or(t.Waits, t.Message); why != "" {
		fmt.Fprintf(out, "Why         %s\n", why)
	}
	fmt.Fprintf(out, "Time        %s\n", age(t.duration(now)))
	if command, err := commandLine(e, t); err == nil {
		fmt.Fprintf(out, "Command     %s\n", command)
	}
	fmt.Fprintln(out, "Parameters")
	rows := &table{}
	for _, p := range t.Params {
		rows.add("  "+p.Name, shownParam(p.Value))
	}
	_ = rows.write(out, true)
	fmt.Fprintln(out, "Metrics")
	rows = &table{}
	for _, m := range t.Metrics {
		rows.add("  "+m.Name, m.Value, m.origin(nil))
	}
	_ = rows.write(out, true)
	if t.Object == nil || len(t.Object.Status.Usage) == 0 {
		return
	}
	fmt.Fprintln(out, "Used, on average and at most")
	rows = &table{}
	for _, m := range t.Object.Status.Usage {
		rows.add("  "+m.Name, m.Value, m.Max)
	}
	_ = rows.write(out, true)
}

// describeEvents lists the events of one object, oldest first: not those of another that
// had its name.
func describeEvents(ctx context.Context, s *session, out io.Writer, kind string, object client.Object) error {
	var events corev1.EventList
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", kind),
		fields.OneTermEqualSelector("involvedObject.name", object.GetName()),
		fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID())),
	)
	if err := s.client.List(ctx, &events, client.InNamespace(s.namespace), client.MatchingFieldsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the events of %s %s: %w", kind, object.GetName(), err)
	}
	if len(events.Items) == 0 {
		return nil
	}
	fmt.Fprintln(out, "Events")
	t := &table{}
	for _, e := range events.Items {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		t.add("  "+at.Format(time.TimeOnly), e.Type, e.Reason, e.Message)
	}
	return t.write(out, true)
}
