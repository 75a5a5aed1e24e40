import math
import time

import pytest

from vernier_hpo import Client, Study, VernierError, choice, integer, loguniform, tune, uniform
from vernier_hpo.study import Searching

SPACE = {"lr": loguniform(1e-5, 0.1), "layers": integer(1, 4)}


def loss(lr, layers):
    return (math.log10(lr) + 2) ** 2 + layers


def test_a_function_that_always_fails_is_not_called_for_ever():
    calls = []

    def broken(lr, layers):
        calls.append(lr)
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        tune(broken, SPACE, trials=50)
    assert len(calls) == 3


@pytest.mark.parametrize("mode, error", [("threads", ZeroDivisionError), ("processes", RuntimeError)])
@pytest.mark.parametrize("trials, workers", [(1, 1), (2, 2)])
def test_a_function_that_fails_in_all_of_few_trials_is_no_result(mode, error, trials, workers):
    with pytest.raises(error, match="division by zero"):
        tune(lambda lr, layers: 1 / 0, SPACE, trials=trials, workers=workers, mode=mode)


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("returned, message", [
    ((1, 2), "dictionary of metrics"), (None, "has no value: .*return"), ({"loss": 1}, "has no value, only loss")])
def test_a_result_that_cannot_be_used_says_what_can(mode, returned, message):
    with pytest.raises(Exception, match=message):
        tune(lambda lr, layers: returned, SPACE, trials=1, mode=mode)


def test_a_failure_is_logged(caplog):
    def broken(lr, layers):
        return 1 / (layers - 2)

    failed = [r for r in tune(broken, SPACE, trials=12, algorithm="random").trials if r.state == "failed"]
    assert 0 < len(failed) < 12
    assert [m.split(":")[0] for m in caplog.messages] == [f"trial {r.number} failed" for r in failed]
    assert "layers - 2" in caplog.text


@pytest.mark.parametrize("given, error, message", [
    ({"algorithm": "random"}, TypeError, "algorithm would change nothing"),
    ({"name": "other"}, TypeError, "name would change nothing"),
    ({"trials": 3}, TypeError, "trials would change nothing"),
    ({"maximize": "x"}, ValueError, "leave minimize and maximize out"),
])
def test_what_a_study_has_of_its_own_is_not_given_beside_it(given, error, message):
    with Study(SPACE, minimize="x", trials=2) as study:
        with pytest.raises(error, match=message):
            tune(loss, SPACE, study=study, **given)
        with pytest.raises(ValueError, match="the space of the study is another one: lr"):
            tune(loss, {**SPACE, "lr": uniform(2, 3)}, study=study)
        assert study.trials == []
        assert len(tune(loss, dict(SPACE), study=study, minimize="x").trials) == 2


@pytest.mark.parametrize("name, message", [
    ("minimise", "tune has no argument minimise: did you mean minimize?"),
    ("worker", "tune has no argument worker: did you mean workers?"),
    ("sed", "tune has no argument sed: did you mean seed?"), ("colour", "tune has no argument colour")])
def test_an_argument_that_tune_does_not_have_is_named(name, message):
    with pytest.raises(TypeError) as e:
        tune(loss, SPACE, **{name: "loss"})
    assert str(e.value) == message


def test_the_timeout_does_not_wait_for_trials_of_others():
    class Busy(Searching):  # as an experiment whose trials other programs run
        directions, bounds, trials, asked = [("loss", "minimize")], [], [], []

        def _ask(self, until):
            self.asked.append(until)

    began = time.monotonic()
    tuned = tune(loss, {}, study=Busy(), timeout=60, workers=2)
    assert tuned.trials == [] and len(Busy.asked) == 2 and all(began < until <= time.monotonic() + 60 for until in Busy.asked)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_no_trial_begins_after_the_timeout(mode, workers):
    with Study(SPACE, minimize="loss", algorithm="random") as study:  # without a number of trials
        tune(loss, SPACE, minimize="loss", study=study, mode=mode, workers=workers, timeout=0.5)
        trials = study.trials
        assert trials and all(r.state == "succeeded" for r in trials)
        tune(loss, SPACE, minimize="loss", study=study, mode=mode, workers=workers, timeout=0)
        assert len(study.trials) == len(trials)


@pytest.mark.parametrize("timeout", [-1, math.nan])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(ValueError, match="number of seconds"):
        tune(loss, SPACE, timeout=timeout)


def test_pods_have_no_timeout():
    with pytest.raises(ValueError, match="maxDuration"):
        tune(loss, SPACE, mode="pods", name="n", image="python", timeout=60)


def test_each_trial_has_a_line_in_the_log(caplog):
    caplog.set_level("INFO", "vernier_hpo")
    tuned = tune(loss, SPACE, trials=3)
    assert caplog.messages == [f"trial {r.number}: {r.value} with {r.params}" for r in tuned.trials]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_the_line_of_a_function_that_only_reports_has_what_it_reported_last(caplog, mode):
    def reporting(lr, layers, trial):
        for step in range(3):
            trial.report(step=step, value=loss(lr, layers) - step, step_time=step)

    caplog.set_level("INFO", "vernier_hpo")
    tuned = tune(reporting, SPACE, trials=2, mode=mode)
    want = [{"value": loss(**r.params) - 2, "step_time": 2.0} for r in tuned.trials]
    assert caplog.messages == [f"trial {r.number}: {w} with {r.params}" for r, w in zip(tuned.trials, want)]


@pytest.mark.parametrize("arguments, message", [
    ({"workers": 0}, "workers=0"), ({"timeout": "1h"}, "timeout='1h'"), ({"trials": -1}, "trials=-1"), ({"trials": 2.5}, "trials=2.5"),
    ({"image": "python"}, "mode='pods'"), ({"minimize": "a", "maximize": "a"}, "each once"),
    ({"space": {"a": choice("b", "c"), "d": uniform(0, 1, when={"a": "b"})}}, r"when={'a': \['b'\]}")])
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tune(loss, **{"space": SPACE, "trials": 2, **arguments})


def test_a_function_that_cannot_be_short_is_not_given_to_short_trials():
    with pytest.raises(TypeError, match="trial.resource"):
        tune(loss, SPACE, trials=4, algorithm="asha")
    tune(lambda lr, layers, trial: trial.resource, SPACE, trials=4, algorithm="asha")
    tune(loss, SPACE, trials=4, algorithm="asha", settings={"resource_name": "layers"})


def test_a_bound_that_is_nearly_the_name_of_a_parameter_is_warned_of(caplog):
    with pytest.raises(VernierError, match="constraints bound layer, which is no parameter"):
        tune(loss, SPACE, trials=4, constraints=["layer <= 3"])
    assert "there is a parameter layers" in caplog.text


def test_a_function_without_a_name_needs_one_at_the_service():
    with pytest.raises(ValueError, match="name="):
        tune(lambda lr: 1, SPACE, client=Client("http://127.0.0.1:9", "token"))
