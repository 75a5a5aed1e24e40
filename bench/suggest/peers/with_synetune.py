"""Syne Tune's schedulers: MOBSTER, Hyper-Tune, BOHB and ASHA, which stop trials."""

import datetime
import logging

from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, finrange, lograndint, loguniform, ordinal, randint, uniform
from syne_tune.optimizer.baselines import ASHA, BOHB, MOBSTER, HyperTune
from syne_tune.optimizer.scheduler import SchedulerDecision

from params import active, count, is_log, value

logging.disable(logging.CRITICAL)


class Player:
    def __init__(self, game, variant):
        self.parameters = game.parameters
        kind = {"mobster": MOBSTER, "hypertune": HyperTune, "bohb": BOHB, "asha": ASHA}[variant]
        kwargs = {} if kind in (ASHA, BOHB) else {"search_options": {"debug_log": False}}
        # BOHB's searcher has no logarithms, and its integers leave their range: it
        # gets numbers between 0 and 1, as BOHB's paper has them.
        self.units = {p["name"] for p in game.parameters if kind is BOHB and p["type"] != "categorical"}
        self.scheduler = kind(
            {p["name"]: uniform(0, 1) if p["name"] in self.units else self.dimension(p) for p in game.parameters}, metric="loss", mode="min",
            resource_attr="step", max_t=game.steps, random_seed=game.seed % 2**31, **kwargs)
        self.running, self.number, self.last = {}, 0, {}

    @staticmethod
    def dimension(p):
        if p["type"] == "categorical":
            return choice(p["list"])
        if p["type"] == "discrete":
            return ordinal(sorted(p["list"]))
        if p["type"] == "int":
            if (p.get("step") or 1) != 1:
                return finrange(p["min"], p["max"], count(p), cast_int=True)
            return lograndint(p["min"], p["max"]) if is_log(p) else randint(p["min"], p["max"])
        if count(p):
            return finrange(p["min"], p["max"], count(p))
        return loguniform(p["min"], p["max"]) if is_log(p) else uniform(p["min"], p["max"])

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        suggestion = self.scheduler.suggest(number)
        trial = self.running[number] = Trial(number, suggestion.config, datetime.datetime.now())
        self.scheduler.on_trial_add(trial)
        params = {p["name"]: suggestion.config[p["name"]] for p in self.parameters}
        params.update((p["name"], value(p, params[p["name"]])) for p in self.parameters if p["name"] in self.units)
        return number, active(self.parameters, params)

    def report(self, number, step, value):
        trial = self.running[number]
        self.last[number] = {"loss": value, "step": step}
        return self.scheduler.on_trial_result(trial, self.last[number]) != SchedulerDecision.CONTINUE

    def tell(self, results):
        for r in results:
            trial, last = self.running.pop(r["number"]), self.last.pop(r["number"], None)
            if r["state"] == "failed":
                self.scheduler.on_trial_error(trial)
            elif r["state"] == "succeeded":
                self.scheduler.on_trial_complete(trial, last)
            else:
                self.scheduler.on_trial_remove(trial)
