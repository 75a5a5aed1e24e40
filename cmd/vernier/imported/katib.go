package imported

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// readKatib reads an Experiment and its Trials as kubectl prints them: kubectl get
// experiment,trial -o yaml.
func readKatib(path string, o Options) (*Study, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []unstructured.Unstructured `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	exp, err := katibExperiment(list.Items, o.Study)
	if err != nil {
		return nil, err
	}
	s := &Study{Name: exp.Name, Parameters: exp.Spec.Parameters, Objectives: exp.Spec.AllObjectives()}
	for _, name := range exp.Spec.Objective.AdditionalMetricNames {
		if !s.isMetric(name) { // of several objectives, all but the first are there too
			s.Metrics = append(s.Metrics, name)
		}
	}
	for _, item := range list.Items {
		if item.GetKind() != "Trial" || item.GetNamespace() != exp.Namespace || !ownedBy(item, exp.Name) {
			continue
		}
		var t v1beta1.Trial
		if err := convert(item, &t); err != nil {
			return nil, err
		}
		s.add(katibTrial(exp, &t))
	}
	s.conditions()
	return s, nil
}

// katibExperiment is the only Experiment, or the one of a name.
func katibExperiment(items []unstructured.Unstructured, name string) (*v1beta1.Experiment, error) {
	var found *v1beta1.Experiment
	for _, item := range items {
		if item.GetKind() != "Experiment" || name != "" && item.GetName() != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("it has the experiments %s and %s: say which, with --study", found.Name, item.GetName())
		}
		found = &v1beta1.Experiment{}
		if err := convert(item, found); err != nil {
			return nil, err
		}
	}
	if found == nil || found.Spec.Objective == nil {
		return nil, errors.New("there is no Experiment with an objective in its items: write it with kubectl get experiments.kubeflow.org,trials.kubeflow.org -o yaml")
	}
	return found, nil
}

func ownedBy(o unstructured.Unstructured, experiment string) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == "Experiment" && owner.Name == experiment {
			return true
		}
	}
	return false
}

func convert(from unstructured.Unstructured, to any) error {
	text, err := from.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", from.GetKind(), from.GetName(), err)
	}
	return nil
}

func katibTrial(exp *v1beta1.Experiment, t *v1beta1.Trial) Trial {
	out := Trial{ID: t.Name, Params: map[string]string{}, Values: map[string]float64{}}
	if t.IsCompleted() {
		out.State = state(string(t.State()))
	}
	for _, a := range t.Spec.ParameterAssignments {
		out.Params[a.Name] = a.Value
	}
	if t.Status.StartTime != nil {
		out.Started = t.Status.StartTime.Time
	}
	if t.Status.CompletionTime != nil {
		out.Ended = t.Status.CompletionTime.Time
	}
	if t.Status.Observation == nil {
		return out
	}
	types := map[string]v1beta1.ObjectiveType{}
	for _, name := range exp.Spec.Objective.AdditionalMetricNames {
		types[name] = exp.Spec.Objective.Type
	}
	for _, o := range exp.Spec.AllObjectives() {
		types[o.ObjectiveMetricName] = o.Type
	}
	for _, m := range t.Status.Observation.Metrics {
		if v, err := strconv.ParseFloat(katibValue(exp, m, types[m.Name]), 64); err == nil && types[m.Name] != "" {
			out.Values[m.Name] = v
		}
	}
	return out
}

// katibValue is what counts of a metric: by default the best value that was reported.
func katibValue(exp *v1beta1.Experiment, m v1beta1.Metric, kind v1beta1.ObjectiveType) string {
	for _, strategy := range exp.Spec.Objective.MetricStrategies {
		switch {
		case strategy.Name != m.Name:
		case strategy.Value == v1beta1.ExtractByLatest:
			return m.Latest
		case strategy.Value == v1beta1.ExtractByMin:
			return m.Min
		case strategy.Value == v1beta1.ExtractByMax:
			return m.Max
		}
	}
	if kind == v1beta1.ObjectiveTypeMaximize {
		return m.Max
	}
	return m.Min
}
