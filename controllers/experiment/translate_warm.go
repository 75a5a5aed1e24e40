package experiment

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// warm are the trials of the experiments that exp names in warmStartFrom. Before
// its first trial each must exist, and have something to learn from when it has
// ended; later one that was deleted is done without.
func (c *Controller) warm(ctx context.Context, exp *v1beta1.Experiment, m *searcher, first bool) ([]suggest.Trial, error) {
	var out []suggest.Trial
	for i, w := range exp.Spec.WarmStartFrom {
		at := fmt.Sprintf("experiment %q of spec.warmStartFrom[%d]", w.Experiment, i)
		other := &v1beta1.Experiment{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: w.Experiment}, other)
		switch {
		case apierrors.IsNotFound(err) && !first:
			continue
		case apierrors.IsNotFound(err) && c.Now().Sub(exp.CreationTimestamp.Time) > applyPatience:
			return nil, &fatalError{fmt.Sprintf("%s is not in namespace %s: create this experiment again without the entry, or with another name", at, exp.Namespace)}
		case err != nil:
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		trials, err := c.trials(ctx, other)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		learnt, outside := m.warmTrials(&exp.Spec, w.Experiment, trials)
		switch {
		case !first || len(learnt) > 0 || !other.IsCompleted():
		case outside > 0:
			return nil, &fatalError{fmt.Sprintf("%s has ended, and none of its %d trials has a value that this one allows for each of its parameters (%s): name one that did, or widen the parameters",
				at, len(trials), parameterNames(&exp.Spec))}
		default:
			return nil, &fatalError{fmt.Sprintf("%s has ended, and none of its %d trials measured the objectives of this one (%s): name one that did",
				at, len(trials), objectiveNames(&exp.Spec))}
		}
		out = append(out, learnt...)
	}
	return out, nil
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
