import itertools
import json
import math
import os
import random
import threading

import pytest

from vernier_hpo import (Result, Study, TrialStopped, VernierError, choice, integer, loguniform, normal, tune,
                         uniform)
from vernier_hpo.study import Searching

SPACE = {"lr": loguniform(1e-5, 0.1), "layers": integer(1, 4)}


def loss(lr, layers):
    return (math.log10(lr) + 2) ** 2 + layers


def test_a_function_is_tuned_in_three_lines():
    best = tune(loss, SPACE, trials=30).best
    assert best.value < 1.3 and best.params["layers"] == 1


def test_values_keep_their_types():
    space = {"i": integer(1, 3), "f": uniform(0, 1, step=0.5), "n": normal(0, 1), "d": choice(1, 2.5, 4),
             "c": choice(None, True, "text", math.sin)}
    with Study(space, minimize="x", trials=12, algorithm="random") as study:
        for trial in study:
            p = trial.params
            assert type(p["i"]) is int and p["f"] in (0, 0.5, 1) and p["d"] in (1, 2.5, 4)
            assert any(p["c"] is v for v in space["c"].values)
            trial.succeed(1)


def test_rows_keep_what_has_the_same_name_apart():
    space = {"lr": uniform(0, 1), "state": integer(1, 3), "size": integer(1, 3)}
    with Study(space, minimize="lr", trials=2) as study:
        for trial in study:
            trial.succeed(lr=5, number=7, **({"size": 9} if trial.number else {}))
        params = [r.params for r in study.trials]
        assert study.rows() == [
            {"number": i, "state": "succeeded", "param.lr": p["lr"], "param.state": p["state"], "param.size": p["size"],
             "lr": 5, "metric.number": 7, **({"size": 9} if i else {})} for i, p in enumerate(params)]


