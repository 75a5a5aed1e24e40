"""Trains small models of scikit-learn and LightGBM: the trials of the live suite.

JSON Lines on standard input and output:
{"task":{"model":"net","data":"wine","metric":"nll"},"params":{...}} answers
{"values":[0.12]} or {"failed":true}. A question with "steps" is answered with the
"curve" of the first ones, null where the loss is not finite. Equal questions have equal answers.
Inactive parameters are not in params.
"""

import functools
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import lightgbm
import numpy as np
import statsmodels.api as sm
from sklearn import datasets, decomposition, ensemble, feature_selection, kernel_approximation, linear_model, neighbors, neural_network, svm
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

REGRESSIONS = ("diabetes", "randhie")


def statsmodel(name, target):
    """A loader of a data set of statsmodels."""

    def load(return_X_y):
        table = getattr(sm.datasets, name).load_pandas().data.dropna()
        x, y = table.drop(columns=list(target)), table[target[0]].to_numpy()
        return x.to_numpy(dtype=float), y > 0 if name == "fair" else y

    return load


LOADERS = {
    "anes": statsmodel("anes96", ["PID", "vote"]),
    "breast": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "fair": statsmodel("fair", ["affairs"]),
    "randhie": statsmodel("randhie", ["mdvis"]),
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


def boost(p, regression):
    kind = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
    goss = p["sampling"] == "goss"
    return kind(
        boosting_type=p["boosting"], data_sample_strategy=p["sampling"], learning_rate=p["lr"], n_estimators=p["trees"],
        num_leaves=p["leaves"], min_child_samples=p["least"], colsample_bytree=p["features"], reg_lambda=p["l2"],
        top_rate=p.get("top", 0.2), other_rate=p.get("top", 0.2) / 2, subsample=1.0 if goss else p["rows"], subsample_freq=0 if goss else 1,
        drop_rate=p.get("drop", 0.1), uniform_drop=p.get("uniform") == "yes",
        random_state=0, n_jobs=1, deterministic=True, force_row_wise=True, verbosity=-1)


def sgd(p, regression):
    common = {
        "penalty": None if p["penalty"] == "none" else p["penalty"], "alpha": p.get("alpha", 1e-4), "l1_ratio": p.get("ratio", 0.15),
        "average": p["average"] == "yes", "learning_rate": p["schedule"], "eta0": p["eta"], "power_t": p.get("power", 0.25),
        "max_iter": p["epochs"], "tol": None, "random_state": 0,
    }
    robust = p["robust"] == "yes"
    if regression:
        return linear_model.SGDRegressor(loss="huber" if robust else "squared_error", **common)
    return linear_model.SGDClassifier(loss="modified_huber" if robust else "log_loss", **common)


REDUCERS = {
    "none": lambda p, n, least: FunctionTransformer(),
    "pca": lambda p, n, least: decomposition.PCA(max(1, min(least, round(p["share"] * n))), whiten=p["whiten"] == "yes", random_state=0),
    "select": lambda p, n, least: feature_selection.SelectPercentile(percentile=100 * p["share"]),
    "nystroem": lambda p, n, least: kernel_approximation.Nystroem(gamma=p["gamma"], n_components=p["components"], random_state=0),
}


MODELS = {"boost": boost, "forest": forest, "kernel": kernel, "knn": knn, "linear": linear, "net": net, "sgd": sgd}


@functools.cache
def load(name):
    """Four fifths of the data; the rest is never seen."""
    x, y = LOADERS[name](return_X_y=True)
    x, _, y, _ = train_test_split(x, y, test_size=0.2, random_state=0, stratify=None if name in REGRESSIONS else y)
    x, y = x[:2000], y[:2000]
    if name in REGRESSIONS:
        y = (y - y.mean()) / y.std()
    return x, y


def split(task):
    x, y = load(task["data"])
    return train_test_split(
        x, y, train_size=min(500, 2 * len(y) // 3), random_state=1, stratify=None if task["data"] in REGRESSIONS else y)


def loss(task, p):
    regression = task["data"] in REGRESSIONS
    train, test, y_train, y_test = split(task)
    model = MODELS[p["model"] if task["model"] in ("choice", "pipe") else task["model"]]
    steps = [SCALES[p.get("scale", "none")]()]
    if task["model"] == "pipe":
        steps.append(REDUCERS[p["reduce"]](p, train.shape[1], min(train.shape)))
    m = make_pipeline(*steps, model(p, regression)).fit(train, y_train)
    if task["metric"] == "nll":
        return log_loss(y_test, m.predict_proba(test), labels=np.unique(load(task["data"])[1]))
    return error(task["metric"], y_test, m.predict(test))


def error(metric, y, predicted):
    if metric == "acc":
        return 1 - accuracy_score(y, predicted)
    return (mean_absolute_error if metric == "mae" else mean_squared_error)(y, predicted)


# How many boosting rounds are a step.
ROUNDS = 3


class Training:
    """A training that goes on from where it was left."""

    def __init__(self, task, p):
        self.task, self.p, self.losses, self.over, self.model = task, p, [], False, None
        self.regression = task["data"] in REGRESSIONS
        train, test, self.y_train, self.y_test = split(task)
        scale = SCALES[p.get("scale", "none")]().fit(train)
        self.train, self.test = scale.transform(train), scale.transform(test)
        self.classes = None if self.regression else np.unique(load(task["data"])[1])

    def curve(self, steps):
        """The loss after each step, None once it has diverged."""
        boosted = self.task["model"] == "boost"
        if len(self.losses) < steps and not self.over:
            if boosted:  # what it is after some rounds does not depend on the later ones
                self.model = boost(self.p | {"trees": ROUNDS * steps}, self.regression).fit(self.train, self.y_train)
            elif self.model is None:
                self.model = net(self.p, self.regression)
        while len(self.losses) < steps and not self.over:
            try:
                y = self.step({"num_iteration": ROUNDS * (len(self.losses) + 1)} if boosted else {})
            except ValueError:
                y = np.nan  # it has diverged
            self.over = not np.isfinite(y)
            if not self.over:
                self.losses.append(float(y))
        known = self.losses[:steps]
        return known + [None] * (steps - len(known))

    def step(self, after):
        if not after:
            self.model.partial_fit(self.train, self.y_train, **({} if self.regression else {"classes": self.classes}))
        if self.task["metric"] == "nll":
            return log_loss(self.y_test, self.model.predict_proba(self.test, **after), labels=self.classes)
        return error(self.task["metric"], self.y_test, self.model.predict(self.test, **after))


@functools.lru_cache(maxsize=256)
def training(text):
    return Training(*json.loads(text))


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if question.get("steps"):
                losses = training(json.dumps([question["task"], question["params"]])).curve(question["steps"])
                answer = {"curve": losses} | ({"failed": True} if losses[-1] is None else {"values": losses[-1:]})
            else:
                value = float(loss(question["task"], question["params"]))
                answer = {"values": [value]} if np.isfinite(value) else {"failed": True}
        except (ValueError, FloatingPointError, np.linalg.LinAlgError, lightgbm.basic.LightGBMError) as error:
            # A training that breaks is a failed trial, as anywhere. It may be half a step ahead.
            training.cache_clear()
            print(question, error, file=sys.stderr)
            answer = {"failed": True} | ({"curve": [None] * question["steps"]} if question.get("steps") else {})
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
