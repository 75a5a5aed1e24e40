"""Trains models of scikit-learn: the trials of the live suite.

JSON Lines on standard input and output:
{"task":{"model":"net","data":"wine","metric":"nll"},"params":{...}} answers
{"values":[0.12]} or {"failed":true}. Equal questions have equal answers.
Inactive parameters are not in params.
"""

import functools
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
from sklearn import datasets, ensemble, linear_model, neighbors, neural_network, svm
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

LOADERS = {
    "breast": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
}

SCALES = {"standard": StandardScaler, "range": MinMaxScaler, "none": FunctionTransformer}


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


def forest(p, regression):
    kind = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
    return kind(n_estimators=20, max_depth=p["depth"], max_features=p["features"], min_samples_leaf=p["leaf"],
                bootstrap=p["bootstrap"] == "yes", random_state=0)


def knn(p, regression):
    kind = neighbors.KNeighborsRegressor if regression else neighbors.KNeighborsClassifier
    return kind(n_neighbors=p["neighbors"], p=p["p"], weights=p["weights"])


def linear(p, regression):
    if regression:
        return linear_model.Ridge(alpha=p["strength"])
    return linear_model.LogisticRegression(C=1 / p["strength"], max_iter=200, random_state=0)


MODELS = {"forest": forest, "kernel": kernel, "knn": knn, "linear": linear, "net": net}


@functools.cache
def load(name):
    """Four fifths of the data; the rest is never seen."""
    x, y = LOADERS[name](return_X_y=True)
    x, _, y, _ = train_test_split(x, y, test_size=0.2, random_state=0, stratify=None if name == "diabetes" else y)
    if name == "diabetes":
        y = (y - y.mean()) / y.std()
    return x, y


def loss(task, p):
    regression = task["data"] == "diabetes"
    x, y = load(task["data"])
    train, test, y_train, y_test = train_test_split(
        x, y, train_size=min(500, 2 * len(y) // 3), random_state=1, stratify=None if regression else y)
    model = MODELS[p["model"] if task["model"] == "choice" else task["model"]]
    m = make_pipeline(SCALES[p["scale"]](), model(p, regression)).fit(train, y_train)
    if task["metric"] == "acc":
        return 1 - accuracy_score(y_test, m.predict(test))
    if task["metric"] == "nll":
        return log_loss(y_test, m.predict_proba(test), labels=np.unique(y))
    return (mean_absolute_error if task["metric"] == "mae" else mean_squared_error)(y_test, m.predict(test))


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            value = float(loss(question["task"], question["params"]))
            answer = {"values": [value]} if np.isfinite(value) else {"failed": True}
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            # A training that breaks is a failed trial, as anywhere.
            print(question, error, file=sys.stderr)
            answer = {"failed": True}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
