"""HEBO with its defaults."""

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO
from pymoo.config import Config

from params import Worst, active, count, is_log

Config.warnings["not_compiled"] = False


class Player:
    def __init__(self, game, variant):
        assert variant == "default", variant
        self.parameters = game.parameters
        np.random.seed(game.seed % 2**32)  # it draws from the global generators
        torch.manual_seed(game.seed)
        torch.set_num_threads(1)
        space = DesignSpace().parse([self.dimension(p) for p in game.parameters])
        self.optimizer = HEBO(space, scramble_seed=game.seed)
        self.running, self.number, self.worst = {}, 0, Worst()

    @staticmethod
    def dimension(p):
        name, n = p["name"], count(p)
        if p["type"] == "categorical":
            return {"name": name, "type": "cat", "categories": p["list"]}
        if n and (p["type"] != "int" or (p.get("step") or 1) != 1):
            return {"name": name, "type": "int", "lb": 0, "ub": n - 1}
        if p["type"] == "int":
            return {"name": name, "type": "pow_int" if is_log(p) else "int", "lb": p["min"], "ub": p["max"]}
        if is_log(p):
            return {"name": name, "type": "pow", "lb": p["min"], "ub": p["max"], "base": 10}
        return {"name": name, "type": "num", "lb": p["min"], "ub": p["max"]}

    def ask(self, n):
        table = self.optimizer.suggest(n)
        return [self.started(table.iloc[[i]]) for i in range(len(table))]

    def started(self, row):
        number, self.number = self.number, self.number + 1
        self.running[number] = row
        params = {}
        for p in self.parameters:
            v, n = row[p["name"]].iloc[0], count(p)
            if p["type"] == "discrete":
                v = sorted(p["list"])[int(v)]
            elif n and (p["type"] != "int" or (p.get("step") or 1) != 1):
                v = p["min"] + int(v) * p["step"]
            elif p["type"] == "int":
                v = min(max(int(v), p["min"]), p["max"])
            elif p["type"] == "double":
                v = min(max(float(v), p["min"]), p["max"])
            params[p["name"]] = v
        return number, active(self.parameters, params)

    def tell(self, results):
        for r in results:
            row = self.running.pop(r["number"])
            loss = self.worst.of(r)
            if loss is not None:
                self.optimizer.observe(row, np.array([[loss]]))
