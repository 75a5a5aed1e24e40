"""Nevergrad's NGOpt."""

import nevergrad as ng
import numpy as np

from params import Worst, active, count, is_log


class Player:
    def __init__(self, game, variant):
        self.parameters = game.parameters
        space = ng.p.Dict(**{p["name"]: self.dimension(p) for p in game.parameters})
        space.random_state = np.random.RandomState(game.seed)
        self.optimizer = ng.optimizers.registry[{"ngopt": "NGOpt"}[variant]](
            parametrization=space, budget=game.budget, num_workers=game.parallel)
        self.running, self.number, self.worst = {}, 0, Worst()

    @staticmethod
    def dimension(p):
        if p["type"] == "categorical":
            return ng.p.Choice(p["list"])
        if p["type"] == "discrete":
            return ng.p.TransitionChoice(sorted(p["list"]))
        low, high, n = p["min"], p["max"], count(p)
        if is_log(p):
            scalar = ng.p.Log(lower=low, upper=high)
            return scalar.set_integer_casting() if p["type"] == "int" else scalar
        if n:
            return ng.p.Scalar(lower=0, upper=n - 1).set_integer_casting()
        return ng.p.Scalar(lower=low, upper=high)

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        candidate = self.running[number] = self.optimizer.ask()
        params = {}
        for p in self.parameters:
            v = candidate.value[p["name"]]
            if count(p) and p["type"] != "discrete" and not is_log(p):
                v = p["min"] + int(v) * (p.get("step") or 1)
            elif p["type"] == "int":
                v = min(max(int(v), p["min"]), p["max"])
            params[p["name"]] = v
        return number, active(self.parameters, params)

    def tell(self, results):
        for r in results:
            candidate = self.running.pop(r["number"])
            loss = self.worst.of(r)
            if loss is not None:
                self.optimizer.tell(candidate, loss)
