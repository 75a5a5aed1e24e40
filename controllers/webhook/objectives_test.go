package webhook_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

const minimize, maximize = v1beta1.ObjectiveTypeMinimize, v1beta1.ObjectiveTypeMaximize

// objectives takes the place of the example's objective.
func objectives(all ...v1beta1.ObjectiveMetric) edit {
	return func(e *v1beta1.Experiment) { e.Spec.Objective, e.Spec.Objectives = nil, all }
}

func and(edits ...edit) edit {
	return func(e *v1beta1.Experiment) {
		for _, f := range edits {
			f(e)
		}
	}
}

func constraint(metric string, low, high *float64) edit {
	return func(e *v1beta1.Experiment) {
		e.Spec.Constraints = append(e.Spec.Constraints, v1beta1.MetricConstraint{MetricName: metric, Min: low, Max: high})
	}
}

func warm(names ...string) edit {
	return func(e *v1beta1.Experiment) {
		for _, n := range names {
			e.Spec.WarmStartFrom = append(e.Spec.WarmStartFrom, v1beta1.WarmStart{Experiment: n})
		}
	}
}

func TestFaultsOfObjectives(t *testing.T) {
	loss, speed := v1beta1.ObjectiveMetric{ObjectiveMetricName: "loss", Type: minimize}, v1beta1.ObjectiveMetric{ObjectiveMetricName: "speed", Type: maximize}
	beside := func(o v1beta1.ObjectiveSpec) edit {
		return and(objectives(loss, speed), func(e *v1beta1.Experiment) { e.Spec.Objective = &o })
	}
	checkFaults(t, map[string]faulty{
		"two objectives":                    {objectives(loss, speed), nil},
		"two objectives beside the first":   {beside(v1beta1.ObjectiveSpec{Type: minimize, ObjectiveMetricName: "loss"}), nil},
		"the same twice":                    {objectives(loss, loss), []string{`spec.objectives[1].objectiveMetricName: Duplicate value: "loss": is an objective already: remove one`}},
		"another objective beside them":     {beside(v1beta1.ObjectiveSpec{Type: minimize, ObjectiveMetricName: "acc"}), []string{`spec.objective.objectiveMetricName: Invalid value: "acc": must be the first of objectives, which is "loss"; or leave objective out`}},
		"another direction beside them":     {beside(v1beta1.ObjectiveSpec{Type: maximize, ObjectiveMetricName: "loss"}), []string{`spec.objective.type: Invalid value: "maximize": must be that of the first of objectives, which is "minimize"`}},
		"a goal beside them":                {beside(v1beta1.ObjectiveSpec{Goal: ptr(1.0)}), []string{"spec.objective.goal: Forbidden: give goals in objectives"}},
		"early stopping of several":         {and(objectives(loss, speed), stopping), []string{"spec.earlyStopping: Forbidden: a rule looks at one objective"}},
		"early stopping of one in the list": {and(objectives(loss), stopping), nil},
	})
}

func stopping(e *v1beta1.Experiment) {
	e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"}
}

func TestFaultsOfConstraints(t *testing.T) {
	checkFaults(t, map[string]faulty{
		"a bound":                 {constraint("memory", nil, ptr(16.0)), nil},
		"an exact value":          {constraint("memory", ptr(1.0), ptr(1.0)), nil},
		"two for the same metric": {and(constraint("memory", ptr(2.0), nil), constraint("memory", nil, ptr(9.0))), []string{`spec.constraints[1].metricName: Duplicate value: "memory": has bounds already: give min and max in one entry`}},
	})
}

// assuming is a warm start from trials that had a value of a parameter.
func assuming(name, value string) edit {
	return func(e *v1beta1.Experiment) {
		e.Spec.WarmStartFrom = []v1beta1.WarmStart{{Experiment: "earlier", ParameterAssignments: []v1beta1.ParameterAssignment{{Name: name, Value: value}}}}
		e.Spec.Algorithm.AlgorithmName = "tpe"
	}
}

func TestFaultsOfWarmStarts(t *testing.T) {
	checkFaults(t, map[string]faulty{
		"two":                            {warm("earlier", "earliest"), nil},
		"itself":                         {warm("random"), []string{`spec.warmStartFrom[0].experiment: Invalid value: "random": is this experiment: name an earlier one`}},
		"twice":                          {warm("earlier", "earlier"), []string{`spec.warmStartFrom[1].experiment: Duplicate value: "earlier": is named already: remove one`}},
		"a value":                        {assuming("lr", "0.02"), nil},
		"a value of no parameter":        {assuming("dropout", "0"), []string{`spec.warmStartFrom[0].parameterAssignments[0].name: Invalid value: "dropout": is no parameter of this experiment`}},
		"a value that the space has not": {assuming("lr", "7"), []string{`spec.warmStartFrom[0].parameterAssignments[0].value: Invalid value: "7": must be `}},
		"a namespace":                    {warm("ml/earlier"), []string{`spec.warmStartFrom[0].experiment: Invalid value: "ml/earlier": is no name of an experiment: write that of one in the same namespace, without the namespace`}},
	})
}

