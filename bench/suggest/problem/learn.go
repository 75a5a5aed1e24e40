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
	return append(out, conditionalProblems()...)
}

// conditionalProblems are trainings whose spaces have categories and conditions,
// as those that people tune. The loss is of one split: rough, and in steps where
// it is an error rate.
func conditionalProblems() []*Problem {
	var out []*Problem
	for _, task := range []Task{
		{Model: "net", Data: "digits", Metric: "acc"},
		{Model: "net", Data: "breast", Metric: "nll"},
		{Model: "net", Data: "wine", Metric: "nll"},
		{Model: "net", Data: "diabetes", Metric: "mse"},
		{Model: "kernel", Data: "digits", Metric: "acc"},
		{Model: "kernel", Data: "breast", Metric: "nll"},
		{Model: "kernel", Data: "wine", Metric: "nll"},
		{Model: "kernel", Data: "diabetes", Metric: "mae"},
		{Model: "choice", Data: "digits", Metric: "nll"},
		{Model: "choice", Data: "breast", Metric: "acc"},
		{Model: "choice", Data: "wine", Metric: "nll"},
		{Model: "choice", Data: "diabetes", Metric: "mse"},
	} {
		out = append(out, &Problem{
			Name: task.Model + "-" + task.Data + "-" + task.Metric, Suite: Learning, Family: task.Model + "-" + task.Data,
			Optimum: unknown, Parameters: conditionalSpace(task.Model), Task: &task,
		})
	}
	return out
}

func conditionalSpace(model string) []suggest.ParameterSpec {
	scale := choice("scale", "standard", "range", "none")
	kernel := []suggest.ParameterSpec{
		logarithmic("c", 1e-3, 1e3), choice("kernel", "rbf", "poly", "sigmoid", "linear"),
		when(logarithmic("gamma", 1e-5, 10), "kernel", "rbf", "poly", "sigmoid"),
		when(whole("degree", 2, 5), "kernel", "poly"),
		when(double("coef0", 0, 2), "kernel", "poly", "sigmoid"),
	}
	switch model {
	case "net":
		return []suggest.ParameterSpec{
			whole("layers", 1, 3), wholeLog("units1", 4, 64), when(wholeLog("units2", 4, 64), "layers", "2", "3"),
			when(wholeLog("units3", 4, 64), "layers", "3"), choice("activation", "relu", "tanh", "logistic"),
			choice("solver", "adam", "sgd"), logarithmic("lr", 1e-5, 1), wholeLog("batch", 16, 256),
			when(double("beta1", 0.5, 0.99), "solver", "adam"), when(double("momentum", 0, 0.99), "solver", "sgd"),
			when(choice("schedule", "constant", "invscaling", "adaptive"), "solver", "sgd"),
			logarithmic("alpha", 1e-6, 10), scale,
		}
	case "kernel":
		return append(kernel, scale, logarithmic("tol", 1e-5, 0.1))
	}
	out := []suggest.ParameterSpec{choice("model", "kernel", "forest", "knn", "linear"), scale}
	for _, p := range kernel {
		if p.When == nil {
			p = when(p, "model", "kernel")
		}
		out = append(out, p)
	}
	return append(out,
		when(whole("depth", 1, 16), "model", "forest"), when(double("features", 0.05, 1), "model", "forest"),
		when(double("leaf", 0.001, 0.3), "model", "forest"), when(choice("bootstrap", "yes", "no"), "model", "forest"),
		when(whole("neighbors", 1, 40), "model", "knn"), when(choice("weights", "uniform", "distance"), "model", "knn"),
		when(whole("p", 1, 4), "model", "knn"), when(logarithmic("strength", 1e-5, 1e3), "model", "linear"),
	)
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
