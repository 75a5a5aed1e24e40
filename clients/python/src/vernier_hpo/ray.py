"""Vernier's algorithms inside Ray Tune: Tuner(tune_config=TuneConfig(search_alg=VernierSearch(space, ...)))."""

from __future__ import annotations

import pickle
from typing import Any, Dict, Mapping, Optional

from ray.tune.search import Searcher

from .engine import Engine
from .space import Parameter, for_engine


class VernierSearch(Searcher):
    """Proposes trials for Ray Tune by an algorithm of Vernier.

    space: parameters by name, made with uniform, choice and the others of this package. metric
    and mode are those of TuneConfig unless they are given here. For trials that are stopped
    early the last result counts.
    """

    def __init__(self, space: Mapping[str, Parameter], metric: Optional[str] = None, mode: Optional[str] = None, *,
                 algorithm: str = "auto", settings: Optional[Mapping[str, Any]] = None,
                 seed: Optional[int] = 0) -> None:
        super().__init__(metric=metric, mode=mode)
        self._space, self._arguments = dict(space), (algorithm, dict(settings or {}), seed)
        self._engine: Optional[Engine] = None
        self._asked: Dict[str, Dict[str, Any]] = {}
        self._ended: Dict[str, Dict[str, Any]] = {}

    def set_search_properties(self, metric: Optional[str], mode: Optional[str], config: Dict[str, Any], **spec: Any) -> bool:
        if config:
            return False  # the space is given here, not as the param_space of the Tuner
        self._metric, self._mode = self._metric or metric, self._mode or mode
        return True

    def suggest(self, trial_id: str) -> Any:
        answer = self._running().call(ask=1)
        if not answer["trials"]:
            return Searcher.FINISHED if answer["exhausted"] else None
        (asked,) = answer["trials"]
        self._asked[trial_id] = asked
        return {n: self._space[n].decode(v) for n, v in asked["params"].items()}

    def on_trial_complete(self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False) -> None:
        if trial_id not in self._asked:
            return
        value = (result or {}).get(str(self._metric))
        ended: Dict[str, Any] = {"state": "failed" if error else "unmeasured" if value is None else "succeeded"}
        if not error and value is not None:
            ended["values"] = [float(value)]
        self._ended[trial_id] = {**self._asked[trial_id], **ended}
        self._running().call(tell=[self._ended[trial_id]])

    def save(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "wb") as f:
            pickle.dump((self._metric, self._mode, self._asked, self._ended), f)

    def restore(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "rb") as f:
            self._metric, self._mode, self._asked, self._ended = pickle.load(f)
        if self._engine is not None:
            self._engine.close()
        self._go_on()

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_engine": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._go_on()

    def _go_on(self) -> None:
        """Tell a new process what is known."""
        self._engine = None
        known = [self._ended.get(i, {**asked, "state": "pending"}) for i, asked in self._asked.items()]
        if known:
            self._running().call(tell=known)

    def _running(self) -> Engine:
        if self._engine is None:
            if self._metric is None or self._mode not in ("min", "max"):
                raise ValueError("name metric and mode ('min' or 'max'), here or in the TuneConfig")
            algorithm, settings, seed = self._arguments
            self._engine = Engine({
                "parameters": for_engine(self._space),
                "objectives": [{"name": self._metric, "type": "minimize" if self._mode == "min" else "maximize"}],
            }, algorithm, settings, seed)
        return self._engine
