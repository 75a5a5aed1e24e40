"""What the adapters share: parameters as numbers on a scale, and back."""

import math


def is_log(p):
    return p.get("distribution") == "logUniform"


def count(p):
    """How many values an ordered parameter has; 0 for a number without steps."""
    if p["type"] == "discrete":
        return len(p["list"])
    if p["type"] == "int" or p.get("step"):
        return int(math.floor((p["max"] - p["min"]) / (p.get("step") or 1) + 1e-9)) + 1
    return 0


def value(p, u):
    """The value at u between 0 and 1, with equal room for each of several."""
    u = min(max(float(u), 0.0), 1.0)
    n = count(p)
    if p["type"] == "categorical":
        return p["list"][min(int(u * len(p["list"])), len(p["list"]) - 1)]
    if p["type"] == "discrete":
        return sorted(p["list"])[min(int(u * n), n - 1)]
    low, high, step = p["min"], p["max"], p.get("step") or 1
    if n and not is_log(p):
        k = min(int(u * n), n - 1)
    elif n:
        a, b = math.log(max(low - step / 2, low / 2)), math.log(high + step / 2)
        k = min(max(round((math.exp(a + u * (b - a)) - low) / step), 0), n - 1)
    elif is_log(p):
        return min(max(math.exp(math.log(low) + u * (math.log(high) - math.log(low))), low), high)
    else:
        return min(max(low + u * (high - low), low), high)
    return low + k * step


def unit(p, v):
    """A u that value maps to v; for numbers only."""
    if p["type"] == "discrete":
        return (sorted(p["list"]).index(v) + 0.5) / len(p["list"])
    if is_log(p):
        return (math.log(v) - math.log(p["min"])) / (math.log(p["max"]) - math.log(p["min"]))
    return (v - p["min"]) / (p["max"] - p["min"])


def active(parameters, params):
    """Without what is not active."""
    out = {}
    for p in parameters:
        when = p.get("when")
        if not when or out.get(when["parameter"]) in when["in"]:
            out[p["name"]] = params[p["name"]]
    return out


class Worst:
    """For tuners that know no failures: these count as the worst seen so far."""

    def __init__(self):
        self.worst = None

    def of(self, result):
        """The loss of a result; None while there is nothing to compare with."""
        if result["state"] == "succeeded":
            loss = result["values"][0]
            self.worst = loss if self.worst is None else max(self.worst, loss)
            return loss
        return self.worst
