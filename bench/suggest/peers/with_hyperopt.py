"""Hyperopt's TPE with its defaults."""

import math

import numpy as np
from hyperopt import JOB_STATE_DONE, STATUS_FAIL, STATUS_OK, Trials, hp, tpe
from hyperopt.base import JOB_STATE_RUNNING, Domain


class Player:
    def __init__(self, game, variant):
        assert variant == "tpe", variant
        self.parameters = {p["name"]: p for p in game.parameters}
        children = {}
        for p in game.parameters:
            if p.get("when"):
                children.setdefault(p["when"]["parameter"], []).append(p)
        self.children = children
        space = {p["name"]: self.node(p) for p in game.parameters if not p.get("when")}
        self.domain = Domain(lambda point: 0.0, space, pass_expr_memo_ctrl=False)
        self.trials = Trials()
        self.random = np.random.default_rng(game.seed)

    def node(self, p):
        """The expression of a parameter, with those that depend on it."""
        name, kind = p["name"], p["type"]
        below = self.children.get(name, [])
        if kind in ("categorical", "discrete") or below:
            values = p.get("list") or list(range(p["min"], p["max"] + 1))
            if not below:
                return hp.choice(name, values)
            options = []
            for v in values:
                option = {name: v}
                for child in below:
                    if v in child["when"]["in"]:
                        # Hyperopt wants each label once: one for each branch.
                        option[child["name"]] = self.branch(child, v)
                options.append(option)
            return hp.choice(name, options)
        low, high, step = p["min"], p["max"], p.get("step")
        log = p.get("distribution") == "logUniform"
        if kind == "int":
            if log:
                return hp.qloguniform(name, math.log(low), math.log(high), step or 1)
            return hp.quniform(name, low, high, step or 1) if step and step > 1 else hp.uniformint(name, low, high)
        if log:
            return hp.loguniform(name, math.log(low), math.log(high))
        if step:
            return hp.uniformint(name, 0, round((high - low) / step))
        return hp.uniform(name, low, high)

    def branch(self, p, value):
        if p.get("when") and len(p["when"]["in"]) > 1:
            p = dict(p, name=f"{p['name']}@{value}")
        return self.node(p)

    def ask(self, n):
        ids = self.trials.new_trial_ids(n)
        self.trials.refresh()
        new = tpe.suggest(ids, self.domain, self.trials, int(self.random.integers(2**31 - 1)))
        self.trials.insert_trial_docs(new)
        self.trials.refresh()
        return [self.started(doc) for doc in self.trials._dynamic_trials[-len(new):]]

    def started(self, doc):
        doc["state"] = JOB_STATE_RUNNING
        from hyperopt.base import spec_from_misc
        from hyperopt.fmin import space_eval
        point = space_eval(self.domain.expr, {k: v[0] for k, v in doc["misc"]["vals"].items() if v})
        params = {}
        self.flatten(point, params)
        return doc["tid"], params

    def flatten(self, point, params):
        for name, value in point.items():
            if isinstance(value, dict):
                self.flatten(value, params)
                continue
            p = self.parameters[name.partition("@")[0]]
            if p["type"] == "int":
                value = min(max(int(value), p["min"]), p["max"])
            elif p["type"] == "double" and p.get("step"):
                value = p["min"] + value * p["step"]
            elif p["type"] == "double":
                value = min(max(value, p["min"]), p["max"])
            params[p["name"]] = value

    def load(self, past):
        ids = self.trials.new_trial_ids(len(past))
        docs = self.trials.new_trial_docs(
            ids, [None] * len(past), [{"status": STATUS_OK, "loss": t["value"]} for t in past],
            [{"tid": i, "cmd": ("domain_attachment", "FMinIter_Domain"), "workdir": None,
              "idxs": {k: [i] for k in t["params"]}, "vals": {k: [v] for k, v in t["params"].items()}}
             for i, t in zip(ids, past)])
        for doc in docs:
            doc["state"] = JOB_STATE_DONE
        self.trials.insert_trial_docs(docs)
        self.trials.refresh()

    def tell(self, results):
        by_id = {doc["tid"]: doc for doc in self.trials._dynamic_trials}
        for r in results:
            doc = by_id[r["number"]]
            doc["state"] = JOB_STATE_DONE
            if r["state"] == "succeeded":
                doc["result"] = {"status": STATUS_OK, "loss": r["values"][0]}
            else:
                doc["result"] = {"status": STATUS_FAIL}
        self.trials.refresh()
