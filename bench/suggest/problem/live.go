package problem

import "github.com/vernier-ml/vernier/suggest"

// Task is a model of scikit-learn on one of its data sets, which peers/learn.py
// trains.
type Task struct {
	// Model, Data and Metric are names that the program knows.
	Model  string `json:"model"`
	Data   string `json:"data"`
	Metric string `json:"metric"`
	// Aside: no algorithm was tuned on it, or chosen by it.
	Aside bool `json:"-"`
}

// Trainings are those of scikit-learn's models, whose spaces have categories and conditions, as those
// that people tune. The loss is of one split of the data: rough, and in steps where
// it is an error rate. The optimum is not known.
func Trainings() []*Problem {
	var out []*Problem
	for _, task := range []Task{
		{Model: "net", Data: "digits", Metric: "acc", Aside: true},
		{Model: "net", Data: "breast", Metric: "nll"},
		{Model: "net", Data: "wine", Metric: "nll", Aside: true},
		{Model: "net", Data: "diabetes", Metric: "mse"},
		{Model: "kernel", Data: "digits", Metric: "acc"},
		{Model: "kernel", Data: "breast", Metric: "nll"},
		{Model: "kernel", Data: "wine", Metric: "nll", Aside: true},
		{Model: "kernel", Data: "diabetes", Metric: "mae"},
		{Model: "choice", Data: "digits", Metric: "nll"},
		{Model: "choice", Data: "breast", Metric: "acc"},
		{Model: "choice", Data: "wine", Metric: "nll"},
		{Model: "choice", Data: "diabetes", Metric: "mse", Aside: true},
	} {
		out = append(out, &Problem{
			Name: task.Model + "-" + task.Data + "-" + task.Metric, Suite: Live, Family: task.Model + "-" + task.Data,
			Parameters: liveSpace(task.Model), Task: &task,
		})
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
