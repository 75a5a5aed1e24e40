"""Vernier's algorithms inside Optuna: optuna.create_study(sampler=VernierSampler())."""

from __future__ import annotations

import threading
from typing import Any, Dict, Mapping, Optional

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .engine import Engine
from .space import Parameter, for_engine

_STATES = {TrialState.COMPLETE: "succeeded", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed",
           TrialState.RUNNING: "running"}


class VernierSampler(BaseSampler):
    """Proposes, by an algorithm of Vernier, the parameters that all trials have in common.

    Others, and all of the first trial, are drawn at random. With search_space the algorithm
    proposes from the first trial on.
    """

    def __init__(self, algorithm: str = "auto", settings: Optional[Mapping[str, Any]] = None, seed: Optional[int] = 0,
                 search_space: Optional[Dict[str, BaseDistribution]] = None) -> None:
        self._algorithm, self._settings, self._seed, self._given = algorithm, settings, seed, search_space
        self._lock = threading.Lock()  # Optuna's n_jobs
        self._common = IntersectionSearchSpace()
        self._random = RandomSampler(seed=seed)
        self._engine: Optional[Engine] = None
        self._space: Dict[str, BaseDistribution] = {}
        self._numbers: Dict[int, int] = {}  # of the search, by Optuna's
        self._told: Dict[int, TrialState] = {}

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Dict[str, BaseDistribution]:
        space = self._given or self._common.calculate(study)
        return {n: d for n, d in space.items() if not d.single()}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial,
                        search_space: Dict[str, BaseDistribution]) -> Dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            engine = self._engine_for(study, search_space)
            for t in study.get_trials(deepcopy=False):
                if t.number != trial.number and t.state in _STATES and self._told.get(t.number) != t.state:
                    self._tell(engine, t)
            asked = engine.call(ask=1)["trials"]
            if not asked:  # the space is used up, or the algorithm waits for results
                return {}
            self._numbers[trial.number] = asked[0]["number"]
        return {n: _external(d, asked[0]["params"][n]) for n, d in search_space.items()}

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str,
                           param_distribution: BaseDistribution) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        self._random.reseed_rng()

    def __getstate__(self) -> Dict[str, Any]:
        # A copy in another process starts a search of its own, and is told what is known.
        return {**self.__dict__, "_engine": None, "_lock": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def _engine_for(self, study: optuna.Study, space: Dict[str, BaseDistribution]) -> Engine:
        if self._engine is None or self._space != space:
            if self._engine is not None:
                self._engine.close()
            self._space, self._numbers, self._told = dict(space), {}, {}
            self._engine = Engine({
                "parameters": for_engine({n: _parameter(d) for n, d in space.items()}),
                "objectives": [{"name": f"value{i}", "type": "maximize" if d == StudyDirection.MAXIMIZE else "minimize"}
                               for i, d in enumerate(study.directions)],
            }, self._algorithm, self._settings, self._seed)
        return self._engine

    def _tell(self, engine: Engine, t: FrozenTrial) -> None:
        told: Dict[str, Any] = {"state": _STATES[t.state]}
        numbered = t.number in self._numbers
        if numbered:
            told["number"] = self._numbers[t.number]
        if all(n in t.params and d == t.distributions[n] for n, d in self._space.items()):
            # Those of enqueued trials are not what was proposed, and may be out of range.
            told["params"] = {n: _internal(d, t.params[n]) for n, d in self._space.items()}
            if not all(d._contains(d.to_internal_repr(t.params[n])) for n, d in self._space.items()):
                if numbered:
                    engine.call(tell=[{"number": told["number"], "state": "unmeasured"}])
                self._told[t.number] = t.state
                return
        elif not numbered:
            return
        if t.state == TrialState.COMPLETE:
            told["values"] = t.values
        if t.intermediate_values:  # Optuna has them for one objective only
            told["curve"] = sorted(t.intermediate_values.items())
        answer = engine.call(tell=[told])
        if not numbered:
            (self._numbers[t.number],) = answer["numbers"]
        self._told[t.number] = t.state


def _parameter(d: BaseDistribution) -> Parameter:
    if isinstance(d, CategoricalDistribution):
        return Parameter("categorical", values=tuple(str(i) for i in range(len(d.choices))))
    assert isinstance(d, (FloatDistribution, IntDistribution))
    kind = "double" if isinstance(d, FloatDistribution) else "int"
    step = d.step if d.step and not (kind == "int" and d.step == 1) else None
    return Parameter(kind, d.low, d.high, step, "logUniform" if d.log else "uniform")


def _external(d: BaseDistribution, value: Any) -> Any:
    if isinstance(d, CategoricalDistribution):
        return d.choices[int(value)]
    return float(value) if isinstance(d, FloatDistribution) else int(value)


def _internal(d: BaseDistribution, value: Any) -> Any:
    return str(int(d.to_internal_repr(value))) if isinstance(d, CategoricalDistribution) else value
