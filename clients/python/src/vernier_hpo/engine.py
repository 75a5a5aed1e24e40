"""The process that searches: `vernier optimize`."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from typing import Any, Dict, List, Mapping, Optional

from . import _binary
from .trial import VernierError


class Engine:
    """The process: one JSON object a line, one answer for each."""

    def __init__(self, space: Dict[str, Any], algorithm: str = "auto", settings: Optional[Mapping[str, Any]] = None,
                 seed: Optional[int] = 0, stopper: Optional[str] = None,
                 stopper_settings: Optional[Mapping[str, Any]] = None) -> None:
        self.space = space
        self._calls, self._pid = 0, os.getpid()
        self._unclaimed: List[Dict[str, Any]] = []  # answers to asks whose calls were cut short
        self._folder = tempfile.TemporaryDirectory(prefix="vernier-")
        self._path = os.path.join(self._folder.name, "space.json")
        with open(self._path, "w", encoding="utf-8") as f:
            json.dump(space, f)
        self._errors = open(os.path.join(self._folder.name, "errors"), "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [_binary.find(), "optimize", "--space", self._path,
             *_arguments(algorithm, settings, seed, stopper, stopper_settings)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
            start_new_session=True)  # Ctrl-C is for the program, which may go on
        try:
            self.call(ask=0)
        except BaseException:
            self.close()
            raise

    def call(self, **request: Any) -> Dict[str, Any]:
        """Send a request, and return its answer. The trials of an ask that Ctrl-C cut short are those of the next one."""
        if os.getpid() != self._pid:  # it would read answers that are for the other one
            raise VernierError("the study is of the process that made it: run trials in processes by tune(..., "
                               "mode='processes'), or share an experiment of the service, Client().study(...)")
        if "ask" in request and self._unclaimed:
            return self._unclaimed.pop(0)
        self._calls += 1
        answer = self._exchange(self._calls, json.dumps({**request, "id": self._calls}))
        if "ask" in request and self._unclaimed:  # found just now; an error comes again with the next ask
            if answer.get("trials"):
                self._unclaimed.append(answer)
            answer = self._unclaimed.pop(0)
        if "error" in answer:
            raise VernierError(answer["error"])
        return answer

    def _exchange(self, number: int, request: str) -> Dict[str, Any]:
        line = self._next(request + "\n")
        while True:
            answer: Dict[str, Any] = json.loads(line)
            if answer.pop("id", number) == number:
                return answer
            if answer.get("trials"):
                self._unclaimed.append(answer)
            line = self._next()

    def _next(self, request: str = "") -> str:
        try:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.write(request)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line:
            raise VernierError(self._said() or "the process of the search has ended; make a new Study")
        return line

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass
        self._process.wait()
        self._errors.close()
        self._folder.cleanup()

    def _said(self) -> str:
        """What it printed before it ended, without what is of a command line: its file of the space, its help."""
        if self._errors.closed:
            return ""
        self._process.wait()
        self._errors.seek(0)
        said, _, _ = self._errors.read().strip().partition("\nRun 'vernier")
        return said.removeprefix("vernier: ").replace(f"{self._path}: ", "")


def _arguments(algorithm: str, settings: Optional[Mapping[str, Any]], seed: Optional[int], stopper: Optional[str],
               stopper_settings: Optional[Mapping[str, Any]]) -> List[str]:
    if seed is None:
        seed = random.SystemRandom().getrandbits(31)  # not of the numbers that the program draws
    arguments = ["--algorithm", algorithm, "--seed", str(seed)]
    for name, value in (settings or {}).items():
        arguments += ["--setting", f"{name}={value}"]
    if stopper is not None:
        arguments += ["--stopper", stopper]
    for name, value in (stopper_settings or {}).items():
        arguments += ["--stopper-setting", f"{name}={value}"]
    return arguments
