"""Trials, as both kinds of study hand them out."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Protocol, Set, Type


class VernierError(Exception):
    """What Vernier refused, with what to do about it. reason is a word for programs, or empty."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class TrialStopped(Exception):
    """Raised by Trial.report: the trial is to end early. Its message says why."""


class TrialLost(Exception):
    """The trial is another worker's now; what this one measures does not count."""


@dataclass
class Result:
    """A trial as the study knows it."""

    number: int
    params: Dict[str, Any]
    state: str  # running, succeeded, pruned, failed, infeasible, pending
    values: Dict[str, float] = field(default_factory=dict)
    why: str = ""

    @property
    def value(self) -> float:
        """The first objective, or the only metric. NaN if there is none."""
        return next(iter(self.values.values()), float("nan"))


class Steps:
    """Numbers reports that name no step: the next one begins with a metric that the last step has already."""

    def __init__(self) -> None:
        self.last, self._metrics = -1, set()  # type: int, Set[str]

    def of(self, step: Optional[int], metrics: Iterable[str]) -> int:
        names = set(metrics)
        if step is not None:
            self.last, self._metrics = whole(step), set()
        elif self.last < 0 or self._metrics & names:
            self.last, self._metrics = self.last + 1, set()
        self._metrics |= names
        return self.last


class Keeper(Protocol):
    """What a trial needs of its study."""

    @property
    def objectives(self) -> List[str]: ...

    def _report(self, trial: "Trial", step: int, values: Mapping[str, float]) -> Optional[str]: ...
    def _complete(self, trial: "Trial", outcome: str, values: Mapping[str, float], reason: str) -> None: ...


class Trial:
    """A point to try. Use it as a context manager, which says how it ended:

        with study.ask() as trial:
            for step in range(100):
                trial.report(step=step, loss=train(**trial.params))

    At the end of the block the trial has succeeded, with what was reported; after
    TrialStopped it is pruned, after KeyboardInterrupt or SystemExit it is handed back, and
    after any other exception it has failed. Only TrialStopped and TrialLost do not go on
    past the block.
    """

    def __init__(self, keeper: Keeper, number: int, params: Dict[str, Any], *, name: str = "", attempt: int = 1,
                 resource: float = 0, why: str = "", seed: Optional[int] = None) -> None:
        self._keeper = keeper
        self.number, self.params, self.name, self.attempt = number, params, name, attempt
        self.resource, self.why = resource, why
        self.seed = seed  # to train with, another one for each trial; None in a local Study without repeats
        self.ended = False
        self.lost = ""  # why another worker has it, once it has
        self.stop = ""  # why it is to end early, once it is
        self._steps = Steps()
        self._reported: Dict[str, float] = {}  # the last value of each metric

    def report(self, metrics: Optional[Mapping[str, float]] = None, *, step: Optional[int] = None, **more: float) -> None:
        """Say what was measured at a step. Without step, that is the next one, or the last one if it lacks these metrics.

        Raises TrialStopped or TrialLost.
        """
        if self.ended:
            raise VernierError(f"trial {self.number} has ended; report before it does")
        values = _numbers({**(metrics or {}), **more})
        why = self._keeper._report(self, self._steps.of(step, values), values)
        self._reported.update(values)
        if self.lost:
            raise TrialLost(self.lost)
        self.stop = why or self.stop
        if self.stop:
            raise TrialStopped(self.stop)

    def succeed(self, value: Optional[float] = None, **values: float) -> None:
        """End the trial. value is that of the first objective; without any, what was reported counts."""
        if value is not None:
            first, *others = self._keeper.objectives
            # A metric may be called value, too.
            values = {"value" if first in values or "value" in others else first: value, **values}
        self._end("succeeded", values)

    def prune(self) -> None:
        """End the trial as stopped early."""
        self._end("pruned")

    def fail(self, reason: str) -> None:
        """End the trial as failed."""
        self._end("failed", reason=reason)

    def infeasible(self, reason: str) -> None:
        """End the trial as one whose point cannot be evaluated."""
        self._end("infeasible", reason=reason)

    def release(self) -> None:
        """Hand the trial back: another worker gets it."""
        self._end("released")

    def _end(self, outcome: str, values: Optional[Mapping[str, float]] = None, reason: str = "") -> None:
        if self.ended:
            raise VernierError(f"trial {self.number} has ended already")
        self._keeper._complete(self, outcome, _numbers(values or {}), reason)
        self.ended = True

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        if self.ended or isinstance(error, TrialLost):
            return isinstance(error, (TrialStopped, TrialLost))
        if error is None:
            self.succeed()
        elif isinstance(error, TrialStopped):
            self.prune()
            return True
        elif isinstance(error, Exception):
            self.fail(f"{type(error).__name__}: {error}")
        else:
            self.release()
        return False


def whole(step: Any) -> int:
    """A step, which may be a scalar of numpy, torch or TensorFlow."""
    number = int(step)
    if number != step:
        raise ValueError(f"step={step!r} is not a whole number, such as the epoch")
    return number


def _numbers(values: Mapping[str, Any]) -> Dict[str, float]:
    # float() also takes the scalars of numpy, torch and TensorFlow.
    return {name: float(v) for name, v in values.items()}
