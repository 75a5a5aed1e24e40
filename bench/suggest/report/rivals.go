package report

import "slices"

// rivals are what other tuners have in the place of a method of ours. They are
// fixed, so that they cannot be chosen after a run.
func rivals(method string) []string {
	processes := []string{"optuna-gp", "optuna-gp-deterministic", "ax-default", "hebo-default", "vizier-default", "skopt-gp", "smac-gp", "smac-forest", "bayesopt-default"}
	return map[string][]string{
		"tpe":                  {"optuna-tpe", "hyperopt-tpe", "goptuna-tpe"},
		"multivariate-tpe":     {"optuna-tpe", "optuna-tpe-group"},
		"cmaes":                {"optuna-cmaes", "goptuna-cmaes", "cmaes-bipop", "cmaes-margin"},
		"bayesianoptimization": processes,
		"auto":                 slices.Concat([]string{"optuna-auto", "nevergrad-ngopt"}, processes),
		"nsga2":                {"optuna-nsga2"},
		"asha":                 {"synetune-asha", "optuna-random+asha"},
		"auto+asha":            {"optuna-tpe+asha"},
		"mobster":              {"synetune-mobster", "synetune-hypertune", "optuna-tpe+asha"},
		"hyperband":            {"optuna-tpe+hyperband"},
		"dehb":                 {"dehb-default"},
		"bohb":                 {"synetune-bohb", "optuna-tpe+hyperband"},
	}[method]
}