// Whole trials only are a surprise to those who asked for short ones; at an update it is too late.
func TestABudgetWithoutRoomForShortTrialsGetsAWarning(t *testing.T) {
	short := "are too few for short ones, so all will be whole: make the experiment again with a maxTrialCount of at least "
	tests := map[string]struct {
		algorithm     string
		max, parallel int32
		top           string
		update        bool
		want          []string
	}{
		"enough":                     {"auto", 14, 3, "27", false, nil},
		"too few trials":             {"auto", 11, 3, "27", false, []string{"spec.maxTrialCount: 11 trials, 3 at a time, " + short + "14"}},
		"too many at a time":         {"auto", 14, 5, "27", false, []string{"spec.maxTrialCount: 14 trials, 5 at a time, " + short + "16, or a parallelTrialCount of 3"}},
		"it is there already":        {"auto", 11, 3, "27", true, nil},
		"the range has no room":      {"auto", 11, 3, "2", false, []string{"spec.algorithm.algorithmSettings[0]: all trials get a resource of 2, as 1/3 of it is below the smallest one, 1: widen the range of momentum, or lower eta"}},
		"another algorithm has none": {"mobster", 11, 3, "27", false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			s := &exp.Spec
			s.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: tc.algorithm, AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: s.Parameters[1].Name}}}
			s.MaxTrialCount, s.ParallelTrialCount = &tc.max, &tc.parallel
			s.Parameters[1].ParameterType, s.Parameters[1].FeasibleSpace = v1beta1.ParameterTypeInt, v1beta1.FeasibleSpace{Min: "1", Max: tc.top}
			webhook.Default(exp)
			old := exp.DeepCopy()
			old.Spec.MaxFailedTrialCount = ptr(int32(1))
			if !tc.update {
				old = nil
			}
			warnings, errs := rules.Validate(exp, old)
			if diff := cmp.Diff(tc.want, warnings); diff != "" || len(errs) > 0 {
				t.Errorf("errors %v, warnings (-want +got)\n%s", errs, diff)
			}
		})
	}
}

// Katib sets the parameter to any resource, whatever its range.
func TestResourcesThatNoTrialCanHaveGetAWarning(t *testing.T) {
	tests := map[string]struct {
		setting, value string
		want           []string
	}{
		"a share of a whole": {"resource_name", "share", []string{"spec.algorithm.algorithmSettings[0]: all trials get the whole of share, as resources are whole numbers: let it count percent, from 10 to 100"}},
		"all can be had":     {"r_max", "27", nil},
		"too much":           {"r_l", "28", []string{"spec.algorithm.algorithmSettings[1]: r_l is 28, but epochs is at most 27, so no trial gets more: raise its max"}},
		"too little":         {"r_min", "2", []string{"spec.algorithm.algorithmSettings[1]: r_min is 2, but epochs is at least 3, so no trial gets less: lower its min"}},
		"no resource at all": {"eta", "2", nil},
		"no room":            {"eta", "10", []string{"spec.algorithm.algorithmSettings[0]: all trials get a resource of 27, as 1/10 of it is below the smallest one, 3: widen the range of epochs, or lower eta"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			s := &exp.Spec
			s.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "hyperband", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}, {Name: tc.setting, Value: tc.value}}}
			if tc.setting == "resource_name" {
				s.Algorithm.AlgorithmSettings = s.Algorithm.AlgorithmSettings[1:]
			}
			s.Parameters = append(s.Parameters, v1beta1.ParameterSpec{Name: "epochs", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "3", Max: "27"}},
				v1beta1.ParameterSpec{Name: "share", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0.1", Max: "1"}})
			webhook.Default(exp)
			warnings, _ := rules.Validate(exp, nil)
			got := slices.DeleteFunc(warnings, func(w string) bool { return !strings.Contains(w, "algorithmSettings") })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAlgorithmsThatIgnoreWhatIsGivenGetAWarning(t *testing.T) {
	two := objectives(v1beta1.ObjectiveMetric{ObjectiveMetricName: "loss", Type: minimize}, v1beta1.ObjectiveMetric{ObjectiveMetricName: "speed", Type: maximize})
	tests := map[string]struct {
		algorithm string
		edit      edit
		want      []string
	}{
		"random learns from no other experiment": {"random", warm("earlier"), []string{"spec.warmStartFrom: random does not learn from results, so this changes nothing"}},
		"tpe learns from other experiments":      {"tpe", warm("earlier"), nil},
		"cmaes looks at one objective":           {"cmaes", two, []string{"spec.objectives: cmaes goes by the first one; auto, nsga2 and others look for good trials in all"}},
		"tpe looks at two objectives":            {"tpe", two, nil},
		"cmaes' sigma is a part of the range": {"cmaes", func(e *v1beta1.Experiment) {
			e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "sigma", Value: "0.3"}}
		}, []string{"spec.algorithm.algorithmSettings[0]: sigma is a part of each parameter's range here, and not in the parameters' units as in Katib"}},
		"random looks at none": {"random", two, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			exp.Spec.Algorithm.AlgorithmName = tc.algorithm
			tc.edit(exp)
			webhook.Default(exp)
			warnings, errs := rules.Validate(exp, nil)
			if diff := cmp.Diff(tc.want, warnings); diff != "" || len(errs) > 0 {
				t.Errorf("errors %v, warnings (-want +got)\n%s", errs, diff)
			}
		})
	}
}
