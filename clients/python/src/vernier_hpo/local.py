"""Search on this machine, without a server: `vernier optimize` in a process of its own."""

from __future__ import annotations

import bisect
import contextlib
import io
import json
import math
import os
import threading
import time
import weakref
from typing import Any, BinaryIO, Dict, List, Mapping, Optional, Sequence, Tuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from . import bounds
from .engine import Engine
from .space import Parameter, encoded, for_engine
from .study import Names, Searching, count, directions
from .trial import Result, Trial, VernierError


class Study(Searching):
    """A search on this machine.

    space: the parameters by name. minimize, maximize: the metrics to tune, one or several.
    trials: how many at most; None is no limit. parallel: how many run at once, which the
    algorithm takes into account. algorithm, settings: see docs/algorithms. seed: of the search; None draws one.
    stopper: a rule that stops trials early by what they report. constraints: on parameters, such as
    "layers * batch <= 200", and bounds on metrics, such as "size <= 100", which each trial
    then must have; of trials beyond a bound none is the best. initial: points to try first.
    file: where the study is kept, so that a later one with the same arguments goes on with it; one at a time.

    May be used from several threads. Close it, or use it as a context manager. Trials that other threads run by
    then count when they end; after an error or Ctrl-C there are no more for these threads.
    """

    def __init__(self, space: Mapping[str, Parameter], *, minimize: Names = (), maximize: Names = (),
                 trials: Optional[int] = None, parallel: int = 1, algorithm: str = "auto",
                 settings: Optional[Mapping[str, Any]] = None, seed: Optional[int] = 0, stopper: Optional[str] = None,
                 stopper_settings: Optional[Mapping[str, Any]] = None, constraints: Sequence[str] = (),
                 initial: Sequence[Mapping[str, Any]] = (), repeats: bool = False, file: Optional[str] = None) -> None:
        self.space, self.directions, self.limit = dict(space), directions(minimize, maximize), trials
        on_parameters, self.bounds = bounds.split(constraints, space)
        self._stops = stopper is not None
        self._resource_name = str((settings or {}).get("resource_name", ""))
        self._changed = threading.Condition()
        self._results: Dict[int, Result] = {}
        self._asked: Dict[int, Dict[str, Any]] = {}    # as the engine gave them
        self._curves: Dict[int, List[Tuple[int, float]]] = {}
        self._bests: Dict[int, Tuple[int, float]] = {}    # the step that is best for the first objective
        self._measured_at: Dict[int, Dict[str, Course]] = {}
        self._owners: Dict[int, int] = {}    # the threads that run trials
        self._waiting: List[int] = []        # trials without a worker
        self._closed = self._cut_short = False
        self._engine = Engine({
            "parameters": for_engine(space),
            "objectives": [{"name": m, "type": d} for m, d in self.directions],
            "constraints": [*on_parameters, *(b.as_json("name") for b in self.bounds)],
            "budget": count("trials", trials or 0), "parallel": count("parallel", parallel),
            "repeats": repeats,
            "initial": encoded(self.space, initial),
        }, algorithm, settings, seed, stopper, stopper_settings)
        self._file: Optional[BinaryIO] = None
        self._lock: Optional[io.FileIO] = None
        if file is not None:
            try:
                self._open(file)
            except BaseException:
                self.close()
                raise

    def _ask(self, until: float) -> Optional[Trial]:
        with self._changed:
            while True:
                if self._cut_short or time.monotonic() >= until:
                    return None
                if self._closed:
                    raise VernierError("the study is closed: wait for its threads before you close it, or make a "
                                       "new Study")
                if self._waiting:
                    return self._hand_out(self._waiting.pop(0))
                if self.limit is not None and len(self._asked) >= self.limit:
                    return None
                answer = self._engine.call(ask=1)
                if answer["trials"]:
                    (asked,) = answer["trials"]
                    self._take(asked)
                    self._waiting.append(asked["number"])  # for the next one, if it cannot be written
                    self._write(ask=asked)
                    return self._hand_out(self._waiting.pop(0))
                if answer["exhausted"]:
                    return None
                if all(owner == threading.get_ident() for owner in self._owners.values()):
                    raise VernierError(f"end some of the trials {sorted(self._owners)} first: the algorithm waits "
                                       "for their results")
                self._changed.wait(min(max(0, until - time.monotonic()), threading.TIMEOUT_MAX))

    @property
    def trials(self) -> List[Result]:
        with self._changed:
            return [self._results[n] for n in sorted(self._results)]

    def close(self) -> None:
        """End the process of the search. What was found stays readable, and what other threads run is still kept."""
        with self._changed:
            self._closed = True
            self._engine.close()
            others = {t.ident for t in threading.enumerate()} - {threading.get_ident()}
            self._owners = {n: owner for n, owner in self._owners.items() if owner in others}
            self._let_go_of_file()
            self._changed.notify_all()

    def _let_go_of_file(self) -> None:
        if self._owners:
            return
        if self._lock is not None:
            self._lock.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._cut_short = kind is not None
        self.close()

    def _take(self, asked: Dict[str, Any]) -> None:
        number = asked["number"]
        self._asked[number] = asked
        params = {n: self.space[n].decode(v) for n, v in asked["params"].items()}
        self._results[number] = Result(number, params, "pending", why=asked.get("why", ""))

    def _hand_out(self, number: int) -> Trial:
        result, asked = self._results[number], self._asked[number]
        result.state, self._curves[number], self._measured_at[number] = "running", [], {}
        self._bests.pop(number, None)
        self._owners[number] = threading.get_ident()
        return Trial(self, number, dict(result.params), resource=asked.get("resource", 0), why=result.why,
                     seed=asked.get("seed"))

    def _report(self, trial: Trial, step: int, values: Mapping[str, float]) -> Optional[str]:
        with self._changed:
            self._keep(trial.number, step, values)
            first = self.objectives[0]
            if first not in values:
                return None
            self._curves[trial.number].append((step, values[first]))
            if not self._stops or self._closed:
                return None
            answer = self._engine.call(report={"number": trial.number, "step": step, "value": values[first]})
            return answer.get("why", "a stopping rule") if answer["stop"] else None

    def _complete(self, trial: Trial, outcome: str, values: Mapping[str, float], reason: str) -> None:
        with self._changed:
            number, result = trial.number, self._results[trial.number]
            if number not in self._owners:
                raise VernierError(f"the study was closed before trial {number} ended: end it first")
            if outcome == "released":
                result.state, result.values = "pending", {}
                self._waiting.append(number)
            else:
                told: Dict[str, Any] = {"number": number, "state": "failed" if outcome == "infeasible" else outcome}
                final = {**result.values, **values}
                if outcome == "succeeded":
                    missing = [m for m in self.objectives if m not in final] + bounds.lacking(self.bounds, final)
                    if missing:
                        only = f", only {', '.join(final)}" if final else ""
                        bounded = ", ".join(b.metric for b in self.bounds if b.metric in missing)
                        named = f" (constraints bound {bounded}, which is no parameter)" if bounded else ""
                        raise VernierError(f"trial {number} has no {', '.join(missing)}{only}{named}: report it, return it "
                                           "from the function, or pass it to succeed", "NOT_MEASURED")
                    told["values"] = [final[m] for m in self.objectives]
                if self._curves[number]:
                    told["curve"] = _thinned(self._curves[number])
                final = self._in_order(final)
                if not self._closed:
                    self._engine.call(tell=[{**told, **self._bounded(outcome, final)}])
                result.state, result.values, result.why = outcome, final, reason or result.why
                self._write(tell=told, state=outcome, values=final, why=result.why)
            del self._owners[number], self._measured_at[number], self._curves[number]
            self._changed.notify_all()
            if self._closed:
                self._let_go_of_file()
            elif outcome == "released" and self._stops:  # the rule judges the next attempt by its own reports
                with contextlib.suppress(VernierError):  # a search that has ended says so at the next ask
                    self._engine.call(tell=[{"number": number, "state": "pending", "curve": []}])

    def _bounded(self, outcome: str, values: Mapping[str, float]) -> Dict[str, Any]:
        """What is told of the bounds. A trial of a file may lack a metric that is bounded now: it breaks the bound."""
        if outcome != "succeeded" or not self.bounds:
            return {}
        return {"constraints": [values.get(b.metric, math.nan) for b in self.bounds]}

    def _keep(self, number: int, step: int, values: Mapping[str, float]) -> None:
        # As in an Experiment: of the first objective the best counts, of the other objectives and of a bounded metric
        # the one at the step that is best for the first, of other metrics the newest.
        kept, measured = self._results[number].values, self._measured_at[number]
        first, direction = self.directions[0]
        tied = {*self.objectives, *(b.metric for b in self.bounds)} - {first}
        for name in values.keys() - tied - {first}:
            kept[name] = values[name]
        new = {n: values[n] for n in values.keys() & {*tied, first} if measured.setdefault(n, Course()).add(step, values[n])}
        until, best = self._bests.get(number, (None, math.nan))
        if first in new and (until is None or _better(direction, best, new[first]) != best):
            until, best = self._bests[number] = step, new[first]
            kept[first] = best
        for name in tied & measured.keys():
            kept[name] = measured[name].at(until)

    def _open(self, file: str) -> None:
        """Read what an earlier study left in the file, and go on with it."""
        space = [{k: v for k, v in p.items() if k != "prior"} for p in self._engine.space["parameters"]]
        header = {"space": space, "objectives": self.directions}
        header = json.loads(json.dumps(header))
        lines: List[Dict[str, Any]] = []
        end = 0
        self._file = open(file, "ab")
        self._lock = _locked(file)
        with open(file, "rb") as f:
            for i, line in enumerate(f, 1):
                if not line.startswith(b'{"space": '[:len(line)] if not end else b"{"):
                    raise VernierError(f"{file} is not the file of a study; name another one")
                if not line.endswith(b"\n"):
                    break  # of a process that died while it wrote
                try:
                    lines.append(json.loads(line))
                except ValueError as e:
                    raise VernierError(f"{file}, line {i}, is damaged ({e}): name another file, or remove this line and "
                                       "those after it to go on with the trials before") from e
                end += len(line)
        if lines and lines[0] != header:
            raise VernierError(f"{file} is of another space or other objectives; name another file")
        for record in lines[1:]:
            if "ask" in record:
                self._take(record["ask"])
            else:
                number = record["tell"]["number"]
                bounded = self._bounded(record["state"], record["values"])  # of now, not of then
                self._engine.call(tell=[{**self._asked[number], **record["tell"], **bounded}])
                r = self._results[number]
                r.state, r.values, r.why = record["state"], record["values"], record["why"]
        self._waiting = sorted(n for n, r in self._results.items() if r.state == "pending")
        if self._waiting:
            self._engine.call(tell=[{**self._asked[n], "state": "pending"} for n in self._waiting])
        self._file.truncate(end)
        if not lines:
            self._write(**header)

    def _write(self, **record: Any) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())