class Scalar:
    """A number as numpy and torch have them."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value

    def __index__(self):
        return self.value

    def __float__(self):
        return float(self.value)

    def __eq__(self, other):
        return self.value == other


def test_scalars_of_other_libraries_are_numbers():
    with Study({"n": integer(1, Scalar(8))}, minimize="loss", initial=[{"n": Scalar(3)}], trials=1) as study:
        for trial in study:
            with trial:
                trial.report(loss=Scalar(2), step=Scalar(1))
        assert [(r.params, r.values) for r in study.trials] == [({"n": 3}, {"loss": 2})]


def test_a_step_that_is_not_whole_is_refused_when_it_is_reported():
    with Study(SPACE, minimize="loss") as study, study.ask() as trial:
        trial.report(loss=1, step=2.0)
        with pytest.raises(ValueError, match="step=2.5"):
            trial.report(loss=1, step=2.5)


def test_a_trial_may_report_at_each_of_very_many_steps(tmp_path):
    with Study(SPACE, minimize="loss", stopper="medianstop", file=str(tmp_path / "study.jsonl")) as study:
        trial = study.ask()
        study._curves[trial.number] = [(10**12 + step, 1 / 3e-7) for step in range(400_001)]
        trial.report(loss=0.25, step=10**12 + 400_001)
        trial.succeed()
    with Study(SPACE, minimize="loss", file=str(tmp_path / "study.jsonl")) as study:
        assert [r.values for r in study.trials] == [{"loss": 0.25}]
    with open(tmp_path / "study.jsonl", encoding="utf-8") as f:
        assert json.loads(f.readlines()[-1])["tell"]["curve"][-1] == [10**12 + 400_001, 0.25]


def test_an_inactive_parameter_is_absent():
    space = {"opt": choice("sgd", "adam"), "momentum": uniform(0, 1, when={"opt": ["sgd"]})}
    with Study(space, minimize="x", trials=10, algorithm="random") as study:
        for trial in study:
            assert ("momentum" in trial.params) == (trial.params["opt"] == "sgd")
            trial.fail("not today")


@pytest.mark.parametrize("raised, state", [
    (ValueError("x"), "failed"), (TrialStopped("x"), "pruned"), (KeyboardInterrupt(), "pending"), (None, "succeeded")])
def test_the_block_says_how_the_trial_ended(raised, state):
    with Study(SPACE, minimize="loss") as study:
        try:
            with study.ask() as trial:
                trial.report(loss=1)
                if raised:
                    raise raised
        except (ValueError, KeyboardInterrupt):
            pass
        assert [r.state for r in study.trials] == [state]


def test_a_trial_without_its_metric_says_so():
    with Study(SPACE, minimize="loss") as study:
        trial = study.ask()
        trial.report(other=1)
        with pytest.raises(VernierError, match="loss") as e:
            trial.succeed()
        assert e.value.reason == "NOT_MEASURED"
        trial.succeed(2)
        assert study.best.values == {"other": 1, "loss": 2}


def test_the_best_reported_value_counts():
    with Study(SPACE, maximize="acc") as study:
        with study.ask() as trial:
            for acc in (0.1, float("nan"), 0.7, 0.4):
                trial.report(acc=acc)
        assert study.best.value == 0.7


def test_a_trial_that_was_handed_back_is_handed_out_again():
    with Study(SPACE, minimize="loss", trials=1) as study:
        first = study.ask()
        first.release()
        again = study.ask()
        assert (again.number, again.params) == (first.number, first.params)
        again.succeed(1)
        assert study.ask() is None


class Interrupted:
    """A pipe whose next line is not read, as Ctrl-C comes first."""

    def __init__(self, pipe):
        self.pipe, self.interrupts = pipe, 1

    def readline(self):
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return self.pipe.readline()

    def close(self):
        self.pipe.close()


def test_a_study_goes_on_after_ctrl_c_in_a_report():
    with Study(SPACE, minimize="loss", stopper="threshold", trials=2) as study:
        trial = study.ask()
        study._engine._process.stdout = Interrupted(study._engine._process.stdout)
        with pytest.raises(KeyboardInterrupt), trial:
            trial.report(loss=1)
        for trial in study:
            trial.succeed(1)
        assert [(r.number, r.state) for r in study.trials] == [(0, "succeeded"), (1, "succeeded")]


def test_a_trial_whose_ask_ctrl_c_cut_short_is_handed_out():
    with Study(SPACE, minimize="loss", trials=3) as study:
        study._engine._process.stdout = Interrupted(study._engine._process.stdout)
        with pytest.raises(KeyboardInterrupt):
            study.ask()
        for trial in study:
            trial.succeed(1)
        assert [r.number for r in study.trials] == [0, 1, 2]


def test_a_trial_that_is_handed_out_again_is_stopped_by_its_own_reports():
    rule = {"min_trials_required": 1, "start_step": 1}
    with Study(SPACE, minimize="loss", stopper="medianstop", stopper_settings=rule, trials=2) as study:
        first, second = study.ask(), study.ask()
        for step in range(10):
            first.report(loss=2, step=step)
            second.report(loss=1, step=step)
        first.succeed()
        second.release()
        with study.ask() as again:
            for step in range(5, 8):
                again.report(loss=3, step=step)
        assert [r.state for r in study.trials] == ["succeeded", "pruned"]


def test_a_stopping_rule_stops():
    with Study(SPACE, minimize="loss", stopper="threshold") as study:
        with study.ask() as trial:
            trial.report(loss=1)
            trial.report(loss=float("nan"))
            raise AssertionError("it was not stopped")
        assert study.trials[0].state == "pruned"


def test_a_study_goes_on_from_its_file(tmp_path):
    file = str(tmp_path / "study.jsonl")

    def asked(study, n):
        points = []
        for _ in range(n):
            trial = study.ask()
            points.append(trial.params)
            trial.succeed(loss(**trial.params))
        return points

    with Study(SPACE, minimize="loss", trials=12) as whole:
        want = asked(whole, 12)
    with Study(SPACE, minimize="loss", trials=12, file=file) as study:
        got = asked(study, 5)
        study.ask()  # and dies with it
    with open(file, "ab") as f:
        f.write(b'{"tell": {"num')  # while it wrote
    with Study(SPACE, minimize="loss", trials=12, file=file) as study:
        got += asked(study, 7)
        assert study.ask() is None
    assert got == want
    with pytest.raises(VernierError, match="another space"):
        Study({"x": uniform(0, 1)}, minimize="loss", file=file)


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"space": 1}\nmy notes\n', b'["a"]\n'])
def test_a_file_that_is_not_of_a_study_stays_as_it_is(tmp_path, content):
    file = tmp_path / "notes"
    file.write_bytes(content)
    with pytest.raises(VernierError, match="notes"):
        Study(SPACE, minimize="loss", file=str(file))
    assert file.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"{", b'{"space": [{"na'])
def test_a_file_whose_first_line_was_not_written_whole_begins_anew(tmp_path, content):
    file = tmp_path / "study.jsonl"
    file.write_bytes(content)
    with Study(SPACE, minimize="loss", trials=1, file=str(file)) as study:
        study.ask().succeed(1)
    with Study(SPACE, minimize="loss", trials=1, file=str(file)) as study:
        assert study.best.value == 1


def test_a_file_is_of_one_study_at_a_time(tmp_path):
    file = str(tmp_path / "study.jsonl")
    with Study(SPACE, minimize="loss", trials=2, file=file) as study:
        study.ask().succeed(1)
        with pytest.raises(VernierError, match="another study has"):
            Study(SPACE, minimize="loss", trials=2, file=file)
        study.ask().succeed(2)
    with Study(SPACE, minimize="loss", trials=2, file=file) as study:
        assert [t.values for t in study.trials] == [{"loss": 1.0}, {"loss": 2.0}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT RUN: needs fork")
def test_a_process_that_was_forked_does_not_keep_the_file(tmp_path):
    file = str(tmp_path / "study.jsonl")
    begun, begins = os.pipe()
    waits, ends = os.pipe()
    parent = os.fork()
    if parent == 0:  # it is killed while a process of a trial goes on
        study = Study(SPACE, minimize="loss", trials=2, file=file)
        if os.fork() == 0:
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
        with pytest.raises(VernierError, match="another study has"):
            Study(SPACE, minimize="loss", trials=2, file=file)
        os.write(begins, b"x")
        os._exit(study is None)
    os.close(begins)
    try:
        assert os.waitpid(parent, 0)[1] == 0 and os.read(begun, 1) == b"x"
        with Study(SPACE, minimize="loss", trials=2, file=file) as study:
            study.ask().succeed(1)
    finally:
        os.close(ends)


def test_a_trial_that_could_not_be_written_is_handed_out_later(monkeypatch, tmp_path):
    with Study(SPACE, minimize="loss", trials=2, file=str(tmp_path / "study.jsonl")) as study:
        def full(descriptor):
            raise OSError("no space left on device")

        with monkeypatch.context() as disk, pytest.raises(OSError, match="no space"):
            disk.setattr(os, "fsync", full)
            study.ask()
        for trial in study:
            trial.succeed(trial.number)
        assert [r.state for r in study.trials] == ["succeeded", "succeeded"]


@pytest.mark.parametrize("goals, result", [
    (["loss", "value"], {"loss": 1, "value": 2}), (["loss"], {"loss": 1, "value": 2}), (["value"], {"value": 2})])
def test_a_metric_may_be_called_value(goals, result):
    tuned = tune(lambda lr, layers: result, SPACE, minimize=goals, trials=1)
    assert tuned.best.values == result


def test_several_objectives_have_a_front():
    with Study({"x": uniform(0, 1)}, minimize=["a", "b"], trials=12) as study:
        for trial in study:
            x = trial.params["x"]
            trial.succeed(a=x * x, b=(x - 1) ** 2)
        assert len(study.front) == 12 and study.best in study.front


class Finished(Searching):
    """A study of trials that are given."""

    def __init__(self, measured):
        self.directions, self.bounds = [(m, "minimize") for m in measured[0]], []
        self.results = [Result(i, {}, "succeeded", values) for i, values in enumerate(measured)]

    def _ask(self, until):
        return None

    @property
    def trials(self):
        return self.results


@pytest.mark.parametrize("metrics", ["a", "ab", "abc"])
def test_no_trial_beats_one_of_the_front_and_one_of_it_beats_each_other(metrics):
    steps = itertools.product((0, 1, 2), repeat=len(metrics))
    measured = [dict(zip(metrics, v)) for v in steps if sum(v) % 3 > 0 or len(metrics) == 1]
    study = Finished([*measured[::-1], *measured])

    def beats(a, b):
        return a != b and all(a[m] <= b[m] for m in metrics)

    want = [r.number for r in study.trials if not any(beats(v, r.values) for v in measured)]
    assert [r.number for r in study.front] == want and want


def test_threads_share_a_study():
    running, most, lock = [0], [0], threading.Lock()
    together = threading.Barrier(4, timeout=30)

    def function(lr, layers):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait()
        with lock:
            running[0] -= 1
        return loss(lr, layers)

    tuned = tune(function, SPACE, trials=8, workers=4)
    assert most[0] == 4
    assert [r.number for r in tuned.trials] == list(range(8))


def test_waiting_for_ones_own_trials_is_an_error():
    with Study({"x": uniform(0, 1)}, minimize="loss", algorithm="pbt", settings={"n_population": 5}) as study:
        with pytest.raises(VernierError, match="first"):
            for _ in range(1000):
                study.ask()


@pytest.mark.parametrize("space, options, message", [
    ({"lr": uniform(1, 0)}, {}, 'parameter "lr": min 1 is above max 0; swap them'),
    ({"lr": uniform(1, 0), "n": integer(3, 2)}, {}, '2 faults\n  parameter "lr": min 1 is above max 0; swap them\n  '
                                                    'parameter "n": min 3 is above max 2; swap them'),
    (SPACE, {"stopper": "asha", "stopper_settings": {"x": 1}},
     'stopping rule asha: setting "x" is unknown; remove it or use one of ')])
def test_an_invalid_study_is_explained(space, options, message):
    with pytest.raises(VernierError) as e:
        Study(space, minimize="loss", **options)
    assert str(e.value).startswith(message) and "--help" not in str(e.value)


def test_a_study_needs_a_metric():
    with pytest.raises(ValueError, match="name the metric"):
        Study(SPACE)


def test_a_study_without_a_seed_is_another_each_time():
    first = []
    for _ in range(2):
        random.seed(0)  # as programs do for their own sake
        with Study(SPACE, minimize="x", algorithm="random", seed=None) as study:
            first.append([study.ask().params for _ in range(3)])
    assert first[0] != first[1]


def test_counts_may_be_numbers_of_numpy():
    numpy = pytest.importorskip("numpy", reason="NOT RUN: numpy is not installed")
    with Study(SPACE, minimize="x", trials=numpy.int64(2), parallel=numpy.int64(2)) as study:
        assert len(list(study)) == 2
    with pytest.raises(TypeError):
        Study(SPACE, minimize="x", trials=2.7)
