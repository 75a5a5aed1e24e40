"""Ax with its defaults, which are BoTorch's."""

import logging

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from params import active, count, is_log

logging.disable(logging.CRITICAL)


class Player:
    def __init__(self, game, variant):
        assert variant == "default", variant
        self.parameters = game.parameters
        self.client = Client(random_seed=game.seed)
        self.client.configure_experiment(parameters=[self.dimension(p) for p in game.parameters])
        self.client.configure_optimization(objective="-loss")

    @staticmethod
    def dimension(p):
        name, n = p["name"], count(p)
        if p["type"] == "categorical":
            return ChoiceParameterConfig(name=name, values=p["list"], parameter_type="str", is_ordered=False)
        if p["type"] == "discrete":
            return ChoiceParameterConfig(
                name=name, values=[float(v) for v in sorted(p["list"])], parameter_type="float", is_ordered=True)
        if p["type"] == "double" and n:
            return RangeParameterConfig(name=name, bounds=(0, n - 1), parameter_type="int")
        return RangeParameterConfig(
            name=name, bounds=(p["min"], p["max"]), parameter_type="int" if n else "float",
            scaling="log" if is_log(p) else "linear")

    def ask(self, n):
        trials = self.client.get_next_trials(max_trials=n)
        return [(number, self.params(values)) for number, values in trials.items()]

    def params(self, values):
        params = {}
        for p in self.parameters:
            v = values[p["name"]]
            if p["type"] == "double" and count(p):
                v = p["min"] + int(v) * p["step"]
            params[p["name"]] = v
        return active(self.parameters, params)

    def load(self, past):
        for t in past:
            number = self.client.attach_trial(parameters=t["params"])
            self.client.complete_trial(trial_index=number, raw_data={"loss": t["value"]})

    def tell(self, results):
        for r in results:
            if r["state"] == "succeeded":
                self.client.complete_trial(trial_index=r["number"], raw_data={"loss": r["values"][0]})
            else:
                self.client.mark_trial_failed(trial_index=r["number"])
