"""The search space: what each parameter may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

When = Optional[Mapping[str, Sequence[Any]]]


@dataclass(frozen=True)
class Parameter:
    """One parameter. Make it with uniform, loguniform, normal, integer or choice."""

    kind: str  # double, int, discrete or categorical, as in an Experiment
    low: Optional[float] = None
    high: Optional[float] = None
    step: Optional[float] = None
    distribution: str = "uniform"
    values: Tuple[Any, ...] = ()
    when: When = None
    prior: Any = None
    spread: Optional[float] = None
    weights: Tuple[float, ...] = ()

    def words(self) -> List[str]:
        """The values of a choice as the search knows them."""
        return [_word(v) for v in self.values]

    def decode(self, value: Any) -> Any:
        """The value that the program gets for the one that the search gave."""
        if self.kind == "int":
            return int(value)
        if self.kind == "double":
            return float(value)
        if self.kind == "discrete":
            return min(self.values, key=lambda v: abs(v - float(value)))
        return self.values[self.words().index(str(value))]

    def encode(self, value: Any) -> Any:
        """The value that the search knows for one of the program's."""
        return _word(value) if self.kind == "categorical" else _plain(value)


def uniform(low: float, high: float, *, step: Optional[float] = None, when: When = None,
            prior: Optional[float] = None, spread: Optional[float] = None) -> Parameter:
    """A number from low to high, of which all are as likely; with step, low + k * step.

    prior, of any kind of parameter: a value that you believe is good; the search begins there. spread: how far
    from it good values are likely to be, as a share of the range, above 0 and at most 1. Default 0.1.
    """
    return Parameter("double", low, high, step, "uniform", (), when, prior, spread)


def loguniform(low: float, high: float, *, when: When = None, prior: Optional[float] = None,
               spread: Optional[float] = None) -> Parameter:
    """A positive number whose magnitude is searched: as much from 0.001 to 0.01 as from 0.01 to 0.1."""
    return Parameter("double", low, high, None, "logUniform", (), when, prior, spread)


def normal(low: float, high: float, *, log: bool = False, when: When = None, prior: Optional[float] = None,
           spread: Optional[float] = None) -> Parameter:
    """A number that is most likely in the middle between low and high."""
    return Parameter("double", low, high, None, "logNormal" if log else "normal", (), when, prior, spread)


def integer(low: int, high: int, *, step: int = 1, log: bool = False, when: When = None, prior: Optional[int] = None,
            spread: Optional[float] = None) -> Parameter:
    """A whole number from low to high, both included."""
    return Parameter("int", low, high, step if step != 1 else None, "logUniform" if log else "uniform", (), when,
                     prior, spread)


def choice(*values: Any, when: When = None, prior: Any = None,
           weights: Optional[Sequence[float]] = None) -> Parameter:
    """One of the values. If all are finite numbers their order counts; otherwise they are categories, of any type.

    prior: the one that you believe is good. weights: instead, how much you believe in each, in the order of values;
    also where you believe in the value None.
    """
    if len(values) == 1 and (isinstance(values[0], (list, set, range)) or getattr(values[0], "ndim", False)):
        raise ValueError(f"choice({values[0]!r}): give the values as arguments, choice('adam', 'sgd') or choice(*values); "
                         "to fix a parameter to one list, write a tuple")
    numbers = all(isinstance(v, Integral) and not isinstance(v, bool) or isinstance(v, float) and math.isfinite(v) for v in values)
    if len({_word(v) for v in values}) != len(values) or not values:
        raise ValueError(f"choice{values!r}: give at least one value, and no two with the same name")
    if isinstance(weights, Mapping):
        raise ValueError(f"choice{values!r}: weights are a list, in the order of the values")
    if weights is not None and len(weights) != len(values):
        raise ValueError(f"choice{values!r}: there are {len(values)} values and {len(weights)} weights")
    if numbers:
        order = sorted(range(len(values)), key=lambda i: values[i])
        values = tuple(values[i] for i in order)
        weights = None if weights is None else [weights[i] for i in order]
    return Parameter("discrete" if numbers else "categorical", values=tuple(values), when=when, prior=prior,
                     weights=tuple(weights or ()))


