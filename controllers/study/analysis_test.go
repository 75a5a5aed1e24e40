package study

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// A point that a user queued has no resource recorded: what it trains for is its own value of
// the parameter. The algorithm sees what was recorded.
func TestTheResourceIsTheValueOfItsParameter(t *testing.T) {
	s, err := New(overRates(func(e *v1beta1.Experiment) {
		e.Spec.Parameters = append(e.Spec.Parameters, whole("epochs", "1", "27", nil))
		e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "auto", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	given, queued, without := result(1, "loss", "1"), result(2, "loss", "2"), at("0.3", result(3, "loss", "3"))
	given.Annotations = map[string]string{v1beta1.AnnotationResource: "9"}
	given.Spec.ParameterAssignments, queued.Spec.ParameterAssignments = assigned("lr", "0.1", "epochs", "9"), assigned("lr", "0.2", "epochs", "3")
	s.Update([]*v1beta1.Trial{given, queued, without})
	var analyzed, asked []float64
	for i, trial := range s.Analyzed().Trials {
		analyzed, asked = append(analyzed, trial.Resource), append(asked, s.question().Trials[i].Resource)
	}
	if diff := cmp.Diff([]float64{9, 3, 0}, analyzed) + cmp.Diff([]float64{9, 0, 0}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
