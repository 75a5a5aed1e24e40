"""Plays other tuners: JSON Lines on standard input and output.

    peer.py NAME

Requests are {"open":{...}}, {"ask":n}, {"tell":[...]} and {"report":{...}}, as
`vernier optimize` knows them; "open" carries what its flags say, and "load"
trials that the tuner has not proposed. Each answer
has the seconds of CPU and wall time that it took. One process plays many games
in turn, each with the state and the seed of its own.
"""

import importlib
import json
import os
import random
import sys
import time
import traceback

# NAME is MODULE-VARIANT; the module has a class Player(game, variant).
MODULES = {"optuna": "with_optuna", "hyperopt": "with_hyperopt", "skopt": "with_skopt"}


class Game:
    """What "open" says."""

    def __init__(self, opened):
        space = opened["space"]
        self.parameters = space["parameters"]
        self.objectives = len(space["objectives"])
        self.constraints = len(space.get("constraints") or [])
        self.budget = space.get("budget", 0)
        self.seed = opened["seed"]
        self.parallel = opened.get("parallel", 1)
        self.steps = opened.get("steps", 0)


def main():
    name = sys.argv[1]
    family, _, variant = name.partition("-")
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    module = importlib.import_module(MODULES.get(family, "with_" + family))
    player = None
    for line in sys.stdin:
        request = json.loads(line)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            if "open" in request:
                player = None
                game = Game(request["open"])
                random.seed(game.seed)
                player = module.Player(game, variant)
                answer = {"ok": True}
            else:
                answer = play(player, request)
        except Exception as error:  # whatever a library raises is an answer too
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answer["cpu"] = time.process_time() - cpu
        answer["wall"] = time.perf_counter() - wall
        answers.write(json.dumps(answer, default=plain) + "\n")
        answers.flush()


def play(player, request):
    if "ask" in request:
        trials = player.ask(request["ask"])
        return {"trials": [trial(*t) for t in trials], "exhausted": not trials}
    if "tell" in request:
        player.tell(request["tell"])
        return {"ok": True}
    if "report" in request:
        r = request["report"]
        return {"stop": bool(player.report(r["number"], r["step"], r["value"]))}
    if "load" in request:
        player.load(request["load"])
        return {"ok": True}
    return {"error": f"unknown request {request}"}


def trial(number, params, resource=0):
    """A trial of an answer; resource is how many steps to train, 0 for all."""
    return {"number": number, "params": params, "resource": resource}


def plain(value):
    """JSON for numpy's scalars."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value)} is no JSON")


if __name__ == "__main__":
    main()
