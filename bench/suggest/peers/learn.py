"""Trains models of scikit-learn: the oracle of the suite S6.

JSON Lines on standard input and output:
{"task":{"model":"knn","data":"iris","metric":"nll"},"params":{...}} answers
{"values":[0.12]} or {"failed":true}. Equal questions have equal answers.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
from sklearn import datasets, ensemble, linear_model, neighbors, neural_network, svm, tree
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

LOADERS = {
    "breast": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}


def branches(p):
    return {
        "max_depth": p["max_depth"],
        "min_samples_split": p["min_samples_split"],
        "min_samples_leaf": p["min_samples_leaf"],
        "max_features": p["max_features"],
        "min_impurity_decrease": p["min_impurity_decrease"],
        "random_state": 0,
    }


def network(p, solver, **more):
    return {
        "hidden_layer_sizes": (p["units"],),
        "alpha": p["alpha"],
        "batch_size": p["batch"],
        "learning_rate_init": p["lr"],
        "activation": p["activation"],
        "solver": solver,
        "max_iter": 40,
        "random_state": 0,
        **more,
    }


def model(name, p, regression):
    if name == "knn":
        kind = neighbors.KNeighborsRegressor if regression else neighbors.KNeighborsClassifier
        return kind(n_neighbors=p["neighbors"], p=p["p"], weights=p["weights"])
    if name == "svm":
        if regression:
            return svm.SVR(C=p["c"], gamma=p["gamma"], tol=p["tol"], epsilon=p["epsilon"], max_iter=20000)
        return svm.SVC(C=p["c"], gamma=p["gamma"], tol=p["tol"], probability=True, random_state=0, max_iter=20000)
    if name == "tree":
        return (tree.DecisionTreeRegressor if regression else tree.DecisionTreeClassifier)(**branches(p))
    if name == "forest":
        kind = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
        return kind(n_estimators=10, bootstrap=p["bootstrap"] == "yes", **branches(p))
    if name.startswith("mlp"):
        kind = neural_network.MLPRegressor if regression else neural_network.MLPClassifier
        if name == "mlp-adam":
            return kind(**network(p, "adam", beta_1=p["beta1"], epsilon=p["epsilon"]))
        return kind(**network(p, "sgd", momentum=p["momentum"], learning_rate=p["schedule"]))
    if name == "ada":
        kind = ensemble.AdaBoostRegressor if regression else ensemble.AdaBoostClassifier
        return kind(n_estimators=p["trees"], learning_rate=p["lr"], random_state=0)
    if regression:
        kind = linear_model.Lasso if name == "lasso" else linear_model.Ridge
        return kind(alpha=p["strength"])
    return linear_model.LogisticRegression(
        penalty="l1" if name == "lasso" else "l2", solver="liblinear", C=1 / p["strength"],
        intercept_scaling=p["scaling"], max_iter=200, random_state=0)


def kernel(p, regression):
    common = {
        "kernel": p["kernel"],
        "C": p["c"],
        "gamma": p.get("gamma", "scale"),
        "degree": p.get("degree", 3),
        "coef0": p.get("coef0", 0.0),
        "tol": p.get("tol", 1e-3),
        "max_iter": 5000,
    }
    return svm.SVR(**common) if regression else svm.SVC(probability=True, random_state=0, **common)


def net(p, regression):
    kind = neural_network.MLPRegressor if regression else neural_network.MLPClassifier
    return kind(
        hidden_layer_sizes=tuple(p[f"units{i + 1}"] for i in range(p["layers"])),
        activation=p["activation"], solver=p["solver"], learning_rate_init=p["lr"], batch_size=p["batch"],
        beta_1=p.get("beta1", 0.9), momentum=p.get("momentum", 0.9), learning_rate=p.get("schedule", "constant"),
        alpha=p["alpha"], max_iter=20, random_state=0)


def conditional(name, p, regression):
    """A model whose space has conditions; inactive parameters are not in p."""
    if name == "net":
        return net(p, regression)
    if name == "kernel" or p["model"] == "kernel":
        return kernel(p, regression)
    if p["model"] == "forest":
        kind = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
        return kind(n_estimators=20, max_depth=p["depth"], max_features=p["features"], min_samples_leaf=p["leaf"],
                    bootstrap=p["bootstrap"] == "yes", random_state=0)
    if p["model"] == "knn":
        return model("knn", p, regression)
    if regression:
        return linear_model.Ridge(alpha=p["strength"])
    return linear_model.LogisticRegression(C=1 / p["strength"], max_iter=200, random_state=0)


SCALES = {"standard": StandardScaler, "range": MinMaxScaler, "none": FunctionTransformer}


class Oracle:
    def __init__(self):
        self.loaded = {}

    def load(self, name):
        """Four fifths of the data; the rest is never seen."""
        if name not in self.loaded:
            x, y = LOADERS[name](return_X_y=True)
            stratify = None if name == "diabetes" else y
            x, _, y, _ = train_test_split(x, y, test_size=0.2, random_state=0, stratify=stratify)
            if name == "diabetes":
                y = (y - y.mean()) / y.std()
            self.loaded[name] = x, y
        return self.loaded[name]

    def loss(self, task, params):
        regression = task["data"] == "diabetes"
        x, y = self.load(task["data"])
        if task["model"] in ("net", "kernel", "choice"):
            train, test, y_train, y_test = train_test_split(
                x, y, train_size=min(500, 2 * len(y) // 3), random_state=1, stratify=None if regression else y)
            m = make_pipeline(SCALES[params["scale"]](), conditional(task["model"], params, regression))
            m.fit(train, y_train)
            return self.measure(task["metric"], m, test, y_test, np.unique(y))
        folds = KFold(5) if regression else StratifiedKFold(5)
        losses = []
        for train, test in folds.split(x, y):
            m = make_pipeline(StandardScaler(), model(task["model"], params, regression))
            if task["model"] in ("lasso", "linear") and not regression and len(np.unique(y)) > 2:
                from sklearn.multiclass import OneVsRestClassifier
                m = OneVsRestClassifier(m)
            m.fit(x[train], y[train])
            losses.append(self.measure(task["metric"], m, x[test], y[test], np.unique(y)))
        return float(np.mean(losses))

    @staticmethod
    def measure(metric, m, x, y, labels):
        if metric == "acc":
            return 1 - accuracy_score(y, m.predict(x))
        if metric == "nll":
            return log_loss(y, m.predict_proba(x), labels=labels)
        return (mean_absolute_error if metric == "mae" else mean_squared_error)(y, m.predict(x))


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    oracle = Oracle()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            value = oracle.loss(question["task"], question["params"])
            answer = {"values": [value]} if np.isfinite(value) else {"failed": True}
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            # A training that breaks is a failed trial, as anywhere.
            print(question, error, file=sys.stderr)
            answer = {"failed": True}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
