"""Optuna's samplers and pruners."""

import optuna
from optuna.trial import TrialState

AUTO_SAMPLER = "23b5b24eb52a81631047e1d6ed53773d5b6795c0"

optuna.logging.set_verbosity(optuna.logging.ERROR)


def sampler(game, variant):
    s = optuna.samplers
    seed = game.seed
    if game.constraints:
        kwargs = {"constraints_func": lambda trial: trial.user_attrs.get("constraints", [1.0] * game.constraints)}
    else:
        kwargs = {}
    if variant == "random":
        return s.RandomSampler(seed=seed)
    if variant == "tpe":
        return s.TPESampler(seed=seed, **kwargs)
    if variant == "tpe-group":
        return s.TPESampler(multivariate=True, group=True, constant_liar=game.parallel > 1, seed=seed, **kwargs)
    if variant == "gp":
        return s.GPSampler(seed=seed, **kwargs)
    if variant == "gp-deterministic":
        return s.GPSampler(seed=seed, deterministic_objective=True, **kwargs)
    if variant == "cmaes":
        whole = any(p["type"] in ("int", "discrete") or p.get("step") for p in game.parameters)
        return s.CmaEsSampler(seed=seed, with_margin=whole, warn_independent_sampling=False)
    if variant == "nsga2":
        return s.NSGAIISampler(seed=seed, **kwargs)
    if variant == "auto":
        import optunahub  # fetches the sampler from the hub's repository on GitHub
        return optunahub.load_module("samplers/auto_sampler", ref=AUTO_SAMPLER).AutoSampler(seed=seed, **kwargs)
    raise ValueError(f"no variant {variant}")


def pruner(game, variant):
    rule = variant.partition("+")[2]
    return {
        "": optuna.pruners.NopPruner(),
        "asha": optuna.pruners.SuccessiveHalvingPruner(),
        "hyperband": optuna.pruners.HyperbandPruner(max_resource=game.steps or "auto"),
        "median": optuna.pruners.MedianPruner(),
    }[rule]


class Player:
    def __init__(self, game, variant):
        self.parameters = game.parameters
        self.study = optuna.create_study(
            directions=["minimize"] * game.objectives,
            sampler=sampler(game, variant.partition("+")[0]),
            pruner=pruner(game, variant),
        )
        self.trials = {}
        self.lists = {p["name"]: p["list"] for p in self.parameters if p["type"] == "discrete"}

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        trial = self.study.ask()
        params = {}
        for p in self.parameters:
            when = p.get("when")
            if when and params.get(when["parameter"]) not in when["in"]:
                continue
            params[p["name"]] = self.suggest(trial, p)
        self.trials[trial.number] = trial
        return trial.number, params

    def suggest(self, trial, p):
        name, kind = p["name"], p["type"]
        log = p.get("distribution") == "logUniform"
        if kind == "double":
            step = p.get("step")
            return trial.suggest_float(name, float(p["min"]), float(p["max"]), step=step, log=log)
        if kind == "int":
            return trial.suggest_int(name, p["min"], p["max"], step=p.get("step") or 1, log=log)
        if kind == "discrete":
            # Optuna has no ordered lists; the position is an ordered number.
            values = sorted(p["list"])
            return values[trial.suggest_int(name, 0, len(values) - 1)]
        return trial.suggest_categorical(name, p["list"])

    def load(self, past):
        d = optuna.distributions
        kinds = {p["name"]: d.FloatDistribution(p["min"], p["max"]) for p in self.parameters}
        self.study.add_trials([
            optuna.trial.create_trial(params=t["params"], distributions=kinds, value=t["value"]) for t in past
        ])

    def tell(self, results):
        for r in results:
            trial = self.trials.pop(r["number"])
            if r.get("constraints"):
                trial.set_user_attr("constraints", r["constraints"])
            if r["state"] == "succeeded":
                self.study.tell(trial, r["values"])
            elif r["state"] == "pruned":
                self.study.tell(trial, state=TrialState.PRUNED)
            else:
                self.study.tell(trial, state=TrialState.FAIL)

    def report(self, number, step, value):
        trial = self.trials[number]
        trial.report(value, step)
        return trial.should_prune()
