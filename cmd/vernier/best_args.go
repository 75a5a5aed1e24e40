package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// arguments are the parameters of a trial for the command line of its program, as the
// template writes them: "--batch-size=64" for a parameter batch_size. One that the template
// hands over in another way is "--NAME=VALUE".
func arguments(e *v1beta1.Experiment, trial trialView) string {
	written := optionsOf(e, templateOf(e, trial))
	var words []string
	for _, p := range trial.Params {
		options := written[p.Name]
		if len(options) == 0 {
			options = []string{"--" + p.Name + "="}
		}
		for _, option := range options {
			words = append(words, option+shellQuote(p.Value))
		}
	}
	return strings.Join(words, " ")
}

// bareOption is an option without a value.
var bareOption = regexp.MustCompile(`^--?[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// optionsOf are what stands before the value of each parameter that has a word of its own
// in the template, or the word after an option: "--lr=", "lr=" or "--lr ".
func optionsOf(e *v1beta1.Experiment, template *corev1.Container) map[string][]string {
	out := map[string][]string{}
	if template == nil {
		return out
	}
	references := map[string]string{}
	for _, p := range e.Spec.TrialTemplate.TrialParameters {
		references[p.Name] = p.Reference
	}
	words := slices.Concat(template.Command, template.Args)
	for i, word := range words {
		before, rest, _ := strings.Cut(word, "${trialParameters.")
		name, whole := strings.CutSuffix(rest, "}")
		if !whole || strings.Contains(name, "}") {
			continue
		}
		parameter := cmp.Or(references[name], name)
		switch {
		case strings.HasSuffix(before, "=") && before != "=" && plainInShell.MatchString(before):
			out[parameter] = append(out[parameter], before)
		case before == "" && i > 0 && bareOption.MatchString(words[i-1]):
			out[parameter] = append(out[parameter], words[i-1]+" ")
		}
	}
	return out
}

// templateOf is the container that trains, with the placeholders of the parameters; nil
// where the trial or the template is not there.
func templateOf(e *v1beta1.Experiment, trial trialView) *corev1.Container {
	t := e.Spec.TrialTemplate
	if t == nil || trial.Object == nil {
		return nil
	}
	unfilled := *trial.Object
	unfilled.Spec.RunSpec = t.TrialSpec
	_, c := primaryOf(&unfilled)
	return c
}
