package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// completionPatience bounds how long a shell waits for names.
const completionPatience = 3 * time.Second

// completeNames lets a shell complete the names of experiments, and after a slash those
// of trials, for each command that takes them.
func completeNames(root *cobra.Command, open opener) {
	for _, cmd := range root.Commands() {
		completeNames(cmd, open)
	}
	words := strings.Fields(root.Use)
	if len(words) < 2 || root.ValidArgsFunction != nil || !strings.Contains(words[1], "EXPERIMENT") {
		return
	}
	trials := strings.Contains(words[1], "/TRIAL")
	root.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		session, err := open(ctx, false)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if experiment, _, in := strings.Cut(begun, "/"); in && trials {
			return trialNames(ctx, session, experiment), cobra.ShellCompDirectiveNoFileComp
		}
		var list v1beta1.ExperimentList
		if err := session.client.List(ctx, &list, client.InNamespace(session.namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, e := range list.Items {
			names = append(names, e.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func trialNames(ctx context.Context, s *session, experiment string) []string {
	view, err := loadExperiment(ctx, s.client, s.key(experiment))
	if err != nil {
		return nil
	}
	names := []string{experiment + "/best", experiment + "/latest"}
	for _, t := range view.Trials {
		names = append(names, fmt.Sprintf("%s/%d\t%s %s", experiment, t.Number, t.State, shortNumber(t.objective())))
	}
	return names
}
