"""SMAC3: its facades for hyperparameters (forest) and for black boxes (GP)."""

import logging
import tempfile

from ConfigSpace import (Categorical, ConfigurationSpace, EqualsCondition, Float, InCondition, Integer,
                         OrdinalHyperparameter)
from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario
from smac.runhistory import StatusType, TrialValue

from params import Worst, count, is_log

logging.disable(logging.CRITICAL)


class Player:
    def __init__(self, game, variant):
        self.parameters = game.parameters
        space = ConfigurationSpace(seed=game.seed)
        made = {}
        for p in game.parameters:
            made[p["name"]] = self.dimension(p)
            space.add(made[p["name"]])
        for p in game.parameters:
            when = p.get("when")
            if when:
                kind = InCondition if len(when["in"]) > 1 else EqualsCondition
                values = when["in"] if len(when["in"]) > 1 else when["in"][0]
                space.add(kind(made[p["name"]], made[when["parameter"]], values))
        self.space = space
        scenario = Scenario(space, deterministic=True, n_trials=max(game.budget, 1), seed=game.seed,
                            output_directory=tempfile.mkdtemp(prefix="smac"))
        facade = {"forest": HyperparameterOptimizationFacade, "gp": BlackBoxFacade}[variant]
        self.smac = facade(scenario, self.never, overwrite=True, logging_level=False)
        self.running, self.number, self.worst = {}, 0, Worst()

    @staticmethod
    def never(config, seed=0):
        raise RuntimeError("the points are evaluated elsewhere")

    @staticmethod
    def dimension(p):
        name = p["name"]
        if p["type"] == "categorical":
            return Categorical(name, p["list"])
        if p["type"] == "discrete":
            return OrdinalHyperparameter(name, sorted(p["list"]))
        if p["type"] == "int" and not p.get("step"):
            return Integer(name, (p["min"], p["max"]), log=is_log(p))
        if count(p):
            return Integer(name, (0, count(p) - 1))
        return Float(name, (float(p["min"]), float(p["max"])), log=is_log(p))

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        info = self.running[number] = self.smac.ask()
        config, params = dict(info.config), {}
        for p in self.parameters:
            if p["name"] not in config:
                continue
            v = config[p["name"]]
            v = v.item() if hasattr(v, "item") else v
            if count(p) and p.get("step"):
                v = p["min"] + int(v) * p["step"]
            params[p["name"]] = v
        return number, params

    def tell(self, results):
        for r in results:
            info = self.running.pop(r["number"])
            loss = self.worst.of(r)
            if loss is None:
                continue
            # A crash costs infinitely much by default, which its own models refuse.
            status = StatusType.SUCCESS if r["state"] == "succeeded" else StatusType.CRASHED
            self.smac.tell(info, TrialValue(cost=loss, status=status), save=False)
