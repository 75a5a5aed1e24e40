package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// warm gives the study the trials of the experiments that exp names in
// warmStartFrom. Before its first trial each must exist, and have something to
// learn from when it has ended; later one that was deleted is done without.
func (c *Controller) warm(ctx context.Context, exp *v1beta1.Experiment, s *study.Study, first bool) error {
	var earlier []study.Earlier
	var refused []error // what to say of one of earlier when nothing can be learned from it
	for i, w := range exp.Spec.WarmStartFrom {
		at := fmt.Sprintf("experiment %q of spec.warmStartFrom[%d]", w.Experiment, i)
		other := &v1beta1.Experiment{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: w.Experiment}, other)
		switch {
		case apierrors.IsNotFound(err) && !first:
			continue
		case apierrors.IsNotFound(err) && c.Now().Sub(exp.CreationTimestamp.Time) > applyPatience:
			return &fatalError{fmt.Sprintf("%s is not in namespace %s: create this experiment again without the entry, or with another name", at, exp.Namespace)}
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		}
		trials, err := c.Trials.Of(ctx, other)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		earlier = append(earlier, study.Earlier{WarmStart: w, Trials: trials})
		refused = append(refused, nil)
		if first && other.IsCompleted() {
			refused[len(refused)-1] = fmt.Errorf("%s has ended, and none of its %d trials", at, len(trials))
		}
	}
	for i, learned := range s.Warm(earlier) {
		switch why := refused[i]; {
		case why == nil || learned.Trials > 0:
		case learned.Outside > 0 && len(missing(&exp.Spec, earlier[i])) > 0:
			return &fatalError{fmt.Sprintf("%v has a value of the parameter %s: say which value they had, in parameterAssignments beside the experiment's name",
				why, strings.Join(missing(&exp.Spec, earlier[i]), ", "))}
		case learned.Outside > 0:
			return &fatalError{fmt.Sprintf("%v has a value that this one allows for each of its parameters (%s): name one that did, or widen the parameters",
				why, parameterNames(&exp.Spec))}
		default:
			return &fatalError{fmt.Sprintf("%v measured the objectives of this one (%s): name one that did", why, objectiveNames(&exp.Spec))}
		}
	}
	return nil
}

// missing are the parameters, other than conditional ones, that no trial has a value
// of and none is assumed of.
func missing(spec *v1beta1.ExperimentSpec, e study.Earlier) (names []string) {
	for _, p := range spec.Parameters {
		isIt := func(a v1beta1.ParameterAssignment) bool { return a.Name == p.Name }
		has := func(t *v1beta1.Trial) bool { return slices.ContainsFunc(t.Spec.ParameterAssignments, isIt) }
		if p.When == nil && !slices.ContainsFunc(e.ParameterAssignments, isIt) && !slices.ContainsFunc(e.Trials, has) {
			names = append(names, p.Name)
		}
	}
	return names
}

func objectiveNames(spec *v1beta1.ExperimentSpec) string {
	var names []string
	for _, o := range spec.AllObjectives() {
		names = append(names, o.ObjectiveMetricName)
	}
	return strings.Join(names, ", ")
}

func parameterNames(spec *v1beta1.ExperimentSpec) string {
	var names []string
	for _, p := range spec.Parameters {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "those of nasConfig"
	}
	return strings.Join(names, ", ")
}
