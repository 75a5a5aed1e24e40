"""The client of Vernier's service: experiments in a cluster, trials that run here."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import itertools
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
import uuid
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from . import bounds
from .space import Parameter, encoded, for_experiment, from_experiment
from .study import Names, Searching, count, directions
from .trial import Result, Trial, TrialLost, VernierError

_STATES = {"SUCCEEDED": "succeeded", "PRUNED": "pruned", "FAILED": "failed", "INFEASIBLE": "infeasible",
           "RUNNING": "running", "STOPPING": "running", "PENDING": "pending", "UNMEASURED": "unmeasured",
           "CANCELLED": "cancelled"}
# What a later program may ask otherwise, of the same experiment.
_BUDGET = ("maxTrialCount", "parallelTrialCount", "resumePolicy")
# For how long, in seconds, a service that has answered before is waited for: a manager that
# is replaced is away for half a minute.
_PATIENCE = 120
# Of a trial that is another worker's, or that is no more.
_LOST = ("STALE_ATTEMPT", "NOT_FOUND", "ALREADY_COMPLETED")


class Client:
    """Vernier's service.

    server: its URL. Default: $VERNIER_SERVER, or that of `vernier up` on this machine. token:
    default $VERNIER_TOKEN, or that of `vernier up`. ca: a file with the certificate of the
    service's authority. namespace: where experiments are.
    lease: for how many seconds a trial stays this program's without a heartbeat.
    """

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None, *, ca: Optional[str] = None,
                 namespace: str = "default", lease: float = 60) -> None:
        self.server = (server or os.environ.get("VERNIER_SERVER") or _home_server()).rstrip("/")
        self._answered = False
        self._token = token or os.environ.get("VERNIER_TOKEN") or _home_file("api.token")
        self.namespace, self.lease = namespace, lease
        handlers: List[urllib.request.BaseHandler] = []
        if ca:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca)))
        if "//127.0.0.1" in self.server or "//localhost" in self.server:
            handlers.append(urllib.request.ProxyHandler({}))  # a proxy does not reach this machine
        self._opener = urllib.request.build_opener(*handlers)

    def study(self, name: str, space: Optional[Mapping[str, Parameter]] = None, *, minimize: Names = (),
              maximize: Names = (), trials: Optional[int] = None, parallel: int = 4, algorithm: str = "auto",
              settings: Optional[Mapping[str, Any]] = None, seed: Optional[int] = None,
              stopper: Optional[str] = None, stopper_settings: Optional[Mapping[str, Any]] = None,
              constraints: Sequence[str] = (), initial: Sequence[Mapping[str, Any]] = (),
              worker: Optional[str] = None, **spec: Any) -> "RemoteStudy":
        """The experiment of this name. With a space it is created, unless there is the same one already, which
        goes on if trials is more than it was for (with as many at a time as parallel says, if that is more); stopper, constraints and initial are as in Study, spec are further
        fields of its spec, such as maxFailedTrialCount."""
        if stopper is not None and "earlyStopping" in spec:
            raise TypeError("stopper and earlyStopping both name a rule: leave one out")
        if "file" in spec:
            raise TypeError("file is of a Study on this machine: leave it out, the service keeps the experiment")
        path = f"namespaces/{self.namespace}/experiments/{name}"
        if space is None:
            made = self.call("GetExperiment", name=path)
            space = from_experiment(made["spec"].get("parameters", []))
        else:
            made = self._make(path, _spec(
                space, directions(minimize, maximize), trials, parallel, algorithm, settings, seed, constraints,
                {**_stopping(stopper, stopper_settings), **_initial(space, initial), **spec}))
        return RemoteStudy(self, path, space, made["spec"], worker)

    def _make(self, path: str, spec: Dict[str, Any]) -> Dict[str, Any]:
        """Create an experiment, or go on with the one that differs in its budget at most."""
        try:
            return self.call("CreateExperiment", experiment={"name": path, "spec": spec})
        except VernierError as e:
            if e.reason != "ALREADY_EXISTS":
                raise
            there, seen = self.call("GetExperiment", name=path), None
            budget = {f: there["spec"][f] for f in _BUDGET if f in there["spec"]}
            while budget != seen:  # another program may change it meanwhile
                same = {**{f: v for f, v in spec.items() if f not in _BUDGET}, **budget}
                with contextlib.suppress(VernierError):
                    self.call("CreateExperiment", experiment={"name": path, "spec": same})
                    break
                there, seen = self.call("GetExperiment", name=path), budget
                budget = {f: there["spec"][f] for f in _BUDGET if f in there["spec"]}
            else:
                raise e from None  # it differs in more
        return self._grow(path, there, spec)

    def _grow(self, path: str, there: Dict[str, Any], spec: Mapping[str, Any]) -> Dict[str, Any]:
        """Allow more trials if the spec asks for more, and wait until the experiment has seen it."""
        trials, grown = spec.get("maxTrialCount", 0), False
        for _ in range(20):  # another program may do the same
            has = there["spec"]
            if has.get("maxTrialCount", trials) >= trials:
                break
            more = {"maxTrialCount": trials,
                    "parallelTrialCount": max(spec["parallelTrialCount"], has.get("parallelTrialCount", 0))}
            try:
                there = self.call("UpdateExperiment", updateMask="spec.maxTrialCount,spec.parallelTrialCount", experiment={
                    "name": path, "etag": there.get("etag", ""), "spec": more})
                grown = True
            except VernierError as e:
                if e.reason != "CONFLICT":
                    raise
                time.sleep(random.uniform(0, 0.2))
                there = self.call("GetExperiment", name=path)
        room = there["spec"].get("maxTrialCount", 0)
        for _ in range(60 if grown else 4):  # another program may have asked for them just now
            if there.get("state") != "SUCCEEDED" or there.get("trials", 0) >= room:
                break
            time.sleep(0.5)
            there = self.call("GetExperiment", name=path)
        return there

    def call(self, method: str, **message: Any) -> Dict[str, Any]:
        """Call a method of vernier.v1.ExperimentService with a message as JSON. What fails in passing is repeated."""
        return self._call(method, message, _PATIENCE)

    def _call(self, method: str, message: Mapping[str, Any], patience: float) -> Dict[str, Any]:
        body = json.dumps(message).encode()
        began = time.monotonic()
        for attempt in itertools.count():
            request = urllib.request.Request(
                f"{self.server}/vernier.v1.ExperimentService/{method}", body,
                {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"})
            try:
                with self._opener.open(request, timeout=90) as response:
                    answer: Dict[str, Any] = json.load(response)
                    self._answered = True
                    return answer
            except urllib.error.HTTPError as e:
                with e:
                    failure = _failure(e)
            except (OSError, ValueError, http.client.HTTPException) as e:
                reason = getattr(e, "reason", e)
                failure = VernierError(f"{self.server} does not answer ({reason}); is `vernier up` running?",
                                       "UNAVAILABLE")
            patient = self._answered and time.monotonic() - began < patience
            if failure.reason != "UNAVAILABLE" or attempt >= 6 and not patient:
                raise failure
            time.sleep(random.uniform(0.5, 1) * min(0.2 * 2 ** attempt, 5))
        raise AssertionError  # the loop has no end


class RemoteStudy(Searching):
    """An experiment whose trials run here. Client.study makes it.

    May be used from several threads, and from several programs at once. Each trial is kept by
    heartbeats while it runs.
    """

    def __init__(self, client: Client, name: str, space: Mapping[str, Parameter], spec: Mapping[str, Any],
                 worker: Optional[str] = None) -> None:
        self.client, self.name, self.space, self.directions = client, name, dict(space), _objectives(spec)
        self.bounds = bounds.listed(spec.get("constraints", []))
        self._metrics = {*self.objectives, *(b.metric for b in self.bounds),
                         *spec.get("objective", {}).get("additionalMetricNames", [])}
        self.worker = worker or f"{socket.gethostname()}/{os.getpid()}"

    def _ask(self, until: float) -> Optional[Trial]:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return None
            answer = self.client.call("SuggestTrials", parent=self.name, count=1, worker=self.worker,
                                      requestId=str(uuid.uuid4()), lease=f"{self.client.lease:g}s",
                                      maxWait=f"{min(20, left):.3f}s")
            for t in answer.get("trials", []):
                # A trial whose answer was lost on the way is handed out again when its lease expires.
                trial = _Leased(self, t["number"] if "number" in t else 0, self._params(t), name=t["name"],
                                attempt=t["attempt"], resource=t.get("resource", 0), why=t.get("why", ""),
                                seed=t.get("seed"))
                trial.client, trial.reported = self.client, set()
                trial.keep()
                return trial
            if answer.get("state", "ACTIVE") != "ACTIVE":
                return None
            time.sleep(max(0, min(float(answer.get("retryAfter", "1s").rstrip("s")), 20, until - time.monotonic())))

    @property
    def trials(self) -> List[Result]:
        return list(self._pages())

    def _pages(self) -> Iterator[Result]:
        token = ""
        while True:
            page = self.client.call("ListTrials", parent=self.name, pageToken=token)
            for t in page.get("trials", []):
                yield Result(t.get("number", 0), self._params(t), _STATES.get(t.get("state", ""), "pending"),
                             self._in_order({k: float(v) for k, v in t.get("values", {}).items()}),
                             (t.get("state") != "SUCCEEDED" and t.get("message")) or t.get("why", ""))
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _params(self, trial: Mapping[str, Any]) -> Dict[str, Any]:
        return {n: self.space[n].decode(v) if n in self.space else v for n, v in trial.get("parameters", {}).items()}

    def _report(self, trial: Trial, step: int, values: Mapping[str, float]) -> Optional[str]:
        _leased(trial).reported.update(values)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        return _leased(trial).renew([{"step": step, "values": _json(values), "time": now}])

    def _complete(self, trial: Trial, outcome: str, values: Mapping[str, float], reason: str) -> None:
        if outcome == "succeeded":
            missing = bounds.lacking(self.bounds, {*values, *_leased(trial).reported})
            if missing:
                raise VernierError(f"trial {trial.number} has no {', '.join(missing)}, which is bounded: report it, or "
                                   "pass it to succeed", "NOT_MEASURED")
            others = {m: v for m, v in values.items() if m not in self._metrics}
            if others:  # the experiment keeps them with the trial's curves
                at = trial._steps.last + 1 if _leased(trial).reported & others.keys() else max(trial._steps.last, 0)
                self._report(trial, at, others)  # the first point of a step counts
            values = {m: v for m, v in values.items() if m in self._metrics}
        _leased(trial).let_go()
        message: Dict[str, Any] = {"name": trial.name, "attempt": trial.attempt}
        try:
            if outcome == "released":
                self.client._call("ReleaseTrial", message, 0)  # the program is to end
                return
            message[outcome] = {"values": _json(values)} if outcome == "succeeded" else (
                {} if outcome == "pruned" else {"reason": _text(reason[:1000])})
            self.client.call("CompleteTrial", **message)
        except VernierError as e:
            if e.reason in _LOST:
                trial.ended = True
                raise TrialLost(str(e)) from e
            _leased(trial).keep()
            raise


class _Leased(Trial):
    """A trial that renews its lease in the background."""

    _beat: Optional[threading.Event] = None
    client: Client
    reported: Set[str]

    def keep(self) -> None:
        self._beat = threading.Event()
        threading.Thread(target=self._renew_always, args=(self._beat,), daemon=True,
                         name=f"vernier-lease-{self.number}").start()

    def let_go(self) -> None:
        if self._beat is not None:
            self._beat.set()

    def renew(self, measurements: List[Dict[str, Any]]) -> Optional[str]:
        """Send measurements, which may be none. Returns why to stop."""
        try:
            answer = self.client.call("ReportTrial", name=self.name, attempt=self.attempt, measurements=measurements)
        except VernierError as e:
            if e.reason not in _LOST:
                raise
            self.lost = str(e)
            self.let_go()
            return None
        if answer.get("directive") == "STOP":
            self.stop = answer.get("why") or "a stopping rule"
        return self.stop or None

    def _renew_always(self, ended: threading.Event) -> None:
        while not ended.wait(self.client.lease / 3):
            with contextlib.suppress(VernierError):  # the next report says it
                self.renew([])


def _leased(trial: Trial) -> _Leased:
    assert isinstance(trial, _Leased)
    return trial


def _spec(space: Mapping[str, Parameter], goals: Sequence[Tuple[str, str]], trials: Optional[int], parallel: int,
          algorithm: str, settings: Optional[Mapping[str, Any]], seed: Optional[int], constraints: Sequence[str],
          more: Mapping[str, Any]) -> Dict[str, Any]:
    objectives = [{"type": d, "objectiveMetricName": m} for m, d in goals]
    at_once, limit = count("parallel", parallel), None if trials is None else count("trials", trials)
    spec: Dict[str, Any] = {
        "parameters": for_experiment(space), "parallelTrialCount": min(at_once, limit or at_once),
        "algorithm": {"algorithmName": algorithm, "algorithmSettings": _settings(settings)},
        "resumePolicy": "LongRunning",  # so that more trials may follow
    }
    on_parameters, bounded = bounds.split(constraints, space)
    if len(objectives) == 1:
        spec["objective"] = objectives[0]
    else:
        spec["objectives"] = objectives
    if limit is not None:
        spec["maxTrialCount"] = limit
    if seed is not None:
        spec["seed"] = seed
    if on_parameters:
        spec["parameterConstraints"] = on_parameters
    if bounded:
        spec["constraints"] = [b.as_json("metricName") for b in bounded]
    return {**spec, **more}


def _stopping(stopper: Optional[str], settings: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    if stopper is None:
        if settings:
            raise ValueError("stopper_settings is given without stopper: name the rule, as in stopper='asha'")
        return {}
    return {"earlyStopping": {"algorithmName": stopper, "algorithmSettings": _settings(settings)}}


def _initial(space: Mapping[str, Parameter], points: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    return {"initialTrials": [{"parameterAssignments": [
        {"name": n, "value": str(v)} for n, v in p.items()]} for p in encoded(space, points)]} if points else {}


def _settings(settings: Optional[Mapping[str, Any]]) -> List[Dict[str, str]]:
    return [{"name": n, "value": str(v)} for n, v in (settings or {}).items()]


def _objectives(spec: Mapping[str, Any]) -> List[Tuple[str, str]]:
    listed = spec.get("objectives") or [spec["objective"]]
    return [(o["objectiveMetricName"], o["type"]) for o in listed]


def _json(values: Mapping[str, float]) -> Dict[str, Any]:
    # JSON has no such numbers; the service takes these words.
    return {n: v if v - v == 0 else "NaN" if v != v else "Infinity" if v > 0 else "-Infinity" for n, v in values.items()}


def _text(text: str) -> str:
    # The name of a file whose bytes are no UTF-8 has surrogates, which the service refuses.
    return text.encode("utf-8", "replace").decode("utf-8")


def _failure(e: urllib.error.HTTPError) -> VernierError:
    text = e.read().decode("utf-8", "replace")
    try:
        said = json.loads(text)
        debug: Dict[str, Any] = next((d.get("debug", {}) for d in said.get("details", [])), {})
        reason = debug.get("reason", "")
        if said.get("code") == "unavailable":
            reason = "UNAVAILABLE"
        return VernierError(said.get("message", text), reason)
    except (ValueError, AttributeError):
        return VernierError(f"HTTP {e.code}: {text[:500]}", "UNAVAILABLE" if e.code in (502, 503, 504) else "")


def _home_server() -> str:
    ports = _home_file("ports.json")
    if not ports:
        raise VernierError("there is no instance on this machine: start one with `vernier up`, or name the server")
    return f"http://127.0.0.1:{json.loads(ports)['report']}"


def _home_file(name: str) -> str:
    home = os.environ.get("VERNIER_HOME") or os.path.join(
        os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "vernier")
    try:
        with open(os.path.join(home, name), encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""
