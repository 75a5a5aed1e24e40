"""What is asked of the service, without one."""

import http.server
import os
import subprocess
import sys
import threading

import pytest

from vernier_hpo import Client, RemoteStudy, Study, VernierError, choice, tune, uniform
from vernier_hpo.pods import run

SPACE = {"lr": uniform(0, 1), "opt": choice("a", "b")}


@pytest.fixture
def asked(monkeypatch):
    specs = []

    def call(self, method, **message):
        if method == "CreateExperiment":
            specs.append(message["experiment"]["spec"])
            return message["experiment"]
        return {"state": "SUCCEEDED"}

    monkeypatch.setattr(Client, "call", call)
    return specs


def test_an_answer_that_breaks_off_is_asked_for_again(monkeypatch):
    answers = [b'{"state": "ACT', b'{"state": "ACTIVE"}']

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "19")
            self.end_headers()
            self.wfile.write(answers.pop(0))

        def log_message(self, *_):
            pass

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with http.server.HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", "token")
        assert client.call("GetExperiment", name="any") == {"state": "ACTIVE"}
        server.shutdown()


def test_a_service_that_has_answered_is_waited_for(monkeypatch):
    answers = [503] * 3 + [200] + [503] * 20 + [200] + [503]

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            code = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(code)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}" if code == 200 else b"no")  # of a proxy

        def log_message(self, *_):
            pass

    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    with http.server.HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}", "token")
        for _ in range(2):
            assert client.call("CompleteTrial", name="any") == {}
        assert answers == [503]
        started = now[0]
        with pytest.raises(VernierError):
            client.call("CompleteTrial", name="any")
        assert 100 < now[0] - started < 140
        started = now[0]
        with pytest.raises(VernierError):
            Client(client.server, "token").call("CompleteTrial", name="any")
        assert now[0] - started < 20
        server.shutdown()


def served():
    return Client("http://127.0.0.1:1", "token")


def loss(lr, opt):
    return lr


def test_a_stopper_of_a_served_study_is_its_early_stopping(asked):
    tune(loss, SPACE, client=served(), stopper="asha", stopper_settings={"reduction_factor": 3})
    tune(loss, SPACE, client=served())
    assert asked[0]["earlyStopping"] == {"algorithmName": "asha", "algorithmSettings": [
        {"name": "reduction_factor", "value": "3"}]}
    assert "earlyStopping" not in asked[1]


def test_initial_points_of_a_served_study_are_its_initial_trials(asked):
    tune(loss, SPACE, client=served(), initial=[{"lr": 0.5, "opt": "b"}])
    assert asked[0]["initialTrials"] == [{"parameterAssignments": [
        {"name": "lr", "value": "0.5"}, {"name": "opt", "value": "b"}]}]


def test_bounds_of_other_libraries_are_numbers(asked):
    class Float(float):
        def __repr__(self):
            return f"np.float64({float(self)})"

        def item(self):
            return float(self)

    tune(loss, {**SPACE, "lr": uniform(Float(0.25), 1)}, client=served())
    assert asked[0]["parameters"][0]["feasibleSpace"] == {"min": "0.25", "max": "1"}


@pytest.mark.parametrize("options, error, says", [
    ({"initial": [{"lrr": 0.5}]}, ValueError, "no parameter lrr; the space has lr, opt"),
    ({"initial": {"lr": 0.5}}, TypeError, "list of points"),
])
def test_a_wrong_initial_point_is_named(asked, options, error, says):
    for more in ({}, {"client": served()}):
        with pytest.raises(error, match=says):
            tune(loss, SPACE, **options, **more)


@pytest.mark.parametrize("options, error", [
    ({"stopper_settings": {"r_max": 27}}, ValueError),
    ({"stopper": "asha", "earlyStopping": {"algorithmName": "medianstop"}}, TypeError),
])
def test_one_rule_stops_trials_of_a_served_study(asked, options, error):
    with pytest.raises(error, match="stopper"):
        tune(loss, SPACE, client=served(), **options)


@pytest.mark.parametrize("budgets", [[8], [3, 8], [3, 5, 8]])
def test_an_experiment_that_others_grow_meanwhile_is_the_same(monkeypatch, budgets):
    looked = []

    def call(self, method, **message):
        if method == "GetExperiment":
            looked.append(budgets[min(len(looked), len(budgets) - 1)])
            return {"spec": {**spec, "maxTrialCount": looked[-1]}}
        spec.update(message["experiment"]["spec"])
        if not looked or spec["maxTrialCount"] != budgets[-1]:
            raise VernierError("there is an experiment with another spec", "ALREADY_EXISTS")
        return message["experiment"]

    spec = {}
    monkeypatch.setattr(Client, "call", call)
    assert served().study("any", SPACE, minimize="loss", trials=7).objectives == ["loss"]
    assert looked == budgets


