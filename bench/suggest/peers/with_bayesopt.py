"""The package bayesian-optimization with its defaults; what runs is guessed at by
its constant liar, its own way to play in parallel."""

import warnings

from bayes_opt import BayesianOptimization, acquisition

from params import Worst, active, unit, value

warnings.filterwarnings("ignore")


class Player:
    def __init__(self, game, variant):
        assert variant == "default", variant
        self.parameters = game.parameters
        bounds = {}
        for p in game.parameters:
            if p["type"] == "categorical":
                bounds[p["name"]] = tuple(p["list"])
            else:
                bounds[p["name"]] = (0.0, 1.0)
        rule = None
        if game.parallel > 1:
            rule = acquisition.ConstantLiar(acquisition.UpperConfidenceBound(kappa=2.576))
        self.optimizer = BayesianOptimization(
            f=None, pbounds=bounds, acquisition_function=rule, random_state=game.seed, verbose=0,
            allow_duplicate_points=True)
        self.first = 5  # random points, as maximize does by default
        self.running, self.number, self.worst = {}, 0, Worst()

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        if number < self.first or len(self.optimizer.space) == 0:
            point = self.optimizer.random_sample(1)[0]
        else:
            point = self.optimizer.suggest()
        self.running[number] = point
        params = {p["name"]: point[p["name"]] if p["type"] == "categorical" else value(p, point[p["name"]])
                  for p in self.parameters}
        return number, active(self.parameters, params)

    def load(self, past):
        for t in past:
            self.optimizer.register({p["name"]: unit(p, t["params"][p["name"]]) for p in self.parameters}, -t["value"])
        self.first = 0

    def tell(self, results):
        for r in results:
            point = self.running.pop(r["number"])
            loss = self.worst.of(r)
            if loss is not None:
                self.optimizer.register(point, -loss)
