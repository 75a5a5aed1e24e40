"""DEHB with its defaults; it says itself how long to train."""

import math
import tempfile

from ConfigSpace import (Categorical, ConfigurationSpace, EqualsCondition, Float, InCondition, Integer,
                         OrdinalHyperparameter)
from dehb import DEHB
from loguru import logger

from params import Worst, count, is_log

logger.remove()


class Player:
    def __init__(self, game, variant):
        assert variant == "default", variant
        self.parameters = game.parameters
        space = ConfigurationSpace(seed=game.seed)
        made = {p["name"]: self.dimension(p) for p in game.parameters}
        for p in game.parameters:
            space.add(made[p["name"]])
        for p in game.parameters:
            when = p.get("when")
            if when and len(when["in"]) > 1:
                space.add(InCondition(made[p["name"]], made[when["parameter"]], when["in"]))
            elif when:
                space.add(EqualsCondition(made[p["name"]], made[when["parameter"]], when["in"][0]))
        # Its workers would be processes; what runs at once is asked for here.
        self.optimizer = DEHB(
            cs=space, min_fidelity=1, max_fidelity=game.steps, n_workers=1, seed=game.seed % 2**31,
            save_freq="end", output_path=tempfile.mkdtemp(prefix="dehb"))
        self.steps = game.steps
        self.running, self.number, self.worst = {}, 0, Worst()

    @staticmethod
    def dimension(p):
        name = p["name"]
        if p["type"] == "categorical":
            return Categorical(name, p["list"])
        if p["type"] == "discrete":
            return OrdinalHyperparameter(name, sorted(p["list"]))
        if p["type"] == "int" and (p.get("step") or 1) == 1:
            return Integer(name, (p["min"], p["max"]), log=is_log(p))
        if count(p):
            return Integer(name, (0, count(p) - 1))
        return Float(name, (float(p["min"]), float(p["max"])), log=is_log(p))

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        job = self.running[number] = self.optimizer.ask()
        config, params = dict(job["config"]), {}
        for p in self.parameters:
            if p["name"] not in config:
                continue
            v = config[p["name"]]
            v = v.item() if hasattr(v, "item") else v
            if p["type"] in ("int", "double") and count(p) and p.get("step"):
                v = p["min"] + int(v) * p["step"]
            params[p["name"]] = v
        return number, params, max(1, round(job["fidelity"]))

    def report(self, number, step, value):
        return False

    def tell(self, results):
        for r in results:
            job = self.running.pop(r["number"])
            loss = self.worst.of(r)
            fitness = loss if r["state"] == "succeeded" else math.inf
            self.optimizer.tell(job, {"fitness": fitness, "cost": job["fidelity"]})
