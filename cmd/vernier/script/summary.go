package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// summary is what makes two command lines the same search, each part by its name.
func (s Spec) summary() map[string]string {
	var parameters, objectives, settings []string
	for _, p := range s.Parameters {
		parameters = append(parameters, Form(p))
	}
	for _, o := range s.Objectives {
		text := string(o.Type) + " " + o.ObjectiveMetricName
		if o.Goal != nil {
			text += fmt.Sprintf(" to %g", *o.Goal)
		}
		objectives = append(objectives, text)
	}
	out := map[string]string{
		"program": strings.Join(s.Argv, " "), "directory": s.Dir, "parameters": strings.Join(parameters, " "),
		"objective": strings.Join(objectives, ", "), "algorithm": s.Algorithm, "pass": string(s.Pass),
		"metrics": strings.Join(append([]string{s.Metrics}, s.Filters...), " "), "stopping": s.Stopping.AlgorithmName,
		"gpus": fmt.Sprint(s.GPUs), "retry": fmt.Sprint(s.Retry),
	}
	for _, setting := range s.Stopping.AlgorithmSettings {
		out["stopping"] += " " + setting.Name + "=" + setting.Value
	}
	for _, setting := range s.Settings {
		settings = append(settings, setting.Name+"="+setting.Value)
	}
	if bounds := append(slices.Clone(s.Conditions), boundTexts(s.Bounds)...); len(bounds) > 0 {
		out["constraints"] = strings.Join(bounds, ", ")
	}
	if len(settings) > 0 {
		out["settings"] = strings.Join(settings, " ")
	}
	if len(s.Additional) > 0 {
		out["other metrics"] = strings.Join(s.Additional, ", ")
	}
	if len(s.WarmStart) > 0 {
		out["warm start"] = strings.Join(s.WarmStart, ", ")
	}
	if s.Seed != nil {
		out["seed"] = fmt.Sprint(*s.Seed)
	}
	return out
}

func boundTexts(bounds []v1beta1.MetricConstraint) (out []string) {
	for _, b := range bounds {
		if b.Min != nil {
			out = append(out, fmt.Sprintf("%s >= %g", b.MetricName, *b.Min))
		}
		if b.Max != nil {
			out = append(out, fmt.Sprintf("%s <= %g", b.MetricName, *b.Max))
		}
	}
	return out
}

// Differences says in what a command line differs from the one that made an
// experiment: "parameters: lr=log(1e-5,1e-1) there, lr=log(1e-4,1e-1) here".
func Differences(there, here *v1beta1.Experiment) ([]string, error) {
	var before, now map[string]string
	note := there.Annotations[Annotation]
	if note == "" {
		return []string{"it was made from a file"}, nil
	}
	if err := json.Unmarshal([]byte(note), &before); err != nil {
		return nil, fmt.Errorf("read the annotation %s of experiment %s: %w", Annotation, there.Name, err)
	}
	if err := json.Unmarshal([]byte(here.Annotations[Annotation]), &now); err != nil {
		return nil, fmt.Errorf("read the annotation %s: %w", Annotation, err)
	}
	var out []string
	for _, part := range []string{"program", "directory", "parameters", "objective", "other metrics", "constraints", "algorithm", "settings", "pass", "metrics", "stopping", "gpus", "retry", "seed", "warm start"} {
		if before[part] != now[part] {
			out = append(out, fmt.Sprintf("%s: %q there, %q here", part, before[part], now[part]))
		}
	}
	return out, nil
}
