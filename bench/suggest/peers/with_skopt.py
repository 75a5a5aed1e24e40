"""scikit-optimize's GP with its defaults (gp_hedge)."""

import numpy as np
from skopt import Optimizer
from skopt.space import Categorical, Integer, Real


class Player:
    def __init__(self, game, variant):
        assert variant == "gp", variant
        self.parameters = game.parameters
        self.optimizer = Optimizer([self.dimension(p) for p in game.parameters], "GP", random_state=game.seed)
        self.points = {}
        self.number = 0
        self.worst = None

    def dimension(self, p):
        prior = "log-uniform" if p.get("distribution") == "logUniform" else "uniform"
        if p["type"] == "double":
            if p.get("step"):
                return Integer(0, round((p["max"] - p["min"]) / p["step"]))
            return Real(p["min"], p["max"], prior=prior)
        if p["type"] == "int":
            return Integer(p["min"], p["max"], prior=prior)
        if p["type"] == "discrete":
            return Integer(0, len(p["list"]) - 1)
        return Categorical(p["list"])

    def ask(self, n):
        points = self.optimizer.ask(n_points=n) if n > 1 else [self.optimizer.ask()]
        return [self.started(x) for x in points]

    def started(self, x):
        number = self.number
        self.number += 1
        self.points[number] = x
        params = {}
        for p, v in zip(self.parameters, x):
            when = p.get("when")
            if when and params.get(when["parameter"]) not in when["in"]:
                continue
            if p["type"] == "discrete":
                v = sorted(p["list"])[int(v)]
            elif p["type"] == "int":
                v = int(v)
            elif p["type"] == "double":
                v = p["min"] + int(v) * p["step"] if p.get("step") else float(v)
            params[p["name"]] = v
        return number, params

    def load(self, past):
        names = [p["name"] for p in self.parameters]
        self.optimizer.tell([[t["params"][n] for n in names] for t in past], [t["value"] for t in past], fit=False)

    def tell(self, results):
        xs, ys = [], []
        for r in results:
            x = self.points.pop(r["number"])
            if r["state"] == "succeeded":
                y = r["values"][0]
                self.worst = y if self.worst is None else max(self.worst, y)
            elif self.worst is not None:
                y = self.worst  # it knows no failures: as bad as the worst
            else:
                continue
            xs.append([v.item() if isinstance(v, np.generic) else v for v in x])
            ys.append(y)
        if xs:
            self.optimizer.tell(xs, ys)