def check(space: Mapping[str, Parameter]) -> None:
    """Raise TypeError for what is no parameter."""
    for name, p in space.items():
        if not isinstance(p, Parameter):
            raise TypeError(f"{name}: {p!r} is no parameter; write uniform(0, 1), loguniform(1e-5, 0.1), integer(1, 8) "
                            "or choice('adam', 'sgd')")


def encoded(space: Mapping[str, Parameter], points: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Points of the caller as both the engine and the service have them."""
    check(space)
    if isinstance(points, Mapping):
        raise TypeError("initial is a list of points: write initial=[{...}]")
    for point in points:
        for name in point:
            if name not in space:
                raise ValueError(f"initial: there is no parameter {name}; the space has {', '.join(space)}")
    return [{n: space[n].encode(v) for n, v in p.items()} for p in points]


def for_engine(space: Mapping[str, Parameter]) -> List[Dict[str, Any]]:
    """The parameters as the space file of `vernier optimize` has them."""
    check(space)
    return [_common(name, p, "type", {}, p.words(), bare=True) for name, p in space.items()]


def for_experiment(space: Mapping[str, Parameter]) -> List[Dict[str, Any]]:
    """The parameters as the spec of an Experiment has them."""
    check(space)
    return [_common(name, p, "parameterType", {}, p.words(), bare=False) for name, p in space.items()]


def from_experiment(parameters: Sequence[Mapping[str, Any]]) -> Dict[str, Parameter]:
    """The space of an Experiment's spec."""
    space = {}
    for entry in parameters:
        feasible, kind = entry.get("feasibleSpace", {}), entry["parameterType"]
        low, high, step = (float(feasible[k]) if feasible.get(k) else None for k in ("min", "max", "step"))
        values = tuple(float(v) if kind == "discrete" else v for v in feasible.get("list", ()))
        when = entry.get("when")
        space[entry["name"]] = Parameter(kind, low, high, step, feasible.get("distribution") or "uniform", values,
                                         {when["parameter"]: when["in"]} if when else None)
    return space


def _common(name: str, p: Parameter, type_key: str, feasible: Dict[str, Any], words: List[str],
            bare: bool) -> Dict[str, Any]:
    text = _plain if bare else _number
    if p.values:
        feasible["list"] = [_plain(v) for v in p.values] if bare and p.kind == "discrete" else words
    else:
        feasible.update(min=text(p.low), max=text(p.high))
        if p.step is not None:
            feasible["step"] = text(p.step)
        if p.distribution != "uniform":
            feasible["distribution"] = p.distribution
    prior = _prior(p, text)
    if prior:
        feasible["prior"] = prior
    entry: dict[str, Any] = {"name": name, type_key: p.kind}
    entry.update(feasible if bare else {"feasibleSpace": feasible})
    if p.when:
        if len(p.when) != 1:
            raise ValueError(f"{name}: when names {len(p.when)} parameters; it can name one")
        (other, allowed), = p.when.items()
        if isinstance(allowed, str):
            raise TypeError(f"{name}: when has a list of values: write when={{{other!r}: [{allowed!r}]}}")
        entry["when"] = {"parameter": other, "in": [_word(v) for v in allowed]}
    return entry


def _prior(p: Parameter, text: Callable[[Any], Any]) -> Dict[str, Any]:
    prior: Dict[str, Any] = {}
    if p.prior is not None:
        prior["value"] = _word(p.prior) if p.kind == "categorical" else text(p.prior)
    if p.spread is not None:
        prior["spread"] = text(p.spread)
    if p.weights:
        prior["weights"] = [text(w) for w in p.weights]
    return prior


def _number(value: Any) -> str:
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    """The number of Python that a scalar of numpy or torch stands for."""
    return value.item() if hasattr(value, "item") else value


def _word(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(getattr(value, "__name__", value))
