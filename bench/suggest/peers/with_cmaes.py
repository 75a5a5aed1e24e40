"""The package cmaes: plain, with margin for steps, or BIPOP restarts."""

import math

import numpy as np
from cmaes import CMA, CMAwM

from params import Worst, active, count, value


class Player:
    def __init__(self, game, variant):
        self.parameters, self.variant = game.parameters, variant
        self.random = np.random.default_rng(game.seed)
        self.n = len(game.parameters)
        self.large, self.small = 0, 0
        self.factor, self.poptype = 1, "large"
        self.optimizer = self.start(None)
        self.generation, self.results = 0, []
        self.running, self.number, self.worst = {}, 0, Worst()

    def start(self, population):
        bounds = np.array([[0.0, 1.0]] * self.n)
        seed = int(self.random.integers(2**31 - 1))
        mean = np.full(self.n, 0.5) if population is None else self.random.random(self.n)
        if self.variant == "margin":
            steps = np.array([1.0 / max(count(p) - 1, 1) if count(p) else 0.0 for p in self.parameters])
            return CMAwM(mean=mean, sigma=1 / 6, bounds=bounds, steps=steps, seed=seed, population_size=population)
        return CMA(mean=mean, sigma=1 / 6, bounds=bounds, seed=seed, population_size=population)

    def restart(self):
        """BIPOP (Hansen 2009): a large population doubles, small ones in between
        spend as much."""
        base = 4 + math.floor(3 * math.log(self.n))
        spent = self.optimizer.population_size * self.optimizer.generation
        if self.poptype == "large":
            self.large += spent
        else:
            self.small += spent
        if self.small < self.large:
            self.poptype = "small"
            size = math.floor(base * (self.factor / 2) ** (self.random.random() ** 2))
        else:
            self.poptype, self.factor = "large", self.factor * 2
            size = base * self.factor
        self.optimizer = self.start(max(size, base))

    def ask(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        number, self.number = self.number, self.number + 1
        if self.variant == "margin":
            u, x = self.optimizer.ask()
        else:
            u = x = self.optimizer.ask()
        self.running[number] = x, self.generation
        params = {}
        for p, v in zip(self.parameters, u):
            n = count(p)
            if self.variant == "margin" and n:
                v = (round(v * (n - 1)) + 0.5) / n
            params[p["name"]] = value(p, v)
        return number, active(self.parameters, params)

    def tell(self, results):
        for r in results:
            x, generation = self.running.pop(r["number"])
            loss = self.worst.of(r)
            if loss is None or generation != self.generation:
                continue  # it came from an older distribution
            self.results.append((x, loss))
            if len(self.results) == self.optimizer.population_size:
                self.optimizer.tell(self.results)
                self.results, self.generation = [], self.generation + 1
                if self.variant == "bipop" and self.optimizer.should_stop():
                    self.restart()
