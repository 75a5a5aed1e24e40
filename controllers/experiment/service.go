package experiment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// servicePause is when a caller of the API may ask again while a service is asked.
const servicePause = time.Second

// waitError is what new trials wait for until the Suggestion changes.
type waitError struct{ message string }

func (e *waitError) Error() string { return e.message }

// fromService takes the trials that a wants from the Suggestion of the experiment, whose
// controller asks the service of the algorithm. It requests those that are not there.
// errLearning means that they come later: the Suggestion changes then.
func (c *Controller) fromService(ctx context.Context, exp *v1beta1.Experiment, a actions) ([]study.Proposal, error) {
	s := &v1beta1.Suggestion{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(exp), s)
	if apierrors.IsNotFound(err) {
		return nil, errLearning // it is about to be made
	}
	if err != nil {
		return nil, fmt.Errorf("read the suggestion of experiment %s/%s: %w", exp.Namespace, exp.Name, err)
	}
	if !metav1.IsControlledBy(s, exp) {
		return nil, &waitError{fmt.Sprintf("the suggestion %s/%s is that of a deleted experiment of this name, or of another client: once it is deleted, the algorithm's service is asked", exp.Namespace, exp.Name)}
	}
	if failed := s.Condition(v1beta1.SuggestionFailed); failed != nil && failed.Status == corev1.ConditionTrue {
		return nil, &fatalError{failed.Message}
	}
	var out []study.Proposal
	oldest := int(s.Status.SuggestionCount) - len(s.Status.Suggestions)
	for i, p := range s.Status.Suggestions {
		if n := oldest + i; n == a.first+len(out) && len(out) < a.add {
			out = append(out, study.Proposal{Assignments: p.ParameterAssignments, Name: p.Name, Labels: p.Labels})
		}
	}
	if want := int32(a.first + a.add); s.Spec.Requests < want {
		s.Spec.Requests = want
		if err := c.Client.Update(ctx, s); err != nil && !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("request trials from the algorithm's service: %w", err)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if ready := s.Condition(v1beta1.SuggestionDeploymentReady); ready != nil && ready.Status == corev1.ConditionFalse && ready.Message != "" {
		return nil, &waitError{ready.Message}
	}
	return nil, errLearning
}

// answered passes a Suggestion on when its service has answered, or cannot.
func answered() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1beta1.Suggestion)
		after, ok2 := e.ObjectNew.(*v1beta1.Suggestion)
		if !ok1 || !ok2 || study.KnownAlgorithm(after.AlgorithmName()) {
			return false
		}
		return before.Status.SuggestionCount != after.Status.SuggestionCount || len(before.Status.Conditions) != len(after.Status.Conditions) ||
			len(after.Status.Conditions) > 0 && before.Status.Conditions[len(before.Status.Conditions)-1] != after.Status.Conditions[len(after.Status.Conditions)-1]
	}, CreateFunc: func(e event.CreateEvent) bool {
		s, ok := e.Object.(*v1beta1.Suggestion)
		return ok && !study.KnownAlgorithm(s.AlgorithmName())
	}, DeleteFunc: func(event.DeleteEvent) bool { return false }}
}
