"""For a program that is a trial of an Experiment: its parameters, and how it reports."""

from __future__ import annotations

import http.client
import json
import operator
import os
import socket
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence


def params(defaults: Optional[Mapping[str, Any]] = None, argv: Optional[Sequence[str]] = None) -> Dict[str, Any]:
    """The parameters from the command line (--lr=0.1 or --lr 0.1) over the defaults, whose types they get.

    A name without a default becomes a number if it looks like one. What is no --name is left out.
    Those of `vernier run --pass=file`, in the file that VERNIER_PARAMS_FILE names, are read too.
    """
    found: Dict[str, Any] = dict(defaults or {})
    if argv is None and os.environ.get("VERNIER_PARAMS_FILE"):
        with open(os.environ["VERNIER_PARAMS_FILE"], encoding="utf-8") as f:
            found.update({name: _as(value, found.get(name)) for name, value in json.load(f).items()})
    words: List[str] = list(sys.argv[1:] if argv is None else argv)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            continue
        name, equals, text = word[2:].partition("=")
        name = name if name in found else name.replace("-", "_")
        if not equals:
            if not words or words[0].startswith("--"):
                found[name] = True
                continue
            text = words.pop(0)
        found[name] = _typed(text, found.get(name))
    return found


def report(metrics: Optional[Mapping[str, float]] = None, *, step: Optional[int] = None, **more: float) -> None:
    """Report metrics to Vernier's collector; outside of a trial they are only printed.

    With the collector of kind Push they are sent to the sidecar, and are on disk when this
    returns. Otherwise they are printed as `step=3 loss=0.25`, which the collector StdOut reads.
    """
    values = {name: float(v) for name, v in {**(metrics or {}), **more}.items()}
    path = os.environ.get("VERNIER_PUSH_SOCKET")
    if path:
        _push(path, values if step is None else {**values, "step": step})
        return
    words = [] if step is None else [f"step={step}"]
    # One write, so that the lines of several threads do not mix.
    sys.stdout.write(" ".join(words + [f"{n}={v!r}" for n, v in values.items()]) + "\n")
    sys.stdout.flush()


def _push(path: str, message: Mapping[str, Any]) -> None:
    connection = http.client.HTTPConnection("collector", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.sock.connect(path)
        connection.request("POST", "/report", json.dumps(message, default=operator.index), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
    finally:
        connection.close()
    if answer.status not in (200, 410):  # 410: the program is being ended
        raise OSError(f"the collector refused {message}: {answer.status} {text}")


def _as(value: Any, default: Any) -> Any:
    other = type(value) in (str, int, float) and type(default) in (bool, str, float) and type(value) is not type(default)
    return _typed(str(value), default) if other else value


def _typed(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes", "on")
    if isinstance(default, str):
        return text
    kinds = (float,) if isinstance(default, float) else (int, float)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            pass
    return text