def test_why_a_trial_failed_is_text_that_the_service_takes(monkeypatch):
    said = []

    def call(self, method, **message):
        if method == "CompleteTrial":
            said.append(message["failed"]["reason"])
        return {"trials": [{"name": "any-0000", "attempt": 1, "parameters": {"lr": "0.5", "opt": "a"}}]}

    monkeypatch.setattr(Client, "call", call)
    study = RemoteStudy(served(), "any", SPACE, {"objective": {"objectiveMetricName": "loss", "type": "minimize"}})
    with pytest.raises(FileNotFoundError), study.ask():
        raise FileNotFoundError("no file caf\udce9.csv")
    assert said == ["FileNotFoundError: no file caf?.csv"]


def test_a_served_study_has_no_file(asked):
    with pytest.raises(TypeError, match="file is of a Study on this machine"):
        tune(loss, SPACE, client=served(), file="study.jsonl")


@pytest.mark.parametrize("search", [
    lambda space: tune(loss, space),
    lambda space: Study(space, minimize="loss"),
    lambda space: served().study("name", space, minimize="loss"),
    lambda space: run(loss, space, served(), "name", "image", packages=(), resources={}, minimize="loss", maximize=()),
])
def test_what_is_no_parameter_is_named(asked, search):
    with pytest.raises(TypeError, match=r"lr: \(0, 1\) is no parameter; write uniform\(0, 1\)"):
        search({"lr": (0, 1)})


def decorated(function):
    return function


def alone(lr: SPACE, opt="a") -> SPACE:
    import math as m

    class Scaled:
        by = 2
        twice = by * 2

    steps: SPACE = [m.exp(lr) for _ in range(3)]
    return {"loss": sum(steps) * Scaled.twice, "lr": alone.__name__ and lr}


def with_types(lr, opt="a"):
    import dataclasses
    import typing

    @dataclasses.dataclass
    class Arguments:
        name: typing.Optional[str] = None

    return float("name" in typing.get_type_hints(Arguments))


def of_a_module(lr, opt):
    return [threading.active_count() for _ in range(2)]


def by_default(lr, opt=SPACE):
    return lr


@decorated
def wrapped(lr, opt):
    return lr


@pytest.mark.parametrize("function, name", [(of_a_module, "threading"), (by_default, "SPACE"), (wrapped, "decorated")])
def test_a_function_that_would_fail_in_pods_is_refused(function, name):
    with pytest.raises(ValueError, match=f"uses {name}:"):
        run(function, SPACE, served(), "name", "image", packages=(), resources={}, minimize="loss", maximize=())


def reporting(lr, trial, opt="a"):
    for step in range(2):
        trial.report({"val/loss": step}, loss=trial.params["lr"])
    trial.report(step=7, seed=trial.seed, number=trial.number)
    assert trial.name == "name-0007" and not trial.stop


@pytest.mark.parametrize("function, printed", [
    (alone, "loss=12.0 lr=0.0\n"), (with_types, "loss=1.0\n"),
    (reporting, "step=0 val/loss=0.0 loss=0.0\nstep=1 val/loss=1.0 loss=0.0\nstep=7 seed=0.0 number=7.0\n")])
def test_a_function_that_has_all_it_uses_runs_from_its_source(asked, function, printed):
    run(function, SPACE, served(), "name", "image", packages=(), resources={}, minimize="loss", maximize=())
    (container,) = asked[0]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]["containers"]
    command = [sys.executable, *container["command"][1:4], "lr=0"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "KATIB_TRIAL_NAME": "name-0007"})
    assert out.stdout == printed


class Training:
    def __call__(self, lr, opt):
        return lr


def _TrainModel(lr, opt):
    return lr


def test_an_experiment_has_the_name_of_the_function(monkeypatch):
    names = []

    def call(self, method, **message):
        if method == "CreateExperiment":
            names.append(message["experiment"]["name"])
        return {**message.get("experiment", {}), "state": "SUCCEEDED"}

    monkeypatch.setattr(Client, "call", call)
    tune(_TrainModel, SPACE, client=Client("http://x", "t"))
    tune(Training(), SPACE, client=Client("http://x", "t"), name="mine")
    assert [n.split("/")[-1] for n in names] == ["trainmodel", "mine"]
    with pytest.raises(ValueError, match="name="):
        tune(Training(), SPACE, client=Client("http://x", "t"))
