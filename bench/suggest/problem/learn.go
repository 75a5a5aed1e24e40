package problem

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// Task is a model of scikit-learn on one of its data sets, which a program in
// Python trains: the loss is the mean over five folds.
type Task struct {
	// Model, Data and Metric are names that the program knows.
	Model  string `json:"model"`
	Data   string `json:"data"`
	Metric string `json:"metric"`
	// Small ones take less than about 50 ms.
	Small bool `json:"-"`
}

// learningProblems are the suite S6, in the spirit of bayesmark: its models and
// data sets, with search spaces of our own around what is usually tuned. The
// optimum is not known.
func learningProblems() []*Problem {
	small := []string{"knn-iris-nll", "svm-wine-nll", "tree-breast-acc", "lasso-breast-nll", "ada-iris-nll", "linear-wine-nll"}
	var out []*Problem
	for _, model := range []string{"knn", "svm", "tree", "forest", "mlp-adam", "mlp-sgd", "ada", "lasso", "linear"} {
		for _, set := range []struct {
			data    string
			metrics []string
		}{
			{"breast", []string{"acc", "nll"}},
			{"diabetes", []string{"mae", "mse"}},
			{"digits", []string{"acc", "nll"}},
			{"iris", []string{"acc", "nll"}},
			{"wine", []string{"acc", "nll"}},
		} {
			for _, metric := range set.metrics {
				name := model + "-" + set.data + "-" + metric
				out = append(out, &Problem{
					Name: name, Suite: Learning, Family: model + "-" + set.data, Optimum: unknown,
					Parameters: modelSpace(model, set.data == "diabetes"),
					Task:       &Task{Model: model, Data: set.data, Metric: metric, Small: slices.Contains(small, name)},
				})
			}
		}
	}
	return out
}

func modelSpace(model string, regression bool) []suggest.ParameterSpec {
	branches := []suggest.ParameterSpec{
		whole("max_depth", 1, 16), double("min_samples_split", 0.005, 0.5), double("min_samples_leaf", 0.001, 0.3),
		double("max_features", 0.05, 1), logarithmic("min_impurity_decrease", 1e-6, 0.1),
	}
	network := []suggest.ParameterSpec{
		wholeLog("units", 8, 128), logarithmic("alpha", 1e-6, 10), wholeLog("batch", 8, 256), logarithmic("lr", 1e-5, 0.3),
		choice("activation", "relu", "tanh", "logistic"),
	}
	switch model {
	case "knn":
		return []suggest.ParameterSpec{whole("neighbors", 1, 30), whole("p", 1, 4), choice("weights", "uniform", "distance")}
	case "svm":
		parameters := []suggest.ParameterSpec{logarithmic("c", 1e-2, 1e3), logarithmic("gamma", 1e-5, 1), logarithmic("tol", 1e-5, 0.1)}
		if regression {
			parameters = append(parameters, logarithmic("epsilon", 1e-3, 1))
		}
		return parameters
	case "tree":
		return branches
	case "forest":
		return append(branches, choice("bootstrap", "yes", "no"))
	case "mlp-adam":
		return append(network, double("beta1", 0.5, 0.99), logarithmic("epsilon", 1e-9, 1e-5))
	case "mlp-sgd":
		return append(network, double("momentum", 0, 0.99), choice("schedule", "constant", "invscaling", "adaptive"))
	case "ada":
		return []suggest.ParameterSpec{whole("trees", 5, 60), logarithmic("lr", 1e-3, 10)}
	case "lasso":
		return []suggest.ParameterSpec{logarithmic("strength", 1e-4, 1e3), double("scaling", 0.1, 10)}
	}
	return []suggest.ParameterSpec{logarithmic("strength", 1e-6, 1e3), double("scaling", 0.1, 10)}
}