class Course:
    """What a metric was measured at, by step."""

    def __init__(self) -> None:
        self._steps: List[int] = []
        self._values: Dict[int, float] = {}

    def add(self, step: int, value: float) -> bool:
        """Whether it is the first one of the step, which counts."""
        if step in self._values:
            return False
        self._values[step] = value
        bisect.insort(self._steps, step)
        return True

    def at(self, until: Optional[int]) -> float:
        """The last one up to a step, or the first one after it. Without a step, the last."""
        behind = len(self._steps) if until is None else bisect.bisect_right(self._steps, until)
        return self._values[self._steps[max(behind - 1, 0)]]


def _thinned(curve: List[Tuple[int, float]]) -> List[Tuple[int, float]]:
    """In order of steps, with the last, and short enough for one request."""
    every = -(-len(curve) // 100_000)
    return sorted(curve, key=lambda at: at[0])[::-every][::-1]


def _better(direction: str, kept: float, value: float) -> float:
    if not math.isfinite(kept):
        return value
    if not math.isfinite(value):
        return kept
    return min(kept, value) if direction == "minimize" else max(kept, value)


_locks: "weakref.WeakSet[io.FileIO]" = weakref.WeakSet()


def _locked(file: str) -> Optional[io.FileIO]:
    """Keep other studies from the file: two that write it would number their trials alike."""
    if fcntl is None:
        return None
    lock = io.FileIO(file, "a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise VernierError(f"another study has {file} open: close() it, or name another file") from None
    except OSError:
        pass  # of a file system without locks
    _locks.add(lock)
    return lock


def _let_go() -> None:
    """Leave the locks to the process that was forked from: a trial's may go on when that was killed."""
    for lock in list(_locks):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
