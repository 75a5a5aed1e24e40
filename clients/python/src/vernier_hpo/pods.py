"""Run a function as the pods of an Experiment."""

from __future__ import annotations

import __future__
import base64
import builtins
import dis
import inspect
import json
import textwrap
import time
import types
from typing import Any, Callable, Dict, List, Mapping, Sequence

from .remote import Client, RemoteStudy
from .space import Parameter, _plain, check
from .trial import VernierError

# What the pod runs. The first argument is everything that is the same in all trials, the
# others are name=value; those of inactive parameters are left out.
_RUNNER = """
import __future__, base64, json, subprocess, sys
job = json.loads(base64.b64decode(sys.argv[1]))
if job["packages"]:
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", *job["packages"]])
params = {}
for word in sys.argv[2:]:
    name, text = word.split("=", 1)
    kind, values = job["space"][name]
    params[name] = values[text] if values else int(text) if kind == "int" else float(text)
names = {}
# Annotations are left as they are where they name what is not here.
flags = 0 if job["whole"] else __future__.annotations.compiler_flag
exec(compile(job["source"], job["name"] + ".py", "exec", flags), names)
"""
_TRIAL = """
import os
class Trial:
    def __init__(self):
        self.params, self.seed, self._step = dict(params), int(os.environ.get("VERNIER_TRIAL_SEED", "0")), -1
        self.name = os.environ.get("KATIB_TRIAL_NAME", "")
        number = self.name.rpartition("-")[2]
        self.number = int(number) if number.isdigit() else 0
        # A pod is told of none of these.
        self.attempt, self.resource, self.why, self.stop, self.lost, self.ended = 1, 0, "", "", "", False
    def report(self, metrics=None, *, step=None, **more):
        values = {**(metrics or {}), **more}
        if step is not None:
            self._step, self._metrics = int(step), set()
        elif self._step < 0 or self._metrics & values.keys():
            self._step, self._metrics = self._step + 1, set()
        self._metrics |= values.keys()
        print(f"step={self._step}", *(f"{k}={float(v)!r}" for k, v in values.items()), flush=True)
params["trial"] = Trial()
"""
_CALL = """\
result = names[job["name"]](**params)
if result is not None:
    values = result if isinstance(result, dict) else {job["metric"]: result}
    print(" ".join(f"{k}={float(v)!r}" for k, v in values.items()), flush=True)
"""


def run(function: Callable[..., Any], space: Mapping[str, Parameter], client: Client, name: str, image: str, *,
        packages: Sequence[str], resources: Mapping[str, str], **options: Any) -> RemoteStudy:
    """Create the experiment (or find it), wait for its end, and return it."""
    goals = options["minimize"] or options["maximize"]
    template = _template(function, space, image, goals if isinstance(goals, str) else goals[0], packages, resources)
    study = client.study(name, space, trialTemplate=template, **options)
    pause = 0.5
    while True:
        experiment = client.call("GetExperiment", name=study.name)
        if experiment.get("state") == "FAILED":
            raise VernierError(f"{study.name} has failed: {experiment.get('message', '')}")
        if experiment.get("state") == "SUCCEEDED":
            return study
        time.sleep(pause)
        pause = min(pause * 1.5, 10)


def _template(function: Callable[..., Any], space: Mapping[str, Parameter], image: str, metric: str,
              packages: Sequence[str], resources: Mapping[str, str]) -> Dict[str, Any]:
    if function.__name__ == "<lambda>":
        raise ValueError("mode='pods' sends the source of the function: define it with def")
    check(space)
    source = textwrap.dedent(inspect.getsource(function))
    missing = _missing(source, function.__name__)
    if missing:
        raise ValueError(f"mode='pods' sends the source of {function.__name__} alone, and it uses "
                         f"{', '.join(missing)}: import or define that within the function (a decorator cannot be sent)")
    try:
        job = json.dumps({
            "source": source, "name": function.__name__, "metric": metric,
            "packages": list(packages), "whole": not _missing(source, function.__name__, 0),
            "space": {n: (p.kind, dict(zip(p.words(), map(_plain, p.values)))) for n, p in space.items()},
        })
    except TypeError as e:
        raise ValueError(f"mode='pods' sends the values of choices as JSON: {e}") from e
    takes_trial = "trial" in inspect.signature(function).parameters and "trial" not in space
    runner = _RUNNER + (_TRIAL if takes_trial else "") + _CALL
    container: Dict[str, Any] = {
        "name": "function", "image": image,
        "command": ["python3", "-c", runner, base64.b64encode(job.encode()).decode()]
        + [f"{n}=${{trialParameters.{n}}}" for n in space],
    }
    if resources:
        container["resources"] = {"limits": dict(resources)}
    return {
        "primaryContainerName": "function",
        "trialParameters": [{"name": n, "reference": n} for n in space],
        "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [container]}}}},
    }


def _missing(source: str, name: str, flags: int = __future__.annotations.compiler_flag) -> List[str]:
    """The names that a function's source uses, in its defaults and decorators too, and has not by itself."""
    used, has = set(), {name, *dir(builtins)}
    todo = [compile(source, name, "exec", flags, dont_inherit=True)]
    for code in todo:
        for i in dis.get_instructions(code):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                used.add(i.argval)
            elif i.opname in ("STORE_GLOBAL", "STORE_NAME"):
                has.add(i.argval)
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted(n for n in used - has if not n.startswith("__"))
