"""Bounds on what is measured, such as "size <= 100"."""

from __future__ import annotations

import difflib
import logging
import math
import re
from dataclasses import dataclass
from typing import Any, Collection, Container, Dict, List, Mapping, Optional, Sequence, Tuple

_log = logging.getLogger("vernier_hpo")
_COMPARED = re.compile(r"\s*(<=|>=|<|>)\s*")
_NAME = re.compile(r"[^\W\d]\w*|`[^`]+`")
_WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|`([^`]+)`|(?<![\w.])([^\W\d]\w*)\b")
_SYNTAX = {"and", "or", "not", "log", "log2", "log10", "exp", "sqrt", "abs", "min", "max", "pow"}


@dataclass(frozen=True)
class Bound:
    """What a metric must keep to. Whether a limit itself is allowed makes no difference."""

    metric: str
    min: Optional[float] = None
    max: Optional[float] = None

    def holds(self, values: Mapping[str, float]) -> bool:
        """Whether the metric is there and within."""
        value = values.get(self.metric, math.nan)
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max) and value == value

    def as_json(self, name: str) -> Dict[str, Any]:
        """As the engine ("name") and an Experiment ("metricName") have it."""
        limits = {"min": self.min, "max": self.max}
        return {name: self.metric, **{k: v for k, v in limits.items() if v is not None}}


def split(constraints: Sequence[str], parameters: Collection[str]) -> Tuple[List[str], List[Bound]]:
    """Tell the constraints on parameters from the bounds on metrics, by the names in them."""
    if isinstance(constraints, str):
        raise TypeError(f"constraints is a list: write constraints=[{constraints!r}]")
    on_parameters: List[str] = []
    bounds: List[Bound] = []
    for text in constraints:
        names = [a or b for a, b in _WORDS.findall(text) if b not in _SYNTAX and (a or b)]
        unknown = [n for n in names if n not in parameters]
        if not unknown:
            on_parameters.append(text)
            continue
        bound = _bound(text)
        if bound is None:
            raise ValueError(f"constraint {text!r}: {unknown[0]} is no parameter, and a bound on a metric compares it with "
                             "numbers alone; write it like 'size <= 100', 'size >= 1' or '1 <= size <= 100'")
        near = difflib.get_close_matches(bound.metric, list(parameters), 1, 0.8)
        if near:
            _log.warning("constraint %r bounds a metric called %s; there is a parameter %s", text, bound.metric, near[0])
        bounds.append(bound)
    return on_parameters, [_together([b for b in bounds if b.metric == m]) for m in dict.fromkeys(b.metric for b in bounds)]


def listed(constraints: Sequence[Mapping[str, Any]]) -> List[Bound]:
    """The bounds of an Experiment."""
    return [Bound(c["metricName"], c.get("min"), c.get("max")) for c in constraints]


def lacking(bounds: Sequence[Bound], measured: Container[str]) -> List[str]:
    """The metrics that are bounded and were not measured."""
    return [b.metric for b in bounds if b.metric not in measured]


def _together(bounds: Sequence[Bound]) -> Bound:
    """One bound for all of a metric."""
    low = max((b.min for b in bounds if b.min is not None), default=None)
    high = min((b.max for b in bounds if b.max is not None), default=None)
    if low is not None and high is not None and low > high:
        raise ValueError(f"constraints: no {bounds[0].metric} is both at least {low:g} and at most {high:g}")
    return Bound(bounds[0].metric, low, high)


def _bound(text: str) -> Optional[Bound]:
    parts = _COMPARED.split(text.strip())
    names = [i for i, part in enumerate(parts) if i % 2 == 0 and _NAME.fullmatch(part)]
    if len(names) != 1:
        return None
    limits: Dict[str, float] = {}
    for i in range(1, len(parts), 2):  # each comparison is of the name and a number
        at = i + 1 if names[0] == i - 1 else i - 1
        side = "max" if (parts[i][0] == "<") == (at > i) else "min"
        try:
            limit = float(parts[at])
        except ValueError:
            return None
        if names[0] not in (i - 1, i + 1) or side in limits or not math.isfinite(limit):
            return None
        limits[side] = limit
    if not limits:
        return None
    return Bound(parts[names[0]].strip("`"), limits.get("min"), limits.get("max"))
