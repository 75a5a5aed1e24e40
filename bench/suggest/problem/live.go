package problem

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// Task is a model and a data set of a Python package, which peers/learn.py trains.
type Task struct {
	// Model, Data and Metric are names that the program knows.
	Model  string `json:"model"`
	Data   string `json:"data"`
	Metric string `json:"metric"`
}

// Trainings take under a second each. Most spaces have categories and conditions,
// as those that people tune. The loss is of one split of the data: rough, in steps
// where it is an error rate, and huge or missing where a learning rate diverges. The
// optimum is not known.
func Trainings() []*Problem {
	var out []*Problem
	add := func(verdict func(family string) bool, tasks ...Task) {
		for _, task := range tasks {
			family := task.Model + "-" + task.Data
			out = append(out, &Problem{
				Name: family + "-" + task.Metric, Suite: Live, Family: family,
				Parameters: liveSpace(task.Model), Task: &task, Verdict: verdict(family),
			})
		}
	}
	half := func(is bool) func(string) bool { return func(string) bool { return is } }
	// Algorithms were tuned on these eight before the halves were drawn, and on none
	// of the next four.
	add(half(false),
		Task{"net", "breast", "nll"}, Task{"net", "diabetes", "mse"}, Task{"kernel", "digits", "acc"}, Task{"kernel", "breast", "nll"},
		Task{"kernel", "diabetes", "mae"}, Task{"choice", "digits", "nll"}, Task{"choice", "breast", "acc"}, Task{"choice", "wine", "nll"})
	add(half(true),
		Task{"net", "digits", "acc"}, Task{"net", "wine", "nll"}, Task{"kernel", "wine", "nll"}, Task{"choice", "diabetes", "mse"})
	add(verdict,
		Task{"boost", "breast", "nll"}, Task{"boost", "diabetes", "mse"}, Task{"boost", "anes", "nll"}, Task{"boost", "randhie", "mse"},
		Task{"sgd", "digits", "acc"}, Task{"sgd", "fair", "nll"}, Task{"sgd", "diabetes", "mae"}, Task{"sgd", "wine", "nll"},
		Task{"pipe", "digits", "acc"}, Task{"pipe", "breast", "nll"}, Task{"pipe", "randhie", "mae"}, Task{"pipe", "fair", "acc"},
		Task{"net", "anes", "nll"}, Task{"net", "randhie", "mse"}, Task{"kernel", "fair", "nll"}, Task{"choice", "anes", "acc"})
	return out
}

// liveSteps is the length of a full training in LiveCurves: epochs of a network, or
// boosting rounds, three at a time.
const liveSteps = 27

// CurveTrainings are networks and boosted trees whose loss is seen after each step. What was
// chosen on them is in docs/benchmarks.md.
func CurveTrainings() []*Problem {
	var out []*Problem
	for _, model := range []string{"net", "boost"} {
		for _, data := range [][2]string{{"anes", "nll"}, {"breast", "nll"}, {"diabetes", "mse"}, {"digits", "nll"}, {"fair", "nll"}, {"randhie", "mse"}, {"wine", "nll"}} {
			family := "curve-" + model + "-" + data[0]
			out = append(out, &Problem{
				Name: family + "-" + data[1], Suite: LiveCurves, Family: family, Curve: &Curve{Steps: liveSteps},
				Parameters: curveSpace(model),
				Task:       &Task{model, data[0], data[1]},
			})
		}
	}
	return out
}

// curveSpace has no number of trees, which is that of the steps, and not the boosting that
// scales old trees again in each round: a model cut short is not what it was then.
func curveSpace(model string) []suggest.ParameterSpec {
	out := slices.DeleteFunc(liveSpace(model), func(p suggest.ParameterSpec) bool {
		return p.Name == "trees" || p.When != nil && p.When.Parameter == "boosting"
	})
	for i := range out {
		if out[i].Name == "boosting" {
			out[i] = choice("boosting", "gbdt", "rf")
		}
	}
	return out
}

func liveSpace(model string) []suggest.ParameterSpec {
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
	case "boost":
		return []suggest.ParameterSpec{
			choice("boosting", "gbdt", "dart", "rf"), choice("sampling", "bagging", "goss"), logarithmic("lr", 1e-3, 2), wholeLog("trees", 5, 100),
			wholeLog("leaves", 2, 128), wholeLog("least", 1, 100), double("features", 0.1, 1), logarithmic("l2", 1e-6, 100),
			when(double("rows", 0.2, 0.99), "sampling", "bagging"), when(double("top", 0.05, 0.5), "sampling", "goss"),
			when(double("drop", 0, 0.8), "boosting", "dart"), when(choice("uniform", "yes", "no"), "boosting", "dart"),
		}
	case "sgd":
		return []suggest.ParameterSpec{
			choice("penalty", "l2", "l1", "elasticnet", "none"), when(logarithmic("alpha", 1e-8, 1), "penalty", "l2", "l1", "elasticnet"),
			when(double("ratio", 0, 1), "penalty", "elasticnet"), choice("robust", "yes", "no"), choice("average", "yes", "no"),
			choice("schedule", "constant", "invscaling", "adaptive"), logarithmic("eta", 1e-6, 10),
			when(double("power", 0.05, 1), "schedule", "invscaling"), whole("epochs", 1, 20), scale,
		}
	case "pipe":
		return []suggest.ParameterSpec{
			scale, choice("reduce", "none", "pca", "select", "nystroem"), when(double("share", 0.05, 1), "reduce", "pca", "select"),
			when(choice("whiten", "yes", "no"), "reduce", "pca"), when(wholeLog("components", 2, 200), "reduce", "nystroem"),
			when(logarithmic("gamma", 1e-5, 10), "reduce", "nystroem"), choice("model", "linear", "knn", "forest"),
			when(logarithmic("strength", 1e-5, 1e3), "model", "linear"), when(whole("neighbors", 1, 40), "model", "knn"),
			when(choice("weights", "uniform", "distance"), "model", "knn"), when(whole("p", 1, 4), "model", "knn"),
			when(whole("depth", 1, 16), "model", "forest"), when(double("features", 0.05, 1), "model", "forest"),
			when(double("leaf", 0.001, 0.3), "model", "forest"), when(choice("bootstrap", "yes", "no"), "model", "forest"),
		}
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
