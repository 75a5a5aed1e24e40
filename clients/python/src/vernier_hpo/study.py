"""What studies here and at the service have in common."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .bounds import Bound
from .trial import Result, Trial

Names = Union[str, Sequence[str]]


def directions(minimize: Names, maximize: Names) -> List[Tuple[str, str]]:
    """(metric, minimize or maximize), in order."""
    both: List[Tuple[str, str]] = []
    for direction, names in (("minimize", minimize), ("maximize", maximize)):
        both += [(name, direction) for name in ([names] if isinstance(names, str) else names)]
    if not both:
        raise ValueError("name the metric to tune: minimize='loss' or maximize='accuracy'")
    names = [name for name, _ in both]
    if len(set(names)) < len(names):
        raise ValueError(f"the metrics to tune are {', '.join(names)}: name each once")
    return both


def count(name: str, value: Any) -> int:
    """A number of trials or workers, which may be one of numpy."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is not a whole number") from None
    if whole < 0:
        raise ValueError(f"{name}={value!r}: it cannot be negative")
    return whole


class Searching(ABC):
    """A study: ask for trials, look at what came of them."""

    directions: List[Tuple[str, str]]
    bounds: List[Bound]

    @property
    def objectives(self) -> List[str]:
        """The metrics that are tuned."""
        return [name for name, _ in self.directions]

    def ask(self) -> Optional[Trial]:
        """The next trial, or None when there are no more. Waits while none can be had."""
        return self._ask(math.inf)

    @abstractmethod
    def _ask(self, until: float) -> Optional[Trial]:
        """What ask gives, or None when none could be had until then, by time.monotonic."""

    @property
    @abstractmethod
    def trials(self) -> List[Result]:
        """All trials so far, in order of their numbers."""

    def __iter__(self) -> Iterator[Trial]:
        while True:
            trial = self.ask()
            if trial is None:
                return
            yield trial

    @property
    def best(self) -> Optional[Result]:
        """The best trial that has succeeded and keeps to the bounds, by the first objective. None while there is none."""
        return min(self._measured(), key=lambda r: self._losses(r)[0], default=None)

    @property
    def front(self) -> List[Result]:
        """The trials that keep to the bounds, and that no other of these beats in all objectives."""
        all_ = [(tuple(self._losses(r)), r) for r in self._measured()]
        front: List[Tuple[float, ...]] = []
        for a in sorted({a for a, _ in all_}):  # what beats it comes before it
            rivals = front if len(a) > 2 else front[-1:]  # of two objectives the second falls along the front
            if not any(all(x <= y for x, y in zip(b, a)) for b in rivals):
                front.append(a)
        kept = set(front)
        return [r for a, r in all_ if a in kept]

    def rows(self) -> List[Dict[str, Any]]:
        """A dictionary for each trial: number, state, its parameters and its metrics.

        A parameter with the name of one of the others is param.NAME, a metric called number or state metric.NAME.
        """
        trials, own = self.trials, {"number", "state"}
        taken = own.union(self.objectives, *(r.values for r in trials))
        return [{"number": r.number, "state": r.state,
                 **{f"param.{n}" if n in taken else n: v for n, v in r.params.items()},
                 **{f"metric.{n}" if n in own else n: v for n, v in r.values.items()}} for r in trials]

    def dataframe(self) -> Any:
        """The rows as a DataFrame of pandas, which must be installed."""
        import pandas

        return pandas.DataFrame(self.rows())

    def _measured(self) -> Iterable[Result]:
        return (r for r in self.trials if r.state == "succeeded" and all(map(math.isfinite, self._losses(r)))
                and all(b.holds(r.values) for b in self.bounds))

    def _in_order(self, values: Mapping[str, float]) -> Dict[str, float]:
        """The objectives come first."""
        return {**{m: values[m] for m in self.objectives if m in values}, **values}

    def _losses(self, r: Result) -> List[float]:
        return [r.values.get(m, math.nan) * (1 if d == "minimize" else -1) for m, d in self.directions]
