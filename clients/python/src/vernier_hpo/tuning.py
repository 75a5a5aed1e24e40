"""Tune a function: in this thread, in several, in processes, or in pods."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import logging
import math
import multiprocessing
import numbers
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import pods
from .local import Study
from .remote import Client
from .space import Parameter
from .study import Names, Searching, count, directions
from .trial import Result, Steps, Trial, TrialStopped


_log = logging.getLogger("vernier_hpo")
_TRIALS = 50  # unless more or fewer are asked for


class Tuned:
    """What tune found. It reads like the study that it was."""

    def __init__(self, study: Searching) -> None:
        self.trials: List[Result] = study.trials
        self.best, self.front = study.best, study.front
        self.rows, self.dataframe = study.rows, study.dataframe
        self._values = study.objectives

    def __repr__(self) -> str:
        if self.best is None:
            return f"Tuned({len(self.trials)} trials, none of which is the best: " \
                   "none succeeded with a number, within the bounds if there are any)"
        found = ", ".join(f"{m}={self.best.values[m]:.6g}" for m in self._values)
        return f"Tuned({len(self.trials)} trials, best {self.best.number}: {found} with {self.best.params})"


def tune(function: Callable[..., Union[float, Mapping[str, float], None]], space: Mapping[str, Parameter], *,
         minimize: Names = (), maximize: Names = (), trials: int = _TRIALS, workers: int = 1, mode: str = "threads",
         timeout: Optional[float] = None, study: Optional[Searching] = None, client: Optional[Client] = None,
         name: Optional[str] = None, image: Optional[str] = None, packages: Sequence[str] = (),
         resources: Optional[Mapping[str, str]] = None, **options: Any) -> Tuned:
    """Call the function with parameters of the space, and find those with the best result.

    function gets the parameters by name, and the Trial as `trial` if it has an argument of this
    name. It returns the objective, or a dictionary of metrics; what it reported counts where it
    returns nothing. Without minimize and maximize, what it returns is minimized.
    mode: "threads" (with one worker, the caller's own), "processes" (a new process for each
    trial, which frees its memory and may crash), or "pods" (an Experiment whose trials run the
    source of the function in an image; needs name and image, and takes packages and resources).
    timeout: after so many seconds no trial is begun, and those that run go on to their end.
    study: one to go on with, as it was made: its space, objectives, number of trials and
    settings hold. client: search at the service, in an experiment called name.
    options: those of Study, or of Client.study.

    An exception of the function fails its trial only, and is logged; tune raises it when three
    trials or more have failed, none has succeeded and none runs, or all of fewer. Ctrl-C hands
    running trials back: a thread is waited for until it reports or returns, or Ctrl-C comes
    again. The logger vernier_hpo has a line for each trial, at the level INFO.
    """
    if study is not None:
        others = {"client": client, "name": name, "trials": None if trials in (_TRIALS, getattr(study, "limit", None)) else trials}
        _check_given(study, space, minimize, maximize, {**options, **{k: v for k, v in others.items() if v}})
    if not minimize and not maximize:
        minimize = "value"
    if count("workers", workers) == 0:
        raise ValueError("workers=0: give 1 or more")
    if mode == "pods":
        if not name or not image:
            raise ValueError("mode='pods' needs name, for the experiment, and image, with Python in it")
        if timeout is not None:
            raise ValueError("mode='pods' has no timeout: write maxDuration='1h', which also ends the trials that run")
        return Tuned(pods.run(function, space, client or Client(), name, image, minimize=minimize, maximize=maximize,
                              trials=trials, parallel=workers, packages=packages, resources=resources or {}, **options))
    if mode not in ("threads", "processes"):
        raise ValueError(f"mode={mode!r}: write threads, processes or pods")
    if image or packages or resources:
        raise TypeError("image, packages and resources are for mode='pods'")
    if timeout is not None and not (isinstance(timeout, numbers.Real) and timeout >= 0):
        raise ValueError(f"timeout={timeout!r}: give a number of seconds, at least 0")
    timeout = None if timeout is None else float(timeout)
    if client is None:
        _check_names(options)
    own = study is None
    if study is None and client is not None:
        study = client.study(name or _name(function), space, minimize=minimize, maximize=maximize,
                             trials=trials, parallel=workers, **options)
        if before := len(study.trials):
            _log.warning("goes on with %s, which has %d trials: give another name= to begin anew", study.name, before)
    elif study is None:
        study = Study(space, minimize=minimize, maximize=maximize, trials=trials, parallel=workers, **options)
    try:
        _Run(function, study, in_processes=mode == "processes", timeout=timeout).all(workers)
        return Tuned(study)
    finally:
        if own and isinstance(study, Study):
            study.close()


def _name(function: Callable[..., Any]) -> str:
    """An object of Kubernetes has small letters, digits and -, and begins and ends with none of the latter."""
    name = getattr(function, "__name__", "<>")
    if "<" in name:  # <lambda>
        raise ValueError(f"{function!r} has no name: give the experiment one, with name=")
    return name.strip("_").replace("_", "-").lower()


def _check_given(study: Searching, space: Mapping[str, Parameter], minimize: Names, maximize: Names, others: Mapping[str, Any]) -> None:
    if others:
        raise TypeError(f"study= goes on with a study as it was made, where {', '.join(sorted(others))} would change nothing: "
                        "give it to Study, or leave study= out")
    if (minimize or maximize) and directions(minimize, maximize) != study.directions:
        raise ValueError(f"the study tunes {study.directions}, not {directions(minimize, maximize)}: leave minimize and maximize out")
    if space and isinstance(study, Study) and dict(space) != study.space:  # a service's may be written in another way
        differ = sorted(n for n in {**study.space, **space} if study.space.get(n) != space.get(n))
        raise ValueError(f"the space of the study is another one: {', '.join(differ)}: give tune the same, or begin a new study")


def _check_names(options: Mapping[str, Any]) -> None:
    known = {**inspect.signature(tune).parameters, **inspect.signature(Study).parameters}
    for name in options.keys() - known.keys():
        near = difflib.get_close_matches(name, known, 1)
        raise TypeError(f"tune has no argument {name}" + (f": did you mean {near[0]}?" if near else ""))


class _Run:
    grace = 5.0  # seconds that a process has when nothing waits for its result any more

    def __init__(self, function: Callable[..., Any], study: Searching, in_processes: bool,
                 timeout: Optional[float]) -> None:
        self.end = math.inf if timeout is None else time.monotonic() + timeout
        self.function, self.study, self.in_processes = function, study, in_processes
        self.takes_trial = "trial" in inspect.signature(function).parameters
        self.call = self._in_process if in_processes else self._here
        self.running, self.failed, self.ended, self.stop = 0, 0, 0, False
        self.error: Optional[BaseException] = None  # of the last trial that failed
        self.over: Set[threading.Thread] = set()
        self.raised: Optional[BaseException] = None  # by a thread, which ends all
        self._changed = threading.Condition()
        self._forking = threading.Lock()

    def all(self, workers: int) -> None:
        if workers == 1:
            self._work()
        else:
            self._in_threads(workers)
        if self.error is not None and self.failed == self.ended and all(r.state in ("failed", "pruned") for r in self.study.trials):
            raise self.error

    def _in_threads(self, workers: int) -> None:
        # Daemons: at its end a program does not wait for them.
        threads = [threading.Thread(target=self._in_thread, name=f"vernier-{i}", daemon=True) for i in range(workers)]
        try:
            for thread in threads:
                thread.start()
            self._wait_for(threads)
        except BaseException as e:
            self.stop = True
            if self.running and not self.in_processes and isinstance(e, KeyboardInterrupt):
                _log.warning("waiting for %d trials to report or to end; Ctrl-C again leaves them", self.running)
            self._wait_for(threads)
            raise
        if self.raised is not None:
            raise self.raised

    def _in_thread(self) -> None:
        try:
            self._work()
        except BaseException as e:
            self.raised, self.stop = self.raised or e, True
        finally:
            with self._changed:
                self.over.add(threading.current_thread())
                self._changed.notify_all()

    def _wait_for(self, threads: Sequence[threading.Thread]) -> None:
        with self._changed:  # not by join, after whose interrupt a thread may seem to have ended (bpo-45274)
            while any(t.ident is not None and t not in self.over for t in threads):
                self._changed.wait()

    def _hopeless(self) -> bool:
        return self.failed == self.ended and self.ended >= 3

    def _begins(self) -> bool:
        """Whether there is another trial to begin. Where all have failed, those that run decide."""
        with self._changed:
            while not self.stop and self._hopeless() and self.running:
                self._changed.wait(0.5)
        return not self.stop and time.monotonic() < self.end

    def _work(self) -> None:
        while self._begins():
            trial = self.study._ask(self.end)
            if trial is None:
                return
            with self._changed:
                self.running += 1
            self._check(trial)
            error: Optional[BaseException] = None
            measured: Any = None
            try:
                with trial:
                    if self.stop:
                        raise KeyboardInterrupt
                    measured = _succeed(trial, self.call(trial))
                came = trial.lost or trial.stop or (trial._reported if measured is None else measured) or "ended"
                _log.info("trial %d: %s with %s", trial.number, came, trial.params)
            except KeyboardInterrupt:
                if self.stop:
                    return  # why is said by what stopped it
                raise
            except Exception as e:
                error = e
                _log.warning("trial %d failed: %s: %s", trial.number, type(e).__name__, e,
                             exc_info=None if self.in_processes else e)  # a process has printed where
            self._count(error)

    def _check(self, trial: Trial) -> None:
        if not trial.resource or self.takes_trial or not isinstance(self.study, Study) or self.study._resource_name:
            return
        trial.release()
        raise TypeError("the algorithm makes most trials short: let the function take the argument trial, and train for "
                        "trial.resource; or name the parameter that says how long, with settings={'resource_name': ...}")

    def _count(self, error: Optional[BaseException]) -> None:
        with self._changed:
            self.running -= 1
            self.ended, self.failed = self.ended + 1, self.failed + (error is not None)
            self.error = error or self.error
            self._changed.notify_all()
            if error is not None and self._hopeless() and not self.running:
                self.stop = True
                raise error

    def _here(self, trial: Trial) -> Any:
        report = trial.report

        def reporting(*arguments: Any, **more: Any) -> None:
            report(*arguments, **more)
            if self.stop:
                raise KeyboardInterrupt

        trial.report = reporting  # type: ignore[method-assign]
        return self.function(**_arguments(self.function, trial.params, trial))

    def _in_process(self, trial: Trial) -> Any:
        about = {name: getattr(trial, name) for name in _TOLD}
        with self._forking:  # a pipe that another process inherits does not end with its own
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=_child, args=(self.function, about, theirs))
            process.start()
            theirs.close()
        try:
            while True:
                while not ours.poll(0.5):
                    if self.stop:
                        raise KeyboardInterrupt
                try:
                    kind, content = ours.recv()
                except EOFError:
                    self._has_ended(process)
                    raise RuntimeError(f"its process ended with {_exit(process.exitcode)}") from None
                if kind == "done":
                    return content
                if kind == "failed":
                    raise RuntimeError(content)
                try:
                    trial.report(content[1], step=content[0])
                    ours.send(None)
                except TrialStopped as e:
                    ours.send(str(e))
                if self.stop:
                    raise KeyboardInterrupt
        finally:
            with contextlib.suppress(OSError):  # to one that waits for it: others may hold our end, too
                ours.send("the search has ended")
            ours.close()
            ended = False
            try:
                ended = self._has_ended(process, self.grace)
            finally:
                if not ended:
                    with self._forking:
                        process.kill()
                        process.join()

    def _has_ended(self, process: multiprocessing.Process, timeout: Optional[float] = None) -> bool:
        if not wait([process.sentinel], timeout):
            return False
        with self._forking:  # the start of another one collects those that have ended, too
            process.join()
        return True


# What a process is told of its trial.
_TOLD = ("number", "params", "name", "attempt", "resource", "why", "seed")


class _Reporter:
    """The trial as the function sees it in a process of its own."""

    params: Dict[str, Any]

    def __init__(self, about: Mapping[str, Any], pipe: Connection) -> None:
        self.__dict__.update(about)
        self._pipe, self._steps = pipe, Steps()

    def report(self, metrics: Optional[Mapping[str, float]] = None, *, step: Optional[int] = None, **more: float) -> None:
        values = {n: float(v) for n, v in {**(metrics or {}), **more}.items()}
        why = ""
        try:
            self._pipe.send(("report", (self._steps.of(step, values), values)))
        except OSError:
            why = "the search has ended"
        try:
            why = self._pipe.recv() or why
        except (EOFError, OSError):
            why = why or "the search has ended"
        if why:
            raise TrialStopped(why)


def _child(function: Callable[..., Any], about: Mapping[str, Any], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        trial = _Reporter(about, pipe)
        result = function(**_arguments(function, trial.params, trial))
        said: Tuple[str, Any] = "done", _measured(result)
    except TrialStopped:
        said = "done", None
    except Exception as e:
        traceback.print_exc()
        said = "failed", f"{type(e).__name__}: {e}"
    with pipe, contextlib.suppress(OSError):  # its other end is closed where the search has ended
        pipe.send(said)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _arguments(function: Callable[..., Any], params: Mapping[str, Any], trial: Any) -> Dict[str, Any]:
    wanted = inspect.signature(function).parameters
    return {**params, "trial": trial} if "trial" in wanted and "trial" not in params else dict(params)


def _succeed(trial: Trial, result: Any) -> Any:
    """End the trial, and return what its function measured, if it did."""
    if trial.ended:
        return None
    if trial.stop:
        raise TrialStopped(trial.stop)
    result = _measured(result)
    if isinstance(result, dict):
        trial.succeed(**result)
    else:
        trial.succeed(result)
    return result


def _measured(result: Any) -> Union[Dict[str, Any], float, None]:
    if isinstance(result, (list, tuple)):  # as Optuna takes several objectives
        raise TypeError(f"the function returned {result!r}: return a number, or a dictionary of metrics, such as "
                        "{'loss': 0.1, 'size': 5}")
    return dict(result) if isinstance(result, Mapping) else None if result is None else float(result)


def _exit(code: Optional[int]) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}" if code != os.EX_OK else "no result"
