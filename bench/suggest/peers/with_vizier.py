"""Vizier's default algorithm, GP-UCB-PE, as its service runs it."""

import jax
from vizier import algorithms as vza
from vizier import pyvizier as vz
from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit
from vizier.pyvizier.converters import padding

from params import active, count, is_log


class Player:
    def __init__(self, game, variant):
        assert variant == "default", variant
        self.parameters = game.parameters
        problem = vz.ProblemStatement()
        for p in game.parameters:
            self.add(problem.search_space.root, p)
        self.names = [f"f{i}" for i in range(game.objectives)]
        for name in self.names:
            problem.metric_information.append(
                vz.MetricInformation(name=name, goal=vz.ObjectiveMetricGoal.MINIMIZE))
        # Padding keeps it from compiling anew for each number of trials.
        self.designer = VizierGPUCBPEBandit(
            problem, rng=jax.random.PRNGKey(game.seed % 2**32), clear_jax_cache=False,
            padding_schedule=padding.PaddingSchedule(num_trials=padding.PaddingType.MULTIPLES_OF_10))
        self.running, self.number, self.told = {}, 0, False

    @staticmethod
    def add(root, p):
        name, n = p["name"], count(p)
        scale = vz.ScaleType.LOG if is_log(p) else vz.ScaleType.LINEAR
        if p["type"] == "categorical":
            root.add_categorical_param(name, p["list"])
        elif p["type"] == "discrete":
            root.add_discrete_param(name, sorted(float(v) for v in p["list"]))
        elif n and (p["type"] != "int" or (p.get("step") or 1) != 1):
            root.add_int_param(name, 0, n - 1)
        elif p["type"] == "int":
            root.add_int_param(name, p["min"], p["max"], scale_type=scale)
        else:
            root.add_float_param(name, float(p["min"]), float(p["max"]), scale_type=scale)

    def ask(self, n):
        if self.number > 0 and not self.told:
            # What runs is known to the designer only by an update.
            self.designer.update(vza.CompletedTrials([]), vza.ActiveTrials(list(self.running.values())))
        self.told = False
        return [self.started(s) for s in self.designer.suggest(n)]

    def started(self, suggestion):
        number, self.number = self.number, self.number + 1
        trial = self.running[number] = suggestion.to_trial(number + 1)
        params = {}
        for p in self.parameters:
            v, n = trial.parameters[p["name"]].value, count(p)
            if p["type"] == "int" and (p.get("step") or 1) == 1:
                v = int(v)
            elif p["type"] != "discrete" and n:
                v = p["min"] + int(v) * p["step"]
            elif p["type"] == "double":
                v = min(max(float(v), p["min"]), p["max"])
            params[p["name"]] = v
        return number, active(self.parameters, params)

    def tell(self, results):
        done = []
        for r in results:
            trial = self.running.pop(r["number"])
            if r["state"] == "succeeded":
                trial.complete(vz.Measurement(dict(zip(self.names, r["values"]))))
            else:
                trial.complete(vz.Measurement(), infeasibility_reason="failed")
            done.append(trial)
        self.designer.update(vza.CompletedTrials(done), vza.ActiveTrials(list(self.running.values())))
        self.told = True
